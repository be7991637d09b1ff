"""The memory of a step: estimated from the joint graph, and counted while it runs."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ._torch_joint import JointGraph, is_placeholder, require_torch, tensors_of


@dataclass(frozen=True)
class Split:
    """How the partitioner executes a joint graph for some saved values."""

    forward: list[int]
    """The steps of the forward pass, in the order of execution."""
    backward: list[int]
    """Those of the backward pass, what it computes again included."""
    saved: list[int]
    """Values that go from the one to the other."""


def split(joint: JointGraph, kept: Collection[int]) -> Split:
    """The two passes if the values of `kept` steps, as far as the backward pass needs them, are saved."""
    return split_at(joint, saveable(joint, kept))


def split_at(joint: JointGraph, values: Collection[int]) -> Split:
    """The two passes if the given values, as far as the backward pass needs them, are saved."""
    stops = set(values) | set(joint.inputs) | set(joint.tangents)
    needed = joint.ancestors(joint.gradients, stops)
    saved = sorted(number for number in needed & stops if not joint.steps[number].is_backward)
    made = [number for number in saved if not is_placeholder(joint.steps[number].node)]
    forward = joint.required | (joint.ancestors(made, joint.inputs) - set(joint.inputs))
    backward = autograd_order(joint, needed - stops)
    return Split(raise_getitems(joint, sorted(forward)), raise_getitems(joint, backward), saved)


def saveable(joint: JointGraph, kept: Collection[int]) -> set[int]:
    """The values to save of steps: a step with several outputs has one for each element."""
    values = set()
    for number in kept:
        elements = [user for user in joint.users[number] if joint.steps[user].is_getitem]
        values.update(elements or [number])
    return values


def autograd_order(joint: JointGraph, needed: set[int]) -> list[int]:
    """The order that PyTorch's `reordering_to_mimic_autograd_engine` gives a backward pass.

    What is computed again comes right before the first step that needs it.
    """
    order, done = [], set()
    for number in sorted(needed):
        if not joint.steps[number].is_backward:
            continue
        waiting, found = [number], set()
        while waiting:
            step = waiting.pop()
            if step in done or step in found or step not in needed:
                continue
            found.add(step)
            waiting.extend(joint.steps[step].reads)
        order.extend(sorted(found))
        done |= found
    # Gradients that depend on no gradient of an output come last.
    rest = sorted(needed - done)
    return order + rest


def raise_getitems(joint: JointGraph, order: Iterable[int]) -> list[int]:
    """Moves each element of a step with several outputs right behind that step."""
    numbers = list(order)
    present = set(numbers)
    elements: dict[int, list[int]] = {}
    for number in numbers:
        step = joint.steps[number]
        if step.is_getitem and step.reads[0] in present:
            elements.setdefault(step.reads[0], []).append(number)
    moved = {element for group in elements.values() for element in group}
    raised: list[int] = []
    for number in numbers:
        if number not in moved:
            raised.append(number)
            raised.extend(elements.get(number, ()))
    return raised


def live_bytes(joint: JointGraph, plan: Split) -> list[int]:
    """The bytes of the step's storages that are live while each step of both passes runs.

    What exists before the step (parameters, buffers, inputs) does not count. What the forward pass returns is live until
    the end, and so are gradients of parameters from where they are made. The last entry is for those that autograd copies.
    """
    first = _Run(joint)
    first.run(plan.forward, [*joint.results, *plan.saved])
    second = _Run(joint)
    second.hold([*joint.results, *plan.saved, *joint.tangents])
    # The caller holds what it got and what it gave, whatever the backward pass still reads of it.
    second.run(plan.backward, [*joint.gradients, *joint.results, *joint.tangents])
    return [*first.profile, *second.profile, second.live + joint.copied_bytes]


class _Run:
    """The storages that are live while steps run one after the other."""

    def __init__(self, joint: JointGraph) -> None:
        self._joint = joint
        self._holders = [0] * len(joint.bytes)
        self.live = 0
        self._held: set[int] = set()
        self.profile: list[int] = []

    def hold(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            self._held.add(number)
            for storage in self._joint.steps[number].storages:
                if self._holders[storage] == 0:
                    self.live += self._joint.bytes[storage]
                self._holders[storage] += 1

    def _release(self, number: int) -> None:
        for storage in self._joint.steps[number].storages:
            self._holders[storage] -= 1
            if self._holders[storage] == 0:
                self.live -= self._joint.bytes[storage]

    def run(self, order: list[int], results: Iterable[int]) -> None:
        last: dict[int, int] = {}
        for place, number in enumerate(order):
            for read in self._joint.steps[number].reads:
                last[read] = place
        kept = set(results)
        dying: list[list[int]] = [[] for _ in order]
        present = self._held | set(order)
        for number, place in last.items():
            if number in present and number not in kept:
                dying[place].append(number)
        for place, number in enumerate(order):
            self.hold([number])
            self.profile.append(self.live)
            for dead in dying[place]:
                self._release(dead)


class LiveCounter:
    """Counts the bytes of storages that operations allocate in a block; `peak` is the most that were live at once.

    What exists before the block, such as parameters, does not count, and neither does what kernels allocate inside of an
    operation and free before it ends. Works for compiled modules that run operations one by one, as `aot_eager` does.
    """

    def __init__(self) -> None:
        self.peak = 0
        self.live = 0
        self._strided = require_torch("planlab.torch.LiveCounter").strided
        self._mode = dispatch_mode(self.run)
        self._known: set[int] = set()

    def __enter__(self) -> LiveCounter:
        self._mode.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._mode.__exit__(*error)

    def run(self, operation: Any, args: Any, kwargs: Any) -> Any:
        """Runs an operation and counts what it allocates."""
        for tensor in self._stored([*args, *kwargs.values()]):
            self.meet(tensor)
        result = operation(*args, **kwargs)
        for tensor in self._stored(result):
            self.allocate(tensor)
        return result

    def _stored(self, value: Any) -> Iterator[Any]:
        """The tensors with a storage; sparse ones have none of their own."""
        return (tensor for tensor in tensors_of(value) if tensor.layout is self._strided)

    def meet(self, tensor: Any) -> None:
        """Notes a tensor that an operation reads: if it is unknown, it was there before."""
        storage = tensor.untyped_storage()
        if (key := storage._cdata) not in self._known:
            self._known.add(key)
            # A later storage may get the same address.
            weakref.finalize(storage, self._known.discard, key)

    def allocate(self, tensor: Any) -> None:
        """Counts the storage of a tensor that an operation returned, if it is new."""
        storage = tensor.untyped_storage()
        key, size = storage._cdata, storage.nbytes()
        if key in self._known:
            return
        self._known.add(key)
        self.live += size
        self.peak = max(self.peak, self.live)
        weakref.finalize(storage, self._free, key, size)

    def _free(self, key: int, size: int) -> None:
        self._known.discard(key)
        self.live -= size


def dispatch_mode(run: Callable[[Any, Any, Any], Any]) -> Any:
    """A mode that has a function run each operation, given with its arguments and keywords."""
    require_torch("planlab.torch")
    from torch.utils._python_dispatch import TorchDispatchMode

    class Mode(TorchDispatchMode):
        @classmethod
        def ignore_compile_internals(cls) -> bool:
            """Compiled code runs as it is; without this it would run uncompiled under a mode."""
            return True

        def __torch_dispatch__(self, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return run(operation, args, kwargs or {})

    return Mode()
