"""Steps of training: one that is only watched, and one that follows a plan."""

from __future__ import annotations

import time
import weakref
from dataclasses import dataclass, field
from typing import Any

from ._torch_eager_plan import EagerProblem, Layout
from ._torch_eager_saved import Cell, Recipe, Reference, SavedTensor
from ._torch_eager_store import HostStore
from ._torch_eager_tape import (
    Event,
    Recorder,
    SaveRecord,
    Tape,
    describe_effects,
    map_tensors,
    repeated_call,
    written_tensors,
)
from ._torch_joint import require_torch
from ._torch_times import wait_for_devices

torch: Any = require_torch("planlab.torch.fit")


class Step(Recorder):
    """A step while it runs: every operation and every saved tensor passes through it."""

    def __init__(self) -> None:
        super().__init__()
        self.is_open = True
        self.live_saves = 0
        """How many saved tensors of the forward pass autograd still holds."""
        self.is_asked = False
        """Whether a backward pass has asked for what the module saved."""
        self._own_saves = -1
        """How many tensors were saved when the module returned; -1 before that."""
        self._own_live = -1
        """How many of these autograd still holds."""

    @property
    def is_complete(self) -> bool:
        """Whether the backward pass that has run is that of the module, and not of a loss beside it."""
        return self.is_asked or self._own_live == 0

    @property
    def is_forgotten(self) -> bool:
        """Whether the graph of the module is gone without a backward pass."""
        return self._own_saves > 0 and self._own_live == 0 and not self.is_asked

    def end_forward(self) -> None:
        """Notes that the module has returned."""
        self._own_saves, self._own_live = len(self.tape.saves), self.live_saves

    def run(self, operation: Any, args: Any, kwargs: Any) -> Any:
        """Runs an operation of the step."""
        raise NotImplementedError

    def save(self, tensor: Any) -> SavedTensor:
        """What autograd holds for a tensor that the forward pass saves."""
        view = self.view(tensor)
        if view is None:
            return SavedTensor(tensor)
        number = len(self.tape.saves)
        self.tape.saves.append(SaveRecord(view.storage, self.tick))
        self.live_saves += 1
        is_outside = self.tape.storages[view.storage].born < 0
        return SavedTensor(tensor, self, number, is_leaf=is_outside and tensor.is_leaf)

    def note_unpack(self, number: int) -> None:
        """Notes that the backward pass asks for a saved tensor."""
        self.is_asked = self.is_asked or number < self._own_saves
        if self.is_open:
            self.add_ask(number)

    def add_ask(self, number: int) -> None:
        """Takes that the backward pass asks for a saved tensor."""
        raise NotImplementedError

    def note_release(self, number: int) -> None:
        """Notes that autograd has forgotten a saved tensor."""
        self.live_saves -= 1
        if number < self._own_saves:
            self._own_live -= 1
        if self.is_open:
            self.tape.saves[number].released = self.tick

    def close(self) -> None:
        """Ends the recording; saved tensors stay valid."""
        self.is_open = False


def is_in_backward() -> bool:
    return bool(torch._C._current_graph_task_id() != -1)


def _wrapper_holds() -> int:
    """How often a storage that was seen from Python counts as held by that; it depends on the release of PyTorch."""
    tensor = torch.empty(1)
    address = tensor.untyped_storage()._cdata
    return int(torch._C._storage_Use_Count(address)) - 1


_WRAPPER_HOLDS = _wrapper_holds()


class WatchedStep(Step):
    """A step that runs as it is, and is recorded with its times and the lifetimes of its storages."""

    def __init__(self) -> None:
        super().__init__()
        self._addresses: dict[int, int] = {}
        """The saved storages that others than autograd may hold, and where they are."""
        self._holders: dict[int, int] = {}
        """How often autograd holds each saved storage."""
        self._lent: dict[int, list[int]] = {}
        """What the backward pass asked for and may still read, by storage."""

    def run(self, operation: Any, args: Any, kwargs: Any) -> Any:
        self._find_natural_ends()
        reads = self.views((args, kwargs))
        wait_for_devices(torch)
        began = time.perf_counter()
        result = operation(*args, **kwargs)
        wait_for_devices(torch)
        seconds = time.perf_counter() - began
        event = self.operation_event(operation, reads, result, is_in_backward())
        event.seconds = seconds
        describe_effects(self, event, args, kwargs)
        self.append(event)
        return result

    def save(self, tensor: Any) -> SavedTensor:
        saved = super().save(tensor)
        view = self.view(tensor)
        if view is not None and self.tape.storages[view.storage].born >= 0:
            self._addresses[view.storage] = tensor.untyped_storage()._cdata
            self._holders[view.storage] = self._holders.get(view.storage, 0) + 1
            self._lent.setdefault(view.storage, [])
        return saved

    def add_ask(self, number: int) -> None:
        self._find_natural_ends()
        save = self.tape.saves[number]
        if save.storage in self._lent:
            self._lent[save.storage].append(number)
        save.unpacked.append(self.tick)
        self.append(Event(None, (), (), True, save=number))

    def note_release(self, number: int) -> None:
        super().note_release(number)
        storage = self.tape.saves[number].storage
        if storage in self._holders:
            self._holders[storage] -= 1
            self._note_return(number)

    def _note_return(self, number: int) -> None:
        if self.is_open:
            self.tape.saves[number].returned = min(self.tape.saves[number].returned, self.tick)

    def note_storage(self, number: int, storage: Any) -> None:
        if self.tape.storages[number].born >= 0:
            weakref.finalize(storage, self._end_storage, number).atexit = False

    def _end_storage(self, number: int) -> None:
        if self.is_open:
            record = self.tape.storages[number]
            record.end, record.natural = self.tick, min(record.natural, self.tick)
            self._addresses.pop(number, None)

    def _find_natural_ends(self) -> None:
        """Notes which storages autograd alone holds by now, and holds for later."""
        for storage, address in self._addresses.items():
            if torch._C._storage_Use_Count(address) != self._holders[storage] + _WRAPPER_HOLDS:
                continue
            record = self.tape.storages[storage]
            record.natural = min(record.natural, self.tick)
            for number in self._lent[storage]:
                self._note_return(number)
            self._lent[storage].clear()


@dataclass(eq=False)
class StepPlan:
    """What a step does to keep to a capacity."""

    tape: Tape
    layout: Layout
    problem: EagerProblem
    programs: dict[int, int] = field(default_factory=dict)
    """The unit of each event that has to be able to run again."""
    retired: dict[int, list[int]] = field(default_factory=dict)
    """For an event the storages that the forward pass has read for the last time before it."""
    last_forward: int = -1
    """The last event of the forward pass; the backward pass of another loss may come before it."""

    def __post_init__(self) -> None:
        units = self.problem.units
        for number in self.layout.recipes:
            self.programs.update((index, number) for index in units[number].program)
        last: dict[int, int] = {}
        for tick, event in enumerate(self.tape.events):
            if not event.is_backward:
                self.last_forward = tick
                last.update((view.storage, tick + 1) for view in event.reads + event.results)
        for save in self.tape.saves:
            last[save.storage] = max(last.get(save.storage, 0), save.packed)
        for storage, tick in last.items():
            self.retired.setdefault(tick, []).append(storage)

    def is_dropped(self, storage: int) -> bool:
        owner = self.problem.owners.get(storage)
        return owner is not None and owner.number in self.layout.recipes

    def is_swapped(self, storage: int) -> bool:
        owner = self.problem.owners.get(storage)
        return owner is not None and owner.number in self.layout.swapped


class PlannedStep(Step):
    """A step that follows a plan as long as it does what the tape of the plan says; from then on it runs as it is."""

    def __init__(self, plan: StepPlan, store: HostStore | None) -> None:
        super().__init__()
        self._plan = plan
        self._store = store
        self.departure = ""
        """Where the step left the tape; empty as long as it follows."""
        self._cells: dict[int, Cell] = {}
        """The cells that later operations of the forward pass may read."""
        self._known_cells: weakref.WeakValueDictionary[int, Cell] = weakref.WeakValueDictionary()
        self._recipes: dict[int, Recipe] = {}

    def run(self, operation: Any, args: Any, kwargs: Any) -> Any:
        if self.departure:
            self._preserve(operation, args, kwargs)
            return operation(*args, **kwargs)
        self._begin_event()
        return (self._run_backward if is_in_backward() else self._run_forward)(operation, args, kwargs)

    def _run_forward(self, operation: Any, args: Any, kwargs: Any) -> Any:
        reads, tick, planned = self.views((args, kwargs)), self.tick, self._planned_event()
        if planned is None or planned.operation is not operation or planned.reads != (reads or ()):
            self._depart(str(operation))
            self._preserve(operation, args, kwargs)
        result = operation(*args, **kwargs)
        event = self.operation_event(operation, reads, result, False)
        self.append(event)
        if planned is not None and not self._has_same_results(planned, event):
            self._depart(str(operation))
        if not self.departure and tick in self._plan.programs:
            self._note_call(self._plan.programs[tick], event, args, kwargs)
        return result

    def _run_backward(self, operation: Any, args: Any, kwargs: Any) -> Any:
        """Follows the tape; what the backward pass reads does not matter to the plan, but what it writes does."""
        planned = self._planned_event()
        numbers = {self.number_of(tensor) for tensor in written_tensors(operation, args, kwargs)} - {None}
        if planned is None or planned.operation is not operation or not numbers.issubset(planned.writes):
            self._depart(str(operation))
            self._preserve(operation, args, kwargs)
            return operation(*args, **kwargs)
        is_followed_by_forward = self.tick < self._plan.last_forward
        reads = self.views((args, kwargs)) if is_followed_by_forward else None
        result = operation(*args, **kwargs)
        if is_followed_by_forward:
            # What is new gets the numbers that the forward pass will know it by.
            self.operation_event(operation, reads, result, True)
        self.append(planned)
        return result

    def _planned_event(self) -> Event | None:
        events = self._plan.tape.events
        return events[self.tick] if self.tick < len(events) else None

    def _has_same_results(self, planned: Event, event: Event) -> bool:
        sizes, wanted = self.tape.storages, self._plan.tape.storages
        return (
            planned.results == event.results
            and planned.fresh == event.fresh
            and all(sizes[number].bytes == wanted[number].bytes for number in event.fresh)
        )

    def _begin_event(self) -> None:
        """Frees and fetches what the plan says before the next event."""
        for number in self._plan.retired.get(self.tick, ()):
            self._cells.pop(number, None)
        for number in self._plan.layout.waits.get(self.tick, ()):
            cell = self._known_cells.get(number)
            if cell is not None and cell.copy is not None:
                cell.copy.wait()
                cell.tensor = None
        for number in self._plan.layout.fetches.get(self.tick, ()):
            cell = self._known_cells.get(number)
            if cell is not None and cell.copy is not None and cell.tensor is None:
                cell.copy.begin_fetch()

    def _depart(self, where: str) -> None:
        if not self.departure:
            self.departure = f"operation {self.tick}, {where}"
            self._cells.clear()

    def _preserve(self, operation: Any, args: Any, kwargs: Any) -> None:
        """Copies what an operation overwrites and a gradient needs, so that an unplanned write changes no gradient."""
        for tensor in written_tensors(operation, args, kwargs):
            number = self.number_of(tensor)
            cell = None if number is None else self._known_cells.get(number)
            if cell is None:
                continue
            cell.is_overwritten = cell.can_return
            if cell.tensor is not None:
                cell.hold(_copy_storage(cell.tensor))

    def save(self, tensor: Any) -> SavedTensor:
        saved = super().save(tensor)
        number = len(self.tape.saves) - 1
        view = self.view(tensor)
        if view is None or self.departure:
            return saved
        planned = self._plan.tape.saves
        if number >= len(planned) or (planned[number].storage, planned[number].packed) != (view.storage, self.tick):
            self._depart("a saved tensor")
        elif self._plan.is_dropped(view.storage):
            saved.move_to(self._cells[view.storage], view)
        elif self._plan.is_swapped(view.storage):
            saved.move_to(self._swapped_cell(view.storage, tensor.detach()), view)
        return saved

    def add_ask(self, number: int) -> None:
        if self.departure:
            return
        self._begin_event()
        planned = self._planned_event()
        if planned is None or planned.save != number:
            self._depart(f"the backward pass asks for saved tensor {number}")
        else:
            self.append(planned)

    def close(self) -> None:
        if not self.departure and self.tick != len(self._plan.tape.events):
            self._depart("the end of the step")
        super().close()
        self._cells.clear()
        self._recipes.clear()

    def _note_call(self, unit: int, event: Event, args: Any, kwargs: Any) -> None:
        """Adds an operation to the recipe of its unit."""
        repeat = repeated_call(event.operation, args, kwargs)
        assert repeat is not None
        own = self._plan.problem.units[unit].storages
        recipe = self._recipes.get(unit)
        if recipe is None:
            recipe = self._recipes[unit] = Recipe(self._plan.problem.units[unit].order)
            for place, storage in enumerate(own):
                self._add_output(recipe, place, storage)

        def refer(tensor: Any) -> Reference:
            view = self.view(tensor)
            assert view is not None
            if view.storage in own:
                return Reference(view, None, own.index(view.storage))
            cell = self._source_cell(view.storage, tensor)
            recipe.add_parent(cell)
            return Reference(view, cell)

        recipe.add_call(event.operation, *map_tensors(repeat, refer))
        if self._plan.problem.units[unit].order == self.tick - 1:
            del self._recipes[unit]

    def _add_output(self, recipe: Recipe, place: int, storage: int) -> None:
        cell = self._cells[storage] = self._known_cells[storage] = Cell(self._plan.layout.uses[storage])
        cell.recipe = recipe
        recipe.add_output(place, cell)

    def _source_cell(self, storage: int, tensor: Any) -> Cell:
        """The cell of a storage that a recipe reads."""
        if self._plan.is_swapped(storage):
            return self._swapped_cell(storage, tensor)
        cell = self._cells.get(storage) or self._known_cells.get(storage)
        if cell is None:
            cell = self._cells[storage] = self._known_cells[storage] = Cell()
        if not cell.can_return:
            cell.hold(tensor)
        return cell

    def _swapped_cell(self, storage: int, tensor: Any) -> Cell:
        cell = self._cells.get(storage)
        if cell is None:
            assert self._store is not None
            cell = self._cells[storage] = self._known_cells[storage] = Cell(self._plan.layout.uses[storage])
            cell.hold(tensor)
            cell.copy = self._store.begin_copy(cell.tensor)
        return cell


def _copy_storage(tensor: Any) -> Any:
    """A tensor with a copy of a tensor's whole storage."""
    whole = torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage())
    return whole.clone()
