"""What `fit` is asked, and what it reports."""

from __future__ import annotations

import math
import re
from contextlib import suppress
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

from ._scheduling import NoSchedule, schedule
from ._torch_net import FeatureMap, Function, TrainingNet

_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_UNITS |= {unit + "ib": _UNITS[unit] for unit in "kmgt"} | {"b": 1}
_UNITS |= {unit + "b": 1000**power for power, unit in enumerate("kmgt", 1)}
# The rates other than those of copies count for nothing beside measured times.
_MACHINE = """name = "measured"
copy_out = {rate}
copy_in = {rate}
flops = 1e12
memory = 1e11
launch = 0
capacity = 9000000000000000
bytes_per_parameter = 0
workspace = 0
"""


@dataclass(frozen=True)
class FitReport:
    """What was decided for a compiled graph, or for the steps of a module."""

    capacity: int
    """The bytes that a step may take."""
    peak: int
    """The most bytes of a step that are live at once."""
    peak_of_all: int
    """The same if everything is saved."""
    recompute_seconds: float
    """Measured time of what the backward pass computes again."""
    start: str
    """Where the search began: "everything" or "nothing" saved, the "least peak", or the scheduler of the schedule improved."""
    saved: list[str]
    """The names of the values that stay until the backward pass; those of a compiled graph include parameters and inputs."""
    recomputed: list[str]
    """The names of the operations that run again."""
    swapped: list[str] = field(default_factory=list)
    """The names of the values that go to the host."""
    copied_bytes: int = 0
    """The bytes that a step copies to the host and back."""
    wait_seconds: float = 0.0
    """The time in which a step waits for copies, as estimated."""
    reason: str = "compiled"
    """Why the plan was made: "compiled", "first steps", or where a step left the plan before."""


def parse_bytes(given: float | str, name: str = "capacity") -> int:
    """The number of bytes that `500MB`, `2GiB`, `8m` (MiB) or a number says; `name` is that of the parameter.

    Raises ValueError for anything else, and for less than 1 byte.
    """
    size = _read_number(given) if isinstance(given, Real) else _read_text(str(given))
    if size < 1:
        raise ValueError(f"`{name}` is {given!r}, which is no number of bytes such as 500MB, 2GiB or 1000000")
    return size


def _read_text(text: str) -> int:
    """The number of bytes of a text; 0 if it says none."""
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-z]*)\s*", text.lower())
    return 0 if match is None or match[2] not in _UNITS else int(float(match[1]) * _UNITS[match[2]])


def _read_number(number: Any) -> int:
    """The whole part of a number; 0 if it is infinite, or says yes or no."""
    return 0 if isinstance(number, bool) or not math.isfinite(number) else int(number)


def parse_rate(given: float | str) -> float:
    """The bytes a second that `3GB/s` or a number says.

    Raises ValueError for anything else, and for less than 1 byte a second.
    """
    text = given.strip() if isinstance(given, str) else ""
    size = _read_number(given) if isinstance(given, Real) else _read_text(text.removesuffix("/s"))
    if size < 1 or (isinstance(given, str) and not text.endswith("/s")):
        raise ValueError(f"`link` is {given!r}, which is no rate such as 3GB/s or 3000000000")
    return float(size)


def check_scheduler(scheduler: str | None) -> None:
    """Raises ValueError if there is no such scheduler."""
    if scheduler is None:
        return
    function = Function("step", "other", [0], 1)
    function.forward_seconds = function.backward_seconds = 1.0
    net = TrainingNet("step", 1, 0, [FeatureMap("input", 1, 0.0), FeatureMap("step", 1, 0.0)], [function])
    with suppress(NoSchedule):
        schedule(net, machine=machine_text(None), capacity=1 << 20, scheduler=scheduler, time_limit=1.0, threads=1)


def check_limits(capacity: float | str | None, share: float | None) -> int | None:
    """The capacity in bytes; None if a share is given instead.

    Raises ValueError if not one of the two is given, or if it is out of range.
    """
    if (capacity is None) == (share is None):
        raise ValueError("give one of `capacity` and `share`")
    if share is not None and not 0.0 < share <= 1.0:
        raise ValueError(f"`share` is {share}; it has to be above 0 and at most 1")
    return None if capacity is None else parse_bytes(capacity)


def find_capacity(capacity: int | None, share: float | None, peak: int) -> int:
    """The bytes that a step may take; `peak` is what it takes if everything is saved."""
    return capacity if capacity is not None else int(peak * (share or 1.0))


def machine_text(rate: float | None) -> str:
    """The machine for a schedule with measured times; without a link copies take too long for any schedule."""
    return _MACHINE.format(rate=1 if rate is None else int(rate))
