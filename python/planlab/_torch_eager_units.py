"""What of a tape can be dropped, swapped or computed again: the operations that make a value, and what these read."""

from __future__ import annotations

from dataclasses import dataclass, field

from ._torch_eager_tape import Event, Tape


@dataclass(eq=False, slots=True)
class Unit:
    """An operation of the forward pass that allocates, with the later operations that only write to what it allocated."""

    number: int
    program: list[int]
    """The events to run for its values, in order."""
    storages: tuple[int, ...]
    parents: tuple[int, ...] = ()
    """The storages that its program reads, its own excepted."""
    is_repeatable: bool = True
    is_steady: bool = True
    """Whether its values are complete before they are saved or read by others, so that a copy stays right."""
    is_saved: bool = False
    seconds: float = 0.0
    bytes: int = 0

    @property
    def order(self) -> int:
        """Units can run again in this order: each one after all that it reads."""
        return self.program[-1]


def find_units(tape: Tape) -> list[Unit]:
    """The units of a tape, by number."""
    return _Builder(tape).build()


@dataclass
class _Builder:
    tape: Tape
    units: list[Unit] = field(default_factory=list)
    owners: dict[int, Unit] = field(default_factory=dict)
    last_writes: dict[int, int] = field(default_factory=dict)

    def build(self) -> list[Unit]:
        for index, event in enumerate(self.tape.events):
            if event.fresh and not event.is_backward:
                self._add_unit(index, event)
            if event.writes:
                self._add_write(index, event)
        for unit in self.units:
            self._complete(unit)
        for save in self.tape.saves:
            self._add_save(save.storage, save.packed)
        return self.units

    def _add_unit(self, index: int, event: Event) -> None:
        unit = Unit(len(self.units), [index], event.fresh)
        self.units.append(unit)
        self.owners.update((storage, unit) for storage in event.fresh)

    def _add_write(self, index: int, event: Event) -> None:
        owners = {id(owner): owner for storage in event.writes if (owner := self.owners.get(storage)) is not None}
        is_own = len(owners) == 1 and all(storage in self.owners for storage in event.writes)
        for owner in owners.values():
            if is_own and not event.fresh and not event.is_backward:
                owner.program.append(index)
            else:
                owner.is_repeatable = False
        self.last_writes.update((storage, index) for storage in event.writes)

    def _complete(self, unit: Unit) -> None:
        events = [self.tape.events[index] for index in unit.program]
        unit.seconds = sum(event.seconds for event in events)
        unit.bytes = sum(self.tape.storages[storage].bytes for storage in unit.storages)
        reads = {storage for event in events for storage in event.repeat_reads}
        unit.parents = tuple(sorted(reads.difference(unit.storages)))
        # What is overwritten after the unit has read it cannot be read a second time.
        is_intact = all(
            self.last_writes.get(storage, -1) <= index
            for index, event in zip(unit.program, events, strict=True)
            for storage in event.repeat_reads
            if storage not in unit.storages
        )
        unit.is_repeatable = unit.is_repeatable and is_intact and all(event.is_repeatable for event in events)

    def _add_save(self, storage: int, packed: int) -> None:
        unit = self.owners.get(storage)
        if unit is None:
            return
        unit.is_saved = True
        if self.last_writes.get(storage, -1) >= packed:
            unit.is_steady = unit.is_repeatable = False
