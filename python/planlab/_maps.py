"""Draws plans and traces as SVG for notebooks: small, self-contained, and legible on light and dark pages."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

MOST = 1000
"""Rectangles that a map has at most."""

# Legible on white and on black alike.
_INK = "#7d7d7d"
_COLOURS = ("#4e8fd0", "#d9822b", "#4aa564", "#c65b8a", "#8d7bd1", "#b09a3e", "#3fa7a3", "#a9745b")
_MARGIN_LEFT, _MARGIN_RIGHT, _MARGIN_TOP, _MARGIN_BOTTOM = 72, 8, 10, 36
_LEGEND_WIDTH = 90


# The letters that planlab's own tables write out, too: controls, marks of direction, format characters, and what is no
# letter at all. Spaces of any width stay.
_UNPRINTABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufdd0-\ufdef"
    "\ufeff\ufff9-\ufffb\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f"
    + "".join(chr(plane << 16 | last) for plane in range(17) for last in (0xFFFE, 0xFFFF))
    + "]"
)


class Buffers(Protocol):
    """What is drawn: a trace, or columns."""

    @property
    def lower(self) -> NDArray[np.int64]: ...
    @property
    def upper(self) -> NDArray[np.int64]: ...
    @property
    def size(self) -> NDArray[np.uint64]: ...
    @property
    def ids(self) -> Sequence[str]: ...
    @property
    def categories(self) -> Sequence[str | None]: ...
    @property
    def arenas(self) -> NDArray[np.uint32]: ...
    @property
    def arena_names(self) -> Sequence[str]: ...


@dataclass(frozen=True, eq=False)
class Columns:
    """Buffers without names, in one arena."""

    lower: NDArray[np.int64]
    upper: NDArray[np.int64]
    size: NDArray[np.uint64]

    @property
    def ids(self) -> Sequence[str]:
        return [str(number) for number in range(len(self.lower))]

    @property
    def categories(self) -> Sequence[str | None]:
        return [None] * len(self.lower)

    @property
    def arenas(self) -> NDArray[np.uint32]:
        import numpy as np

        return np.zeros(len(self.lower), dtype=np.uint32)

    @property
    def arena_names(self) -> Sequence[str]:
        return ["0"]


@dataclass(frozen=True, eq=False)
class _Arena:
    """The buffers of one arena of several."""

    lower: NDArray[np.int64]
    upper: NDArray[np.int64]
    size: NDArray[np.uint64]
    ids: Sequence[str]
    categories: Sequence[str | None]
    arenas: NDArray[np.uint32]
    arena_names: Sequence[str]
    steps: tuple[int, int]


def _steps(buffers: Buffers) -> tuple[int, int]:
    """The first step and the one after the last: those of all arenas, if these are the buffers of one."""
    if isinstance(buffers, _Arena):
        return buffers.steps
    return (int(buffers.lower.min()), int(buffers.upper.max())) if len(buffers.lower) else (0, 1)


def _split(buffers: Buffers) -> list[tuple[Buffers, NDArray[np.bool_]]]:
    """The buffers of each arena, and which of all they are."""
    import numpy as np

    split: list[tuple[Buffers, NDArray[np.bool_]]] = []
    ids, categories, arenas = buffers.ids, buffers.categories, buffers.arenas
    for arena in np.unique(arenas):
        of = arenas == arena
        places = np.flatnonzero(of)
        columns = buffers.lower[of], buffers.upper[of], buffers.size[of]
        names = [ids[at] for at in places], [categories[at] for at in places]
        split.append((_Arena(*columns, *names, arenas[of], buffers.arena_names, _steps(buffers)), of))
    return split


def _names(arenas: list[tuple[Buffers, NDArray[np.bool_]]]) -> list[str]:
    return [own.arena_names[own.arenas[0]] for own, _ in arenas]


def _stacked(pictures: list[str], names: list[str], width: int, height: int) -> str:
    """A picture for each arena with its name, one below the other."""
    whole = len(pictures) * height
    parts = (
        f'<g transform="translate(0 {at * height})">{picture}{_text(_MARGIN_LEFT, _MARGIN_TOP - 2, f"arena {name}")}</g>'
        for at, (picture, name) in enumerate(zip(pictures, names))
    )
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {whole}" width="{width}" height="{whole}" '
        f'style="max-width:100%;height:auto" role="img" font-family="sans-serif" font-size="10" fill="{_INK}">'
    )
    return head + "".join(parts) + "</svg>"


def _shown(text: str) -> str:
    """Text for XML, with letters that are not seen or turn text around written out."""
    return escape(_UNPRINTABLE.sub(lambda found: f"\\u{{{ord(found[0]):x}}}", text))


def size(count: float) -> str:
    """Bytes with a unit: `5.37 GiB`."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} B" if unit == "B" else f"{count:.2f} {unit}"
        count /= 1024
    return f"{count:.2f} TiB"


def page(svg: str, caption: str) -> str:
    """A picture with a line of text below it."""
    return f"<div>{svg}<div>{_shown(caption)}</div></div>"


class _Area:
    """Where steps and bytes lie in a picture. In units of floats: steps may be nanoseconds."""

    def __init__(self, buffers: Buffers, top: int, width: int, height: int) -> None:
        self.width, self.height = width, height
        self.first, self.last = _steps(buffers)
        self.top = max(top, 1)
        self.across = (width - _MARGIN_LEFT - _MARGIN_RIGHT) / (self.last - self.first)
        self.up = (height - _MARGIN_TOP - _MARGIN_BOTTOM) / self.top

    def x(self, step: Any) -> Any:
        return _MARGIN_LEFT + (step - self.first) * self.across

    def y(self, address: Any) -> Any:
        return self.height - _MARGIN_BOTTOM - address * self.up

    def axes(self) -> Iterator[str]:
        left, right, bottom = _MARGIN_LEFT, self.width - _MARGIN_RIGHT, self.height - _MARGIN_BOTTOM
        yield f'<path d="M{left} {_MARGIN_TOP}V{bottom}H{right}" fill="none" stroke="{_INK}"/>'
        yield _text(left - 4, _MARGIN_TOP + 8, size(self.top), "end")
        yield _text(left - 4, bottom, "0", "end")
        yield _text(left, bottom + 13, str(self.first))
        yield _text(right, bottom + 13, f"step {self.last}", "end")

    def picture(self, label: str, parts: Iterator[str]) -> str:
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" width="{self.width}" '
            f'height="{self.height}" style="max-width:100%;height:auto" role="img" font-family="sans-serif" '
            f'font-size="10" fill="{_INK}"><title>{_shown(label)}</title>'
        )
        return head + "".join(parts) + "</svg>"


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}">{_shown(text)}</text>'


def placement(
    buffers: Buffers, offsets: NDArray[np.uint64], top: int, width: int, height: int
) -> str:
    """A rectangle for each buffer, or for the MOST largest: steps by addresses. Each of several arenas has a picture of
    its own below the others."""
    arenas = _split(buffers)
    if len(arenas) > 1:
        tops = [int((offsets[of] + own.size).max()) for own, of in arenas]
        pictures = [placement(own, offsets[of], top, width, height) for (own, of), top in zip(arenas, tops)]
        return _stacked(pictures, _names(arenas), width, height)
    area = _Area(buffers, top, width, height)
    count = len(offsets)

    def parts() -> Iterator[str]:
        if count:
            yield from _rectangles(buffers, offsets, area)
        yield from area.axes()
        if count > MOST:
            note = f"{MOST} of {count} buffers are drawn: those of the most bytes and steps"
            yield _text((_MARGIN_LEFT + width - _MARGIN_RIGHT) / 2, height - _MARGIN_BOTTOM + 13, note, "middle")

    return area.picture(f"A plan of {count} buffers in {size(top)}: steps across, addresses up", parts())


def _rectangles(buffers: Buffers, offsets: NDArray[np.uint64], area: _Area) -> Iterator[str]:
    import numpy as np

    addresses = offsets.astype(np.float64)
    lives = buffers.upper.astype(np.float64) - buffers.lower.astype(np.float64)
    largest = np.sort(np.argsort(-lives * buffers.size, kind="stable")[:MOST])
    ids, categories = buffers.ids, buffers.categories
    kinds = list(dict.fromkeys(categories[at] or "" for at in largest))
    colours = {kind: _COLOURS[number % len(_COLOURS)] for number, kind in enumerate(kinds)}
    for at in largest:
        lower, upper, bytes_ = int(buffers.lower[at]), int(buffers.upper[at]), int(buffers.size[at])
        kind = categories[at] or ""
        # Without categories, neighbours get different colours.
        colour = colours[kind] if any(kinds) else _COLOURS[at % len(_COLOURS)]
        about = f"{ids[at]}{f' ({kind})' if kind else ''}: {size(bytes_)} at {int(addresses[at])}, steps {lower} to {upper}"
        yield (
            f'<rect x="{area.x(lower):.1f}" y="{area.y(addresses[at] + bytes_):.1f}" '
            f'width="{(upper - lower) * area.across:.2f}" height="{bytes_ * area.up:.2f}" fill="{colour}" '
            f'fill-opacity=".8" stroke="{_INK}" stroke-width=".3"><title>{_shown(about)}</title></rect>'
        )
    yield from _legend([kind for kind in kinds if kind], colours, area)


def _legend(kinds: list[str], colours: dict[str, str], area: _Area) -> Iterator[str]:
    room = max((area.width - _MARGIN_LEFT - _MARGIN_RIGHT) // _LEGEND_WIDTH, 1)
    for place, kind in enumerate(kinds[:room]):
        x, y = _MARGIN_LEFT + place * _LEGEND_WIDTH, area.height - 14
        yield f'<rect x="{x}" y="{y}" width="9" height="9" fill="{colours[kind]}"/>'
        last = place == room - 1 and len(kinds) > room
        yield _text(x + 13, y + 8, "..." if last else kind[:14])


def load(buffers: Buffers, width: int, height: int) -> str:
    """The bytes live at each step, in each of several arenas."""
    arenas = _split(buffers)
    if len(arenas) > 1:
        return _stacked([load(own, width, height) for own, _ in arenas], _names(arenas), width, height)
    steps, bytes_ = _load(buffers)
    area = _Area(buffers, int(bytes_.max(initial=0.0)), width, height)

    def parts() -> Iterator[str]:
        if len(steps):
            columns, tops = _by_column(area.x(steps.astype(float)).astype(int), bytes_)
            points = "".join(f"H{x}V{area.y(top):.1f}" for x, top in zip(columns, tops))
            begin, end = f"M{_MARGIN_LEFT} {area.y(0):.1f}", f"H{width - _MARGIN_RIGHT}V{area.y(0):.1f}Z"
            yield f'<path d="{begin}{points}{end}" fill="{_COLOURS[0]}" fill-opacity=".6"/>'
        yield from area.axes()

    # Where buffers may overwrite others, the load leaves their first steps out.
    what = "Live bytes" if getattr(buffers, "permissions", 0) else "Load"
    return area.picture(f"{what} of {len(buffers.lower)} buffers, at most {size(area.top)}", parts())


def _load(buffers: Buffers) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The steps at which the load changes, and what it is from there on."""
    import numpy as np

    steps, which = np.unique(np.concatenate([buffers.lower, buffers.upper]), return_inverse=True)
    change = np.zeros(len(steps))
    sizes = buffers.size.astype(np.float64)
    np.add.at(change, which, np.concatenate([sizes, -sizes]))
    return steps, change.cumsum()


def _by_column(columns: NDArray[np.int64], values: NDArray[np.float64]) -> tuple[list[int], list[float]]:
    """The highest value of each column of pixels."""
    import numpy as np

    first = np.flatnonzero(np.diff(columns, prepend=columns[0] - 1))
    return columns[first].tolist(), np.maximum.reduceat(values, first).tolist()
