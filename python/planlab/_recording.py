"""Records what a framework allocates while a block of Python runs."""

from __future__ import annotations

import os
import tempfile
import time
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Protocol

from . import _columns
from ._native import write_file
from ._traces import FileOptions, Trace, read_as


@dataclass(frozen=True)
class Recorded:
    """A trace in a file of a framework."""

    name: str
    """What `Recording.traces` calls it."""
    path: Path
    part: str | None = None


class Recorder(Protocol):
    """The part of a recording that knows one framework."""

    about: str
    """What errors call the recording."""

    def begin(self) -> None: ...

    def end(self, folder: Path) -> list[Recorded]:
        """Ends it, and writes files into a folder of its own. Called once after `begin`, whatever the block raised.

        Raises RuntimeError if there is nothing to be written, and says why.
        """

    def times(self, recorded: Recorded) -> list[int]:
        """The times of step 1, 2, ... of a trace, in nanoseconds since 1970; empty if its steps have no times."""


class Recording:
    """What a block of Python allocated; `record` makes one.

    The recording ends with the block, also if the block raises: a run that is out of memory is recorded up to there.
    """

    def __init__(self, recorder: Recorder, options: FileOptions) -> None:
        self._recorder = recorder
        self._options = options
        self._marks: list[int] = []
        self._recorded: list[Recorded] | None = None
        self._failure: Exception | None = None

    def __enter__(self) -> Recording:
        if self._recorded is not None or self._failure is not None:
            raise RuntimeError("a recording is made once: call planlab.record again")
        self._recorder.begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        # Lives as long as the recording; the files are removed with it.
        self._folder = tempfile.TemporaryDirectory(prefix="planlab-")
        try:
            self._recorded = self._recorder.end(Path(self._folder.name))
        except Exception as failure:
            self._failure = failure
            # What the block raised matters more.
            if error is None:
                raise

    def __repr__(self) -> str:
        state = "has ended" if self._recorded is not None else "has not ended"
        return f"<planlab.Recording of {self._recorder.about}, which {state}>"

    def iteration(self) -> None:
        """Says that an iteration (of a training, say) begins here, and ends the one before."""
        # Events have whole microseconds: the mark is the next one, so that each event is clearly before or after it.
        mark = (time.time_ns() // 1000 + 1) * 1000
        while time.time_ns() < mark:
            pass
        self._marks.append(mark)

    def _files(self) -> list[Recorded]:
        if self._failure is not None:
            raise RuntimeError(f"{self._recorder.about} was not recorded: {self._failure}") from self._failure
        if self._recorded is None:
            raise RuntimeError("the recording has not ended: it does with its `with` block")
        return self._recorded

    @cached_property
    def traces(self) -> Mapping[str, Trace]:
        """Every trace by its name: of PyTorch the device, of JAX each program that XLA compiled."""
        files = self._files()
        about = self._recorder.about
        names = [about if len(files) == 1 else f"{about}: {file.name}" for file in files]
        return MappingProxyType(
            {file.name: read_as(file.path, name, self._options.of_part(file.part)) for file, name in zip(files, names)}
        )

    @property
    def trace(self) -> Trace:
        """The trace, as `planlab.read` gives it; of several, the one with the highest load."""
        return self.traces[self._main]

    @property
    def _main(self) -> str:
        return max(self.traces, key=lambda name: self.traces[name].load)

    @cached_property
    def iterations(self) -> list[range]:
        """The steps of the trace that each marked iteration has.

        Empty without marks, and for JAX, whose steps are instructions of a program.
        """
        recorded = next(file for file in self._files() if file.name == self._main)
        times = self._recorder.times(recorded) if self._marks else []
        if not times:
            return []
        # Events of several threads may overlap.
        times = list(accumulate(times, max))
        # Step 0 stands for all that was before.
        first = [bisect_left(times, mark) + 1 for mark in self._marks]
        return [range(begin, end) for begin, end in pairwise([*first, len(times) + 1])]

    def save(self, path: str | os.PathLike[str], name: str | None = None) -> None:
        """Writes the recording for `planlab.read` and the command `planlab`, whole or not at all.

        path: a file of the framework's own format (a Chrome trace, a pickle, an HLO module), which says most to `planlab
            explain`; or, if the name ends in `.csv`, planlab's own. With `.zst` or `.gz` at its end it is compressed.
        name: which of `traces`; without it, that of `trace`.

        Raises KeyError if there is no such trace, OSError if the file cannot be written.
        """
        name = self._main if name is None else name
        trace = self.traces[name]
        if os.fspath(path).removesuffix(".zst").removesuffix(".gz").endswith(".csv"):
            trace.save(path)
        else:
            write_file(path, next(file.path for file in self._files() if file.name == name).read_bytes())


def record(
    framework: str = "torch", *, device: str | None = None, alignment: int | None = None
) -> Recording:
    """Records what a framework allocates in a `with` block.

    framework: "torch" or "jax".
    device: of PyTorch, "cpu" or a GPU ("cuda", "cuda:1"); the current GPU if nothing is said and there is one, else the
        CPU. What other devices allocate is not in the trace. JAX has none.
    alignment: sizes are rounded up to it and offsets are multiples of it, as in `planlab.read`: 512 for what PyTorch does
        on a GPU. `save` writes a framework's own file as it is.

    On the CPU PyTorch's profiler records (`torch.profiler`), on a GPU PyTorch's memory history, and XLA's dump for JAX.
    There is one memory history in a process: the recording clears it when it begins and turns it off when it ends, and one
    that is on already is an error, so that nothing of it is lost.
    XLA plans when it compiles: a program that was compiled before the block is not in it, and JAX has to run for the first
    time in a recording, since it reads XLA_FLAGS once.

    Raises ImportError if the framework is not installed, RuntimeError if it cannot record (no GPU, too old, a
    memory history that is on), ValueError if an argument is wrong.

        with planlab.record("torch") as recording:
            for images, labels in batches:
                recording.iteration()
                train(images, labels)
        plan = recording.trace.plan()
        recording.save("training.json.zst")
    """
    _columns.number("alignment", alignment, least=1)
    options = FileOptions(alignment)
    if framework == "torch":
        from . import _torch

        return Recording(_torch.recorder(device), options)
    if framework == "jax":
        if device is not None:
            raise ValueError("`device` is for PyTorch; of JAX, every program that XLA compiles is recorded")
        from . import _jax

        return Recording(_jax.recorder(), options)
    raise ValueError(f'`framework` is {framework!r}; it has to be "torch" or "jax"')
