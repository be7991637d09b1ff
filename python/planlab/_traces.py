"""Traces: the buffers of a net, as a file or a workload has them."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from . import _columns, _frames, _maps
from ._native import NativeTrace, is_file_name, write_file
from ._planning import Limits, Plan, told

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray


class Trace:
    """A placement problem with what its file says about it; `read` makes one."""

    def __init__(self, native: NativeTrace, source: str) -> None:
        self._native = native
        self.source = source
        """The file's name or the workload's key."""

    @cached_property
    def lower(self) -> NDArray[np.int64]:
        """The first step at which each buffer is live."""
        return self._native.lower()

    @cached_property
    def upper(self) -> NDArray[np.int64]:
        """The first step at which it no longer is."""
        return self._native.upper()

    @cached_property
    def size(self) -> NDArray[np.uint64]:
        """Bytes."""
        return self._native.size()

    @cached_property
    def alignment(self) -> NDArray[np.uint64]:
        """What each offset has to be a multiple of, in bytes."""
        return self._native.alignment()

    @cached_property
    def pins(self) -> NDArray[np.int64]:
        """Fixed offsets in bytes; -1 for a buffer without one."""
        return self._native.pins()

    @cached_property
    def ids(self) -> list[str]:
        """What the file calls each buffer."""
        return self._native.ids()

    @cached_property
    def categories(self) -> list[str | None]:
        """What each buffer is for: "param", "activation", "gradient", ..."""
        return self._native.categories()

    @cached_property
    def operations(self) -> list[str | None]:
        """The operation that made each buffer."""
        return self._native.operations()

    @cached_property
    def metadata(self) -> dict[str, str]:
        """What the file says of itself."""
        return dict(self._native.metadata())

    @cached_property
    def notices(self) -> list[str]:
        """What the reader left out or assumed, a sentence each."""
        return self._native.notices()

    @property
    def load(self) -> int:
        """The most bytes live at one step; a buffer that may overwrite another does not count at its first step.

        Of several arenas, the sum of theirs, each at a step of its own.
        """
        return self._native.load()

    @property
    def permissions(self) -> int:
        """How many permissions there are to overwrite a buffer in place."""
        return self._native.permissions()

    @cached_property
    def arenas(self) -> NDArray[np.uint32]:
        """The number of the arena that each buffer lies in; offsets count from the arena's begin."""
        return self._native.arena()

    @cached_property
    def arena_names(self) -> Sequence[str]:
        """The name of each arena, or its number if the file names none."""
        return self._native.arena_names()

    def __len__(self) -> int:
        """The number of buffers."""
        return len(self._native)

    def __repr__(self) -> str:
        return f"<planlab.Trace {self.source!r}: {len(self)} buffers, load {self.load} bytes>"

    def plan(
        self,
        capacity: int | None = None,
        time_limit: float | None = None,
        planner: str = "portfolio",
        threads: int | None = None,
        *,
        seed: int = 0,
        work_limit: int | None = None,
    ) -> Plan:
        """Plans it, with all that the file asks for: in-place permissions, pauses, arenas, pairs kept apart.

        The arguments are those of `planlab.plan`. The plan's `hand_overs` says which buffers overwrite another in place;
        `read(..., in_place=False)` makes a trace whose plans have none.
        """
        limits = Limits(capacity, time_limit, planner, threads, seed, work_limit)
        return told(self._native.plan(limits), limits, self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes planlab's CSV with all that the trace has, whole or not at all; compressed if the name ends in `.zst`
        or `.gz`.

        Raises ValueError for the file that the trace was read from: a recording would be lost.
        """
        if os.path.isfile(self.source) and os.path.isfile(path) and os.path.samefile(self.source, path):
            raise ValueError(f"the trace was read from {os.fspath(path)}: name another file")
        write_file(path, self._native.csv())

    def to_svg(self, width: int = 720, height: int = 160) -> str:
        """The load at each step, drawn as SVG."""
        return _maps.load(self, width, height)

    def _repr_svg_(self) -> str:
        return self.to_svg()

    def _repr_html_(self) -> str:
        return _maps.page(self.to_svg(), f"{self.source}: {len(self)} buffers, load {_maps.size(self.load)}")

    def to_dict(self, plan: Plan | None = None) -> dict[str, Any]:
        """The columns by their names; with a plan, its offsets too. A frame can be made of it."""
        columns: dict[str, Any] = {
            "id": self.ids,
            "lower": self.lower,
            "upper": self.upper,
            "size": self.size,
            "alignment": self.alignment,
            "category": self.categories,
            "op": self.operations,
        }
        if plan is not None:
            if len(plan.offsets) != len(self):
                raise ValueError(f"the plan has {len(plan.offsets)} offsets, the trace {len(self)} buffers")
            columns["offset"] = plan.offsets
        return columns

    def to_frame(self, plan: Plan | None = None) -> Any:
        """A frame of polars, or of pandas if there is no polars, with the columns of `to_dict`.

        Raises ImportError if there is neither.
        """
        for make in (self.to_polars, self.to_pandas):
            try:
                return make(plan)
            except ImportError:
                pass
        raise ImportError("a frame needs polars or pandas, and neither is installed")

    def to_polars(self, plan: Plan | None = None) -> Any:
        """A `polars.DataFrame` with the columns of `to_dict`. Raises ImportError without polars."""
        import polars

        return polars.DataFrame(self.to_dict(plan))

    def to_pandas(self, plan: Plan | None = None) -> Any:
        """A `pandas.DataFrame` with the columns of `to_dict`. Raises ImportError without pandas."""
        import pandas  # type: ignore[import-untyped, unused-ignore]

        return pandas.DataFrame(self.to_dict(plan))


@dataclass(frozen=True)
class FileOptions:
    """How a file is read; `read` says what each means."""

    alignment: int | None = None
    pins: bool = False
    dialect: str = "half-open"
    part: str | None = None
    dims: list[tuple[str, int]] = field(default_factory=list)
    in_place: bool = True

    def __post_init__(self) -> None:
        _columns.number("alignment", self.alignment, least=1)
        for name, size in self.dims:
            _columns.number(f"dims[{name!r}]", size)

    def of_part(self, part: str | None) -> FileOptions:
        """The same for a part of the file."""
        return replace(self, part=part)


def read_as(path: str | os.PathLike[str], name: str, options: FileOptions) -> Trace:
    """Reads a file that errors and the trace call something else."""
    return Trace(NativeTrace.read(path, name, options), name)


def read(
    source: Any,
    *,
    alignment: int | None = None,
    pins: bool = False,
    dialect: str = "half-open",
    part: str | None = None,
    dims: Mapping[str, int] | None = None,
    in_place: bool = True,
    corpus: str | os.PathLike[str] | None = None,
) -> Trace:
    """Reads a trace: any file that the command `planlab` reads, a workload by its key, or a frame.

    source: a file (a CSV, a graph in JSON Lines, a memory snapshot of PyTorch, an ONNX model, ...: `planlab list formats`
        has all), recognised by its content; or a key ("chainer/alexnet/train/b32", "model/resnet50/train/b32"); or a
        frame of polars or pandas, or a dict of columns, with the columns of a CSV: `lower`, `upper`, `size`, and as many
        of the others (`id`, `alignment`, `gaps`, `may_overwrite`, ...) as there are.
    alignment: sizes are rounded up to it and offsets are multiples of it, whatever the file says; not for keys.
    pins: whether a plan is taken as a trace, its offsets as pins; not for keys.
    dialect: what `upper` means: "half-open", "inclusive" or "open"; not for keys.
    part: which of the traces in a file, if it holds several (streams, devices); files only.
    dims: sizes of an ONNX model's dynamic dimensions, by their names; files only.
    in_place: whether the file's permissions to overwrite a buffer in place count; not for keys.
    corpus: a folder with public instances, where keys name them.

    Raises ValueError with the line and the reason if the file or frame is no trace or there is no such workload, OSError if the
    file cannot be read.

    >>> trace = read("chainer/alexnet/infer/b1")
    >>> len(trace), trace.load, trace.metadata["framework"]
    (39, 10169344, 'Chainer 3.0.0rc1 with CuPy 2.0.0rc1')
    """
    options = FileOptions(alignment, pins, dialect, part, list((dims or {}).items()), in_place)
    if _frames.is_frame(source):
        name = f"<{type(source).__module__.partition('.')[0]}.{type(source).__name__}>"
        return Trace(NativeTrace.parse(name, _frames.content(source), options), name)
    name = os.fspath(source)
    if os.path.exists(name) or is_file_name(name) or isinstance(source, os.PathLike):
        if os.path.isdir(name):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
        return read_as(name, name, options)
    if options != FileOptions():
        given = "`alignment`, `pins`, `dialect`, `part`, `dims` and `in_place`"
        raise ValueError(f"{given} are for files; a workload has its own")
    return Trace(NativeTrace.workload(name, corpus), name)
