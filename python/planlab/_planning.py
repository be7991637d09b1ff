"""Plans."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from . import _columns, _maps
from ._native import plan_columns

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    from ._native import _Told


class NoPlan(RuntimeError):
    """No plan (that fits the capacity) was found within the limits.

    `bound` is the bytes that every plan needs at least.
    """

    def __init__(self, message: str, bound: int) -> None:
        super().__init__(message)
        self.bound = bound


class Infeasible(NoPlan):
    """It is proved that no plan fits the capacity."""


@dataclass(frozen=True, eq=False)
class Plan:
    """An offset for every buffer; a verifier that shares nothing with the planners has accepted it."""

    offsets: NDArray[np.uint64]
    """Where each buffer begins in the arena, in bytes."""
    height: int
    """The size of the arena, in bytes; of several arenas, the sum of their sizes."""
    bound: int
    """What every plan needs at least, in bytes, as proved."""
    load: int
    """The most bytes live at one step; a buffer that may overwrite another does not count at its first step."""
    proved: bool
    """Whether it is proved that no plan is lower."""
    stop: str
    """Why planning ended: "proved", "finished", "deadline", "work-limit" or "target-reached"."""
    seconds: float
    """Wall time of planning."""
    hand_overs: list[tuple[int, int]] = field(default_factory=list)
    """Input and output, by number, where an output takes the place of an input that is still live. The kernel that reads
    the one and writes the other has to be safe in place."""
    _buffers: _maps.Buffers | None = field(default=None, repr=False)
    """What was planned, for the map."""

    @property
    def gap(self) -> float:
        """(height - bound) / bound; 0 is optimal."""
        return (self.height - self.bound) / self.bound if self.bound else 0.0

    @property
    def fragmentation(self) -> float:
        """(height - load) / load."""
        return (self.height - self.load) / self.load if self.load else 0.0

    def to_dict(self) -> dict[str, Any]:
        """The fields by their names; the offsets as a list of integers, so that `json` can write it."""
        fields = ("height", "bound", "load", "proved", "stop", "seconds", "hand_overs")
        return {"offsets": self.offsets.tolist()} | {field: getattr(self, field) for field in fields}

    def to_svg(self, width: int = 720, height: int = 320) -> str:
        """The map of the plan as SVG: steps from left to right, addresses from the bottom up, a rectangle for each buffer.

        Of many buffers the largest are drawn, and the picture says how many. Raises ValueError if the plan was unpickled:
        it no longer knows its buffers.
        """
        if self._buffers is None:
            raise ValueError("a plan that was pickled does not know its buffers any more: plan them again")
        return _maps.placement(self._buffers, self.offsets, self.height, width, height)

    def _repr_svg_(self) -> str | None:
        return None if self._buffers is None else self.to_svg()

    def _repr_html_(self) -> str | None:
        if self._buffers is None:
            return None
        height, bound = _maps.size(self.height), _maps.size(self.bound)
        how = "which is optimal" if self.proved else f"at most {self.gap:.2%} above the optimum ({bound} are needed)"
        return _maps.page(self.to_svg(), f"{len(self.offsets)} buffers in {height}, {how}")

    def __getstate__(self) -> dict[str, Any]:
        """All but the buffers, which may be those of a file."""
        return {name: value for name, value in vars(self).items() if name != "_buffers"}


@dataclass(frozen=True)
class Limits:
    """How something is to be planned; `plan` says what each means."""

    capacity: int | None
    time_limit: float | None
    planner: str
    threads: int | None
    seed: int
    work_limit: int | None

    def __post_init__(self) -> None:
        for name in ("capacity", "threads", "work_limit"):
            _columns.number(name, getattr(self, name), least=1)
        _columns.number("seed", self.seed)


def told(answer: _Told, limits: Limits, buffers: _maps.Buffers) -> Plan:
    """The plan of an answer.

    Raises NoPlan if it has none.
    """
    offsets, height, bound, load, proved, stop, seconds, hand_overs = answer
    if offsets is not None:
        return Plan(offsets, height, bound, load, proved, stop, seconds, hand_overs, buffers)
    if limits.capacity is not None and bound > limits.capacity:
        raise Infeasible(f"every plan needs {bound} bytes, but the capacity is {limits.capacity}", bound)
    best = f"; the lowest plan found needs {height} bytes" if height else ""
    raise NoPlan(f"no plan was found within the limits ({stop}){best}", bound)


def plan(
    lower: ArrayLike,
    upper: ArrayLike,
    size: ArrayLike,
    alignment: ArrayLike | None = None,
    pins: ArrayLike | Iterable[int | None] | None = None,
    capacity: int | None = None,
    time_limit: float | None = None,
    planner: str = "portfolio",
    threads: int | None = None,
    *,
    seed: int = 0,
    work_limit: int | None = None,
) -> Plan:
    """Gives every buffer an offset.

    Buffer i is live at the steps lower[i] <= step < upper[i] and has size[i] bytes. The columns are sequences of whole
    numbers: lists, NumPy arrays, columns of frames.

    lower, upper: steps; any numbers of 64 bits (operations, nanoseconds).
    size: bytes, more than 0.
    alignment: what each offset has to be a multiple of; a number for each buffer, or one for all.
    pins: fixed offsets in bytes; -1 or None for a buffer without one.
    capacity: the arena's size in bytes, if it is given; planning ends with the first plan that fits it.
    time_limit: seconds, 10 if nothing is said; math.inf plans until the plan is proved optimal.
    planner: a key of `planners()`.
    threads: how many the planner may use; every core if nothing is said.
    seed, work_limit: what random choices depend on, and work in the planner's own steps. With one thread and time
        enough, equal calls with a work limit have equal plans on every machine.

    Other threads of Python run meanwhile, and Ctrl-C ends it.

    Raises ValueError if an argument is wrong, Infeasible if no plan fits the capacity, NoPlan if none was found.

    >>> plan([0, 0], [1, 1], [100, 28], alignment=64).offsets.tolist()
    [0, 128]
    """
    limits = Limits(capacity, time_limit, planner, threads, seed, work_limit)
    lowers, uppers, sizes = (
        _columns.signed("lower", lower),
        _columns.signed("upper", upper),
        _columns.unsigned("size", size),
    )
    answer = plan_columns(
        lowers,
        uppers,
        sizes,
        None if alignment is None else _columns.alignments(alignment, len(lowers)),
        None if pins is None else _columns.pins(pins),
        limits,
    )
    return told(answer, limits, _maps.Columns(lowers, uppers, sizes))
