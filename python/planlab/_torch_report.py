"""What `fit` is asked, and what it reports."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

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


def parse_bytes(text: int | str) -> int:
    """The number of bytes that `500MB`, `2GiB`, `8m` (MiB) or a number says.

    Raises ValueError for anything else, and for less than 1 byte.
    """
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-z]*)\s*", str(text).lower())
    if match is None or match[2] not in _UNITS or (size := int(float(match[1]) * _UNITS[match[2]])) < 1:
        raise ValueError(f"{text!r} is no number of bytes such as 500MB, 2GiB or 1000000")
    return size


def parse_rate(text: float | str) -> float:
    """The bytes a second that `3GB/s` or a number says.

    Raises ValueError for anything else, and for less than 1 byte a second.
    """
    words = str(text).strip()
    if not isinstance(text, str):
        words = str(int(text))
    elif not words.endswith("/s"):
        raise ValueError(f"{text!r} is no rate such as 3GB/s or 3000000000")
    return float(parse_bytes(words.removesuffix("/s")))


def check_limits(capacity: int | str | None, share: float | None) -> int | None:
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
