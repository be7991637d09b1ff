"""Schedules of training: what to keep, to swap and to compute again."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Protocol

from . import _columns
from ._native import schedule_net


class NoSchedule(RuntimeError):
    """No schedule that fits the capacity was found within the limits."""


class InfeasibleSchedule(NoSchedule):
    """It is proved that no schedule fits the capacity.

    `bound` is the bytes that every schedule needs at least. `suggested` is a capacity in which a schedule was found, by the
    scheduler that the message names, or None if none was found within the limits.
    """

    def __init__(self, message: str, bound: int, suggested: int | None) -> None:
        super().__init__(message)
        self.bound = bound
        self.suggested = suggested

    def __reduce__(self) -> tuple[type[InfeasibleSchedule], tuple[str, int, int | None]]:
        return type(self), (str(self), self.bound, self.suggested)


class Net(Protocol):
    """A net that writes itself as a training net, JSON Lines."""

    def write(self) -> str: ...


@dataclass(frozen=True, eq=False)
class Schedule:
    """A schedule of one iteration; a validator that shares nothing with the schedulers has accepted it."""

    seconds: float
    """The time of an iteration."""
    bound: float
    """What every schedule takes at least, in seconds, as proved."""
    height: int
    """The bytes that the offsets of its buffers need, parameters and workspace included."""
    live_peak: int
    """The most bytes in use at once."""
    classes: dict[int, str]
    """For each map that a backward pass reads, by its number in the net: "keep", "swap" or "recompute"."""
    stop: str
    """Why the search ended: "proved", "finished", "deadline" or "work-limit"."""
    text: str = field(repr=False)
    """The schedule as a file: JSON Lines, which `planlab schedule NET --check` and `planlab show` read."""

    @property
    def gap(self) -> float:
        """(seconds - bound) / bound; 0 is optimal."""
        return max(self.seconds / self.bound - 1.0, 0.0) if self.bound > 0.0 else 0.0


@dataclass(frozen=True)
class ScheduleRequest:
    """How a net is to be scheduled; `schedule` says what each means."""

    machine: str | None
    """A key, or the name of the file whose content is `machine_text`."""
    machine_text: str | None
    capacity: int | None
    scheduler: str
    time_limit: float | None
    threads: int | None
    work_limit: int | None
    seed: int

    def __post_init__(self) -> None:
        for name in ("capacity", "threads", "work_limit"):
            _columns.number(name, getattr(self, name), least=1)
        _columns.number("seed", self.seed)


def schedule(
    net: str | os.PathLike[str] | Net,
    *,
    machine: str | os.PathLike[str] | None = None,
    capacity: int | None = None,
    scheduler: str = "joint",
    time_limit: float | None = None,
    threads: int | None = None,
    work_limit: int | None = None,
    seed: int = 0,
) -> Schedule:
    """Decides what a net in training keeps on the device, swaps to the host and computes again.

    net: a training net: its text (JSON Lines), the path of its file, or what `planlab.torch.graph` returns.
    machine: a key of `planlab list machines`, or the path or the text of a machine file (TOML). Without it the machine in
        the net counts, else `x86-pcie3`.
    capacity: bytes of the device, parameters included; without it that of the net, else that of the machine.
    scheduler: a key of `planlab list schedulers`.
    time_limit: seconds, 10 if nothing is said; math.inf goes on until the scheduler has finished.
    threads: how many the scheduler may use; every core if nothing is said. `joint` alone uses several, at most 16.
    work_limit, seed: simulated iterations at most, and what random choices depend on. With a work limit and time enough,
        equal calls have equal schedules on every machine, whatever their threads.

    Other threads of Python run meanwhile, and Ctrl-C ends it.

    Raises ValueError if an argument is wrong, OSError if a file cannot be read, InfeasibleSchedule if it is proved that no
    schedule fits, NoSchedule if none was found.
    """
    name, text, path = _net_source(net)
    key, description = _machine_source(machine)
    request = ScheduleRequest(key, description, capacity, scheduler, time_limit, threads, work_limit, seed)
    found, shortfall = schedule_net(name, text, path, request)
    if found is None:
        raise _shortfall_error(*shortfall)
    text, seconds, bound, height, live_peak, classes, stop = found
    return Schedule(seconds, bound, height, live_peak, dict(classes), stop, text)


def _shortfall_error(reason: str, proved: tuple[int, tuple[int, str] | None] | None) -> NoSchedule:
    """The exception for a net without a schedule."""
    if proved is None:
        return NoSchedule(f"no schedule was found: {reason}")
    bound, suggested = proved
    if suggested is None:
        return InfeasibleSchedule(reason, bound, None)
    capacity, scheduler = suggested
    return InfeasibleSchedule(f"{reason}; {scheduler} finds a schedule in {capacity} bytes", bound, capacity)


def _net_source(net: str | os.PathLike[str] | Net) -> tuple[str, str | None, str | None]:
    """What errors call a net, and its text or its path."""
    if isinstance(net, str) and net.lstrip().startswith("{"):
        return "net", net, None
    if isinstance(net, (str, os.PathLike)):
        path = os.fspath(net)
        return path, None, path
    return "net", net.write(), None


def _machine_source(machine: str | os.PathLike[str] | None) -> tuple[str | None, str | None]:
    """The name of a machine, and its description if it is not one of the program's own."""
    if isinstance(machine, str) and "\n" in machine:
        return "machine", machine
    if machine is None or (isinstance(machine, str) and not machine.endswith(".toml")):
        return machine, None
    with open(machine, encoding="utf-8") as file:
        return os.fspath(machine), file.read()
