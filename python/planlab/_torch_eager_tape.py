"""The tape of a step without compilation: its operations in order, and the storages that they allocate, read and write."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

from ._torch_joint import is_builtin, is_mutating, is_random, require_torch, written_arguments

torch: Any = require_torch("planlab.torch.fit")
_aten = torch.ops.aten
_RUNNING_STATISTICS = ("running_mean", "running_var")
_TENSORS = (torch.Tensor, torch.nn.Parameter)
_SCALARS = {int, float, bool, str, type(None), torch.dtype, torch.device, torch.layout, torch.memory_format}
_RESHAPING = ("aten::set_", "aten::resize_", "aten::resize_as_")
NEVER = 1 << 60
"""The end of what outlives the step."""


class TensorView(NamedTuple):
    """A tensor as a view of a storage, by the number of the storage."""

    storage: int
    dtype: Any
    size: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int


@dataclass(eq=False, slots=True)
class Event:
    """An operation of the step, or the moment when the backward pass asks for a saved value."""

    operation: Any
    """None for a saved value."""
    reads: tuple[TensorView, ...]
    results: tuple[TensorView, ...]
    is_backward: bool
    save: int = -1
    """The number of the saved value that is asked for."""
    fresh: tuple[int, ...] = ()
    """The storages that it allocates."""
    writes: tuple[int, ...] = ()
    """The storages whose content it changes."""
    repeat_reads: tuple[int, ...] = ()
    """The storages that a second run reads."""
    is_repeatable: bool = False
    """Whether a second run on the same values returns the same values, and changes nothing but its own results."""
    seconds: float = 0.0

    def matches(self, other: Event) -> bool:
        return (
            self.operation is other.operation
            and self.save == other.save
            and self.reads == other.reads
            and self.results == other.results
        )


@dataclass(eq=False, slots=True)
class StorageRecord:
    """A storage that the step meets, and its lifetime: the numbers of events that had begun."""

    bytes: int
    """0 if it exists before the step."""
    born: int
    """The event that allocates it; -1 if it exists before the step."""
    end: int = NEVER
    """The first event before which it was free."""
    natural: int = NEVER
    """The first event before which autograd alone held it."""


@dataclass(eq=False, slots=True)
class SaveRecord:
    """A value that the forward pass saves for the backward pass."""

    storage: int
    packed: int
    """The number of events before it was saved."""
    unpacked: list[int] = field(default_factory=list)
    """The events that ask for it."""
    returned: int = NEVER
    """The first event before which the backward pass was done with it."""
    released: int = NEVER
    """The first event before which autograd had forgotten it."""


@dataclass(eq=False, slots=True)
class Tape:
    """A step, from the begin of the forward pass to the end of the backward pass."""

    events: list[Event] = field(default_factory=list)
    storages: list[StorageRecord] = field(default_factory=list)
    saves: list[SaveRecord] = field(default_factory=list)

    def matches(self, other: Tape) -> bool:
        """Whether two steps do the same to storages of the same sizes."""
        return (
            len(self.events) == len(other.events)
            and [record.bytes for record in self.storages] == [record.bytes for record in other.storages]
            and [(save.storage, save.packed) for save in self.saves] == [(save.storage, save.packed) for save in other.saves]
            and all(one.matches(two) for one, two in zip(self.events, other.events, strict=True))
        )

    def level(self) -> list[int]:
        """The bytes that are live at each event."""
        changes = [0] * (len(self.events) + 1)
        for record in self.storages:
            if record.born >= 0:
                changes[record.born] += record.bytes
                changes[min(record.end, len(self.events))] -= record.bytes
        return accumulate_levels(changes)


def accumulate_levels(changes: Sequence[int]) -> list[int]:
    """The sums of changes up to each event; the last change, behind the events, does not count."""
    total, levels = 0, []
    for change in changes[:-1]:
        total += change
        levels.append(total)
    return levels


class Recorder:
    """Numbers storages in the order in which a step meets them, and appends events to a tape.

    Two steps that do the same get the same numbers.
    """

    def __init__(self) -> None:
        self.tape = Tape()
        self._numbers: dict[int, tuple[int, Any]] = {}

    @property
    def tick(self) -> int:
        """The number of events so far."""
        return len(self.tape.events)

    def view(self, tensor: Any) -> TensorView | None:
        """A tensor that the step meets; None if it is no plain view of a storage."""
        return self._view(tensor, -1)

    def views(self, value: Any) -> tuple[TensorView, ...] | None:
        """The tensors in the arguments of an operation; None if one of them is no plain view of a storage."""
        found = [self._view(tensor, -1) for tensor in tensors_in(value)]
        return None if None in found else tuple(found)  # type: ignore[arg-type]

    def number_of(self, tensor: Any) -> int | None:
        """The number of a tensor's storage, if the step has met it."""
        if tensor.layout is not torch.strided:
            return None
        storage = tensor.untyped_storage()
        known = self._numbers.get(storage._cdata)
        return known[0] if known is not None and known[1]() is storage else None

    def number_storage(self, tensor: Any, number: int) -> None:
        """Gives a storage the number of the one that it stands for."""
        storage = tensor.untyped_storage()
        self._numbers[storage._cdata] = (number, weakref.ref(storage))

    def _view(self, tensor: Any, born: int) -> TensorView | None:
        if not is_plain(tensor):
            return None
        storage = tensor.untyped_storage()
        known = self._numbers.get(storage._cdata)
        # A later storage may get the same address.
        if known is None or known[1]() is not storage:
            known = self._meet(storage, born)
        return TensorView(known[0], tensor.dtype, tuple(tensor.shape), tensor.stride(), tensor.storage_offset())

    def _meet(self, storage: Any, born: int) -> tuple[int, Any]:
        number = len(self.tape.storages)
        self.tape.storages.append(StorageRecord(storage.nbytes() if born >= 0 else 0, born))
        known = self._numbers[storage._cdata] = (number, weakref.ref(storage))
        self.note_storage(number, storage)
        return known

    def note_storage(self, number: int, storage: Any) -> None:
        """Receives each storage that the step meets."""

    def operation_event(self, operation: Any, reads: tuple[TensorView, ...] | None, result: Any, is_backward: bool) -> Event:
        """The event of an operation that has run; it is not appended yet."""
        met, tick = len(self.tape.storages), self.tick
        results = [self._view(tensor, tick) for tensor in tensors_in(result)]
        fresh = tuple(range(met, len(self.tape.storages)))
        known = tuple(view for view in results if view is not None)
        event = Event(operation, reads or (), known, is_backward, fresh=fresh)
        event.is_repeatable = reads is not None and len(known) == len(results)
        return event

    def append(self, event: Event) -> None:
        self.tape.events.append(event)


def describe_effects(recorder: Recorder, event: Event, args: Any, kwargs: Any) -> None:
    """Adds to the event of an operation what it writes, and whether and from what it may run again."""
    operation = event.operation
    repeat = repeated_call(operation, args, kwargs)
    numbers = [recorder.number_of(tensor) for tensor in written_tensors(operation, args, kwargs)]
    event.writes = tuple(number for number in numbers if number is not None)
    event.is_repeatable = event.is_repeatable and repeat is not None and None not in numbers
    if repeat is not None:
        views = recorder.views(repeat) or ()
        event.repeat_reads = tuple(dict.fromkeys(view.storage for view in views))


def written_tensors(operation: Any, args: Any, kwargs: Any) -> list[Any]:
    """The tensors that an operation writes to."""
    written = list(written_arguments(operation, args, kwargs)) if is_mutating(operation) else []
    if _updates_statistics(operation, args, kwargs):
        written += [value for name, value in _named_arguments(operation, args, kwargs) if name in _RUNNING_STATISTICS]
    return tensors_in(written)


def repeated_call(operation: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any] | None:
    """The arguments with which an operation may run again; None if it may not.

    An operation that writes to its own earlier results may run again after these. A normalisation in training must not
    update its statistics twice.
    """
    if not is_builtin(operation) or (is_random(operation) and not _drops_nothing(operation, args, kwargs)):
        return None
    if _updates_statistics(operation, args, kwargs):
        if operation is not _aten.native_batch_norm.default:
            return None
        return (*args[:3], None, None, *args[5:]), kwargs
    name = operation._schema.name
    if is_mutating(operation) and (not name.endswith("_") or name in _RESHAPING):
        return None
    return args, kwargs


def _named_arguments(operation: Any, args: Any, kwargs: Any) -> Iterator[tuple[str, Any]]:
    for place, argument in enumerate(operation._schema.arguments):
        yield argument.name, args[place] if place < len(args) else kwargs.get(argument.name, argument.default_value)


def _updates_statistics(operation: Any, args: Any, kwargs: Any) -> bool:
    """Whether a normalisation updates running statistics, which its schema does not say."""
    if not _has_statistics(operation):
        return False
    given = dict(_named_arguments(operation, args, kwargs))
    has_statistics = any(given[name] is not None for name in _RUNNING_STATISTICS if name in given)
    return has_statistics and given.get("training") is not False


@cache
def _has_statistics(operation: Any) -> bool:
    schema = getattr(operation, "_schema", None)
    return schema is not None and any(argument.name in _RUNNING_STATISTICS for argument in schema.arguments)


def _drops_nothing(operation: Any, args: Any, kwargs: Any) -> bool:
    """Whether an operation draws random numbers for a dropout alone, and drops nothing."""
    return dict(_named_arguments(operation, args, kwargs)).get("dropout_p") == 0.0


def is_plain(tensor: Any) -> bool:
    """Whether a tensor is all that its storage, sizes and strides say."""
    return (
        type(tensor) in _TENSORS
        and tensor.layout is torch.strided
        and not (tensor.is_quantized or tensor.is_conj() or tensor.is_neg())
    )


def tensors_in(value: Any) -> list[Any]:
    """The tensors in the arguments or the results of an operation, in order."""
    found: list[Any] = []
    _gather_tensors(value, found)
    return found


def _gather_tensors(value: Any, found: list[Any]) -> None:
    kind = type(value)
    # Asking for instances of tensors takes longer than all else here.
    if kind in _TENSORS:
        found.append(value)
    elif kind in _SCALARS:
        return
    elif isinstance(value, (tuple, list)):
        for element in value:
            _gather_tensors(element, found)
    elif isinstance(value, dict):
        for element in value.values():
            _gather_tensors(element, found)
    elif isinstance(value, torch.Tensor):
        found.append(value)


def map_tensors(value: Any, change: Any) -> Any:
    """Arguments or results with each tensor, in order, as a function changes it."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, (tuple, list)):
        return type(value)(map_tensors(element, change) for element in value)
    if isinstance(value, dict):
        return {key: map_tensors(element, change) for key, element in value.items()}
    return value


def view_of(tensor: Any, view: TensorView) -> Any:
    """The view of a tensor's storage."""
    empty = torch.empty(0, dtype=view.dtype, device=tensor.device)
    return empty.set_(tensor.untyped_storage(), view.offset, view.size, view.stride)
