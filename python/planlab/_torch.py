"""Records PyTorch: its profiler on the CPU, its memory history on a GPU."""

from __future__ import annotations

import importlib
import inspect
import json
import pickle
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ._recording import Recorded, Recorder

_MEMORY = "[memory]"


def recorder(device: str | None) -> Recorder:
    """Returns the recorder of a device.

    Raises ImportError without PyTorch, ValueError if there is no such device, RuntimeError if it cannot be recorded.
    """
    try:
        torch: Any = importlib.import_module("torch")
    except ImportError as error:
        raise ImportError(f'planlab.record("torch") needs PyTorch, which cannot be imported: {error}') from error
    if device is None:
        device = "cuda" if torch.cuda.is_available() else "cpu"
    kind, _, number = device.partition(":")
    if device == "cpu":
        return Profile(torch)
    if kind != "cuda" or (device != "cuda" and not number.isdecimal()):
        raise ValueError(f'`device` is {device!r}; it has to be "cpu", "cuda" or a GPU such as "cuda:0"')
    if not torch.cuda.is_available():
        raise RuntimeError(f'`device` is {device!r}, but PyTorch finds no GPU; device="cpu" records the CPU')
    count = torch.cuda.device_count()
    if number and int(number) >= count:
        raise RuntimeError(f"`device` is {device!r}, but PyTorch finds only {count} of them, from cuda:0")
    if "max_entries" not in inspect.signature(torch.cuda.memory._record_memory_history).parameters:
        raise RuntimeError(f"PyTorch {torch.__version__} has no history of a GPU's memory; 2.1 and later have")
    return History(torch, int(number) if number else torch.cuda.current_device())


class Profile:
    """`torch.profiler` with memory events: a Chrome trace."""

    about = "PyTorch on cpu"

    def __init__(self, torch: Any) -> None:
        self._torch = torch

    def begin(self) -> None:
        profiler = self._torch.profiler
        self._profile = profiler.profile(activities=[profiler.ProfilerActivity.CPU], profile_memory=True)
        self._profile.__enter__()

    def end(self, folder: Path) -> list[Recorded]:
        self._profile.__exit__(None, None, None)
        path = folder / "profile.json"
        if self._torch.autograd.kineto_available():
            self._profile.export_chrome_trace(str(path))
        else:
            # What such a build exports lacks the memory events, but its profiler has them.
            tree = self._profile.profiler.kineto_results.experimental_event_tree()
            path.write_text(json.dumps(_chrome_trace(tree)))
        del self._profile
        if f'"{_MEMORY}"'.encode() not in path.read_bytes():
            raise RuntimeError("nothing was allocated on the CPU in the block")
        return [Recorded("cpu", path, "cpu")]

    def times(self, recorded: Recorded) -> list[int]:
        profile = json.loads(recorded.path.read_text())
        began = int(profile.get("baseTimeNanoseconds", 0))
        # Device type 0 is the CPU. Threads write their events one after the other; the index is the order.
        events = [event for event in profile["traceEvents"] if event.get("name") == _MEMORY]
        events = [event for event in events if event["args"]["Device Type"] == 0]
        events.sort(key=lambda event: event["args"]["Ev Idx"])
        return [began + round(event["ts"] * 1000) for event in events]


def _flat(events: Iterable[Any]) -> Iterator[Any]:
    """A tree of events, each before its children; without recursion, since it may be as deep as a program."""
    waiting = list(events)[::-1]
    while waiting:
        event = waiting.pop()
        yield event
        waiting.extend(event.children[::-1])


def _chrome_trace(tree: Iterable[Any]) -> dict[str, Any]:
    """The profiler's tree as a Chrome trace that has memory events; times are in microseconds since its base."""
    events = sorted(_flat(tree), key=lambda event: event.start_time_ns)
    base = events[0].start_time_ns if events else 0
    return {"baseTimeNanoseconds": base, "traceEvents": list(_chrome_events(events, base))}


def _chrome_events(events: list[Any], base: int) -> Iterator[dict[str, Any]]:
    for index, event in enumerate(events):
        shown = {"tid": event.start_tid, "ts": (event.start_time_ns - base) / 1000}
        fields = event.extra_fields
        if type(fields).__name__ == "_ExtraFields_Allocation":
            on_cpu = fields.device.type == "cpu"
            arguments = {
                "Addr": fields.ptr,
                "Bytes": fields.alloc_size,
                "Total Allocated": fields.total_allocated,
                "Total Reserved": fields.total_reserved,
                "Device Type": 0 if on_cpu else 1,
                "Device Id": -1 if on_cpu else fields.device.index,
                "Ev Idx": index,
            }
            yield shown | {"ph": "i", "name": _MEMORY, "args": arguments}
        else:
            yield shown | {"ph": "X", "name": event.name, "dur": event.duration_time_ns / 1000}


class History:
    """The memory history of a GPU's caching allocator: a snapshot.

    A process has one history, which a recording clears when it begins and turns off when it ends.
    """

    def __init__(self, torch: Any, number: int) -> None:
        self._torch = torch
        self._number = number
        self.about = f"PyTorch on cuda:{number}"

    def begin(self) -> None:
        memory = self._torch.cuda.memory
        # Of PyTorch's own: builds without CUDA and old ones lack it.
        is_enabled = getattr(getattr(self._torch, "_C", None), "_cuda_isHistoryEnabled", lambda: False)
        if is_enabled():
            raise RuntimeError(
                "PyTorch's memory history is on already, and a recording would clear it: save it "
                "(torch.cuda.memory._dump_snapshot) and turn it off (_record_memory_history(enabled=None)) first"
            )
        options: dict[str, Any] = {"context": "alloc", "stacks": "python"}
        if "clear_history" in inspect.signature(memory._record_memory_history).parameters:
            options["clear_history"] = True
        memory._record_memory_history(enabled="all", **options)

    def end(self, folder: Path) -> list[Recorded]:
        memory = self._torch.cuda.memory
        try:
            snapshot = memory._snapshot()
        finally:
            memory._record_memory_history(enabled=None)
        histories = snapshot.get("device_traces", [])
        if self._number >= len(histories) or not histories[self._number]:
            raise RuntimeError(f"nothing was allocated on cuda:{self._number} in the block")
        path = folder / "snapshot.pickle"
        with path.open("wb") as file:
            pickle.dump(snapshot, file, protocol=4)
        history = histories[self._number]
        self._times = [entry["time_us"] * 1000 for entry in history] if "time_us" in history[0] else []
        return [Recorded(f"cuda:{self._number}", path, f"cuda:{self._number}")]

    def times(self, recorded: Recorded) -> list[int]:
        return self._times
