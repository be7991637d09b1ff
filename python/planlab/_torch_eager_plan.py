"""Plans a step without compilation: which values stay, go to the host or are computed again, by a simulation of the tape."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import numpy
from numpy.typing import NDArray

from ._torch_eager_tape import NEVER, Tape
from ._torch_eager_units import Unit, find_units

# A copy that hides behind operations costs this share of its time, so that nothing is copied without need.
_HIDDEN_COST = 0.01


@dataclass
class Layout:
    """What a choice does to the memory and to the time of a step."""

    dropped: set[int]
    """Numbers of the units whose values are not held after their last reader in the forward pass."""
    swapped: set[int]
    """Numbers of the units whose values go to the host."""
    recipes: set[int] = field(default_factory=set)
    """Numbers of the units that have to be able to run again."""
    uses: Counter[int] = field(default_factory=Counter)
    """How often the backward pass uses a storage that is dropped or swapped."""
    holds: dict[int, int] = field(default_factory=dict)
    """Up to which event a storage is held because others are computed from it."""
    levels: list[int] = field(default_factory=list)
    """The most bytes that are live at each event."""
    waits: dict[int, list[int]] = field(default_factory=dict)
    """For an event the storages whose copies have to be complete before it."""
    fetches: dict[int, list[int]] = field(default_factory=dict)
    """For an event the storages that begin to come back before it."""
    rerun: list[int] = field(default_factory=list)
    """Numbers of the units that run again, in order."""
    copied_bytes: int = 0
    """What goes to the host, and comes back."""
    recompute_seconds: float = 0.0
    wait_seconds: float = 0.0


class EagerProblem:
    """The values of a tape that may be dropped or swapped; a choice has `n` for a unit that stays and `~n` for a swapped one.

    `rate` is that of the link to the host in bytes per second; without it nothing is swapped.
    """

    def __init__(self, tape: Tape, rate: float | None) -> None:
        self.tape = tape
        self.units = find_units(tape)
        self.rate = rate
        self.owners = {storage: unit for unit in self.units for storage in unit.storages}
        self.fixed = frozenset[int]()
        self.options: Mapping[int, Sequence[frozenset[int]]] = self._find_options()
        self._base = self._kept_changes()
        self._asks = self._find_asks()
        self._released = self._find_releases()
        self._ready = self._find_ready()

    def _find_options(self) -> dict[int, list[frozenset[int]]]:
        options = {}
        asked = {save.storage for save in self.tape.saves if save.unpacked}
        for number in sorted(self._relevant_units()):
            unit = self.units[number]
            if unit.is_saved and not asked.intersection(unit.storages):
                # Another backward pass may ask for it, at a time that no tape says.
                continue
            found = [frozenset((number,))]
            if self.rate is not None and unit.is_saved and unit.is_steady:
                found.append(frozenset((~number,)))
            if unit.is_repeatable:
                found.append(frozenset[int]())
            if len(found) > 1 and unit.bytes > 0:
                options[number] = found
        return options

    def _relevant_units(self) -> set[int]:
        """The saved units, and what these may be computed from."""
        waiting = [unit for unit in self.units if unit.is_saved]
        seen: set[int] = set()
        while waiting:
            unit = waiting.pop()
            if unit.number in seen:
                continue
            seen.add(unit.number)
            if unit.is_repeatable:
                waiting.extend(self.owners[storage] for storage in unit.parents if storage in self.owners)
        return seen

    def _kept_changes(self) -> NDArray[numpy.int64]:
        """How the live bytes change before each event if everything stays."""
        changes = numpy.zeros(len(self.tape.events) + 1, dtype=numpy.int64)
        for record in self.tape.storages:
            if record.born >= 0:
                changes[record.born] += record.bytes
                changes[self._clip(record.end)] -= record.bytes
        return changes

    def _clip(self, tick: int) -> int:
        return min(tick, len(self.tape.events))

    def _find_asks(self) -> list[tuple[int, int]]:
        """The events in which the backward pass asks for a saved value: the number of the event, and that of the save."""
        asks = [(tick, number) for number, save in enumerate(self.tape.saves) for tick in save.unpacked]
        return sorted((tick, number) for tick, number in asks if self.tape.saves[number].storage in self.owners)

    def _find_releases(self) -> dict[int, int]:
        """For each saved storage the event before which autograd forgets it."""
        released: dict[int, int] = {}
        for save in self.tape.saves:
            released[save.storage] = max(released.get(save.storage, 0), self._clip(save.released))
        return released

    def _find_ready(self) -> dict[int, int]:
        """For each storage the event before which it begins to leave at the latest: when it is saved, or read last."""
        ready: dict[int, int] = {}
        for save in self.tape.saves:
            ready.setdefault(save.storage, save.packed)
        reads: dict[int, int] = {}
        for tick, event in enumerate(self.tape.events):
            if not event.is_backward:
                reads.update((view.storage, tick + 1) for view in event.reads + event.results)
        return reads | ready

    @property
    def outside_bytes(self) -> int:
        """The bytes that outlive the step and no choice changes, such as gradients of parameters."""
        records = self.tape.storages
        return sum(
            record.bytes for number, record in enumerate(records) if record.end == NEVER and number not in self.owners
        )

    def seconds_per_byte(self, number: int) -> float:
        return self.units[number].seconds / max(self.units[number].bytes, 1)

    def simulate(self, kept: frozenset[int], capacity: int) -> tuple[list[int], float]:
        layout = self.lay_out(kept, capacity)
        copies = layout.copied_bytes / self.rate * _HIDDEN_COST if self.rate is not None else 0.0
        return layout.levels, layout.recompute_seconds + layout.wait_seconds + copies

    def lay_out(self, kept: frozenset[int], capacity: int) -> Layout:
        """The lifetimes that a choice leads to; copies are placed so that they keep to the capacity if they can."""
        swapped = {number for number in self.options if ~number in kept}
        dropped = {number for number in self.options if number not in kept and number not in swapped}
        layout = Layout(dropped, swapped)
        self._trace_recipes(layout)
        return _Walk(self, layout, capacity).run()

    def _trace_recipes(self, layout: Layout) -> None:
        """Finds which units have to run again, what these use, and how long that is held."""
        layout.recipes = self._closure((number for number in layout.dropped if self.units[number].is_saved), layout.dropped)
        asked = {self.tape.saves[number].storage for _, number in self._asks}
        for _, number in self._asks:
            layout.uses[self.tape.saves[number].storage] += 1
        seeds = (number for number in layout.dropped if asked.intersection(self.units[number].storages))
        layout.rerun = sorted(self._closure(seeds, layout.dropped), key=lambda number: self.units[number].order)
        for number in layout.rerun:
            layout.uses.update(self.units[number].parents)
        until: dict[int, int] = {}
        for number in sorted(layout.recipes, key=lambda number: self.units[number].order, reverse=True):
            unit = self.units[number]
            released = [self._released.get(storage, 0) for storage in unit.storages]
            until[number] = max(until.get(number, 0), *released)
            for storage in unit.parents:
                owner = self.owners.get(storage)
                if owner is not None and owner.number in layout.dropped:
                    until[owner.number] = max(until.get(owner.number, 0), until[number])
                elif owner is not None:
                    layout.holds[storage] = max(layout.holds.get(storage, 0), until[number])

    def _closure(self, seeds: Iterable[int], dropped: set[int]) -> set[int]:
        waiting, seen = list(seeds), set()
        while waiting:
            number = waiting.pop()
            if number in seen:
                continue
            seen.add(number)
            owners = (self.owners.get(storage) for storage in self.units[number].parents)
            waiting.extend(owner.number for owner in owners if owner is not None and owner.number in dropped)
        return seen


class _Walk:
    """Goes through the events of a step for one choice."""

    def __init__(self, problem: EagerProblem, layout: Layout, capacity: int) -> None:
        self._problem = problem
        self._tape = problem.tape
        self._layout = layout
        self._capacity = capacity
        self._changes = problem._base.copy()
        self._corrections: dict[int, int] = {}
        self._extra_seconds: dict[int, float] = {}
        self._left = Counter(layout.uses)
        self._ends: dict[int, int] = {}
        """Up to which event autograd holds a storage that came back."""
        self._present: set[int] = set()
        self._first_uses: dict[int, int] = {}
        """The event that first uses a swapped storage."""
        self._done: set[int] = set()

    def run(self) -> Layout:
        self._change_forward()
        for tick, number in self._problem._asks:
            self._ask(tick, number)
        levels = numpy.cumsum(self._changes[:-1])
        for tick, correction in self._corrections.items():
            levels[tick] += correction
        self._layout.recompute_seconds = sum(self._extra_seconds.values())
        if self._layout.swapped:
            levels = _Copies(self._problem, self._layout, levels, self._capacity).place(self._first_uses, self._times())
        self._layout.levels = levels.tolist()
        return self._layout

    def _times(self) -> list[float]:
        """When each event begins, and last when the step ends."""
        seconds = [event.seconds + self._extra_seconds.get(tick, 0.0) for tick, event in enumerate(self._tape.events)]
        return list(accumulate(seconds, initial=0.0))

    def _change_forward(self) -> None:
        """Ends what is dropped or swapped with its last reader, and holds what others are computed from."""
        for storage, until in self._layout.holds.items():
            record = self._tape.storages[storage]
            if self._problem.owners[storage].number not in self._layout.swapped and until > record.end:
                self._move_end(storage, record.end, until)
        for number in self._layout.dropped | self._layout.swapped:
            for storage in self._problem.units[number].storages:
                record = self._tape.storages[storage]
                self._move_end(storage, record.end, min(record.natural, record.end))

    def _move_end(self, storage: int, before: int, after: int) -> None:
        size = self._tape.storages[storage].bytes
        self._changes[self._problem._clip(before)] += size
        self._changes[self._problem._clip(after)] -= size

    def _ask(self, tick: int, number: int) -> None:
        save = self._tape.saves[number]
        owner = self._problem.owners[save.storage]
        if owner.number not in self._layout.dropped and owner.number not in self._layout.swapped:
            return
        live = _Chain()
        self._provide(tick, save.storage, live)
        record, clip = self._tape.storages[save.storage], self._problem._clip
        # A gradient may be a view of the value.
        is_viewed = record.natural <= tick and clip(record.end) > self._problem._released[save.storage]
        end = max(self._ends.get(save.storage, 0), clip(save.returned), clip(record.end) if is_viewed else 0)
        self._ends[save.storage] = end
        self._use(tick, save.storage, live)
        if live.total:
            self._corrections[tick] = live.peak - live.total

    def _provide(self, tick: int, storage: int, live: _Chain) -> None:
        """Brings a storage back, or computes it, from what is there."""
        chain = self._missing_units(storage)
        if not chain:
            self._fetch(tick, storage)
        for number in chain:
            self._run_again(tick, self._problem.units[number], live)

    def _missing_units(self, storage: int) -> list[int]:
        owner = self._problem.owners.get(storage)
        waiting = [] if owner is None else [owner.number]
        seen: set[int] = set()
        while waiting:
            number = waiting.pop()
            if number in seen or number in self._done or number not in self._layout.dropped:
                continue
            seen.add(number)
            owners = (self._problem.owners.get(parent) for parent in self._problem.units[number].parents)
            waiting.extend(owner.number for owner in owners if owner is not None)
        return sorted(seen, key=lambda number: self._problem.units[number].order)

    def _run_again(self, tick: int, unit: Unit, live: _Chain) -> None:
        self._done.add(unit.number)
        for storage in unit.parents:
            self._fetch(tick, storage)
        sizes = {storage: self._tape.storages[storage].bytes for storage in unit.storages}
        live.add(sum(sizes.values()))
        self._extra_seconds[tick] = self._extra_seconds.get(tick, 0.0) + unit.seconds
        for storage, size in sizes.items():
            self._changes[tick] += size
            if self._left[storage] > 0:
                self._present.add(storage)
            else:
                live.add(-size)
                self._changes[tick + 1] -= size
        for storage in unit.parents:
            self._use(tick, storage, live)

    def _fetch(self, tick: int, storage: int) -> None:
        owner = self._problem.owners.get(storage)
        if owner is not None and owner.number in self._layout.swapped and storage not in self._present:
            self._present.add(storage)
            self._first_uses[storage] = tick
            self._changes[tick] += self._tape.storages[storage].bytes

    def _use(self, tick: int, storage: int, live: _Chain) -> None:
        """Counts a use of a storage that came back, and ends it with the last one."""
        if storage not in self._present:
            return
        self._left[storage] -= 1
        if self._left[storage] > 0:
            return
        size, end = self._tape.storages[storage].bytes, self._ends.get(storage, 0)
        if end <= tick:
            live.add(-size)
        self._changes[max(end, tick + 1)] -= size
        self._present.discard(storage)


class _Chain:
    """The bytes that come and go while one saved value is computed again."""

    def __init__(self) -> None:
        self.live = self.peak = self.total = 0

    def add(self, size: int) -> None:
        self.live += size
        self.peak = max(self.peak, self.live)
        self.total += max(size, 0)


class _Copies:
    """Places the copies of swapped storages between the events, one at a time in each direction."""

    def __init__(self, problem: EagerProblem, layout: Layout, levels: NDArray[numpy.int64], capacity: int) -> None:
        self._tape = problem.tape
        self._units = problem.units
        self._ready = problem._ready
        self._released = problem._released
        self._rate = problem.rate or 1.0
        self._layout = layout
        self._levels = levels
        self._capacity = capacity
        self._delay = 0.0

    def place(self, first_uses: Mapping[int, int], times: Sequence[float]) -> NDArray[numpy.int64]:
        """The levels with the copies in them; `times` is when each event begins."""
        leaves = self._place_outward(first_uses, times)
        self._place_inward(first_uses, leaves, times)
        self._layout.wait_seconds = self._delay
        return self._levels

    def _swapped_storages(self, first_uses: Mapping[int, int]) -> Iterator[int]:
        for number in self._layout.swapped:
            storages = self._units[number].storages
            yield from (storage for storage in storages if storage in self._released or storage in first_uses)

    def _seconds(self, storage: int) -> float:
        return self._tape.storages[storage].bytes / self._rate

    def _place_outward(self, first_uses: Mapping[int, int], times: Sequence[float]) -> dict[int, int]:
        """The event before which each storage has left."""
        free, leaves, events = 0.0, {}, len(self._tape.events)
        for storage in sorted(self._swapped_storages(first_uses), key=lambda storage: self._ready[storage]):
            size, natural = self._tape.storages[storage].bytes, min(self._tape.storages[storage].natural, events)
            free = max(free, times[self._ready[storage]] + self._delay) + self._seconds(storage)
            last = max(first_uses.get(storage, events), natural)
            leave = min(max(bisect_left(times, free - self._delay), natural), last)
            self._levels[natural:leave] += size
            above = numpy.flatnonzero(self._levels[natural:leave] > self._capacity)
            if above.size:
                self._levels[natural + int(above[0]) : leave] -= size
                leave = natural + int(above[0])
            if leave < events:
                self._delay += max(free - times[leave] - self._delay, 0.0)
            leaves[storage] = leave
            self._layout.waits.setdefault(leave, []).append(storage)
            self._layout.copied_bytes += size
        return leaves

    def _place_inward(self, first_uses: Mapping[int, int], leaves: Mapping[int, int], times: Sequence[float]) -> None:
        free = 0.0
        for storage, earliest in self._earliest(first_uses, leaves, times):
            use, size = first_uses[storage], self._tape.storages[storage].bytes
            self._layout.copied_bytes += size
            above = numpy.flatnonzero(self._levels[earliest:use] + size > self._capacity)
            begin = earliest + int(above[-1]) + 1 if above.size else earliest
            self._levels[begin:use] += size
            if begin < use:
                self._layout.fetches.setdefault(begin, []).append(storage)
            free = max(free, times[begin] + self._delay) + self._seconds(storage)
            self._delay += max(free - times[use] - self._delay, 0.0)

    def _earliest(
        self, first_uses: Mapping[int, int], leaves: Mapping[int, int], times: Sequence[float]
    ) -> list[tuple[int, int]]:
        """The event at which each storage has to begin to come back so that nothing waits; in the order of their uses."""
        found, deadline = [], float("inf")
        for storage in sorted(first_uses, key=lambda storage: first_uses[storage], reverse=True):
            deadline = min(deadline, times[first_uses[storage]]) - self._seconds(storage)
            begin = bisect_right(times, deadline) - 1
            found.append((storage, min(max(begin, leaves[storage]), first_uses[storage])))
        return found[::-1]
