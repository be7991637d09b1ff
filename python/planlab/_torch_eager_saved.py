"""What autograd holds in the place of a saved tensor, and where the bytes of that tensor are."""

from __future__ import annotations

import weakref
from collections import Counter
from typing import Any

from ._torch_eager_store import HostCopy
from ._torch_eager_tape import NEVER, TensorView, tensors_in, view_of
from ._torch_joint import require_torch

torch: Any = require_torch("planlab.torch.fit")


class Cell:
    """The bytes of a storage that a gradient may need: on the device, on the host, or to be computed again."""

    __slots__ = ("__weakref__", "copy", "is_overwritten", "recipe", "tensor", "uses", "version")

    def __init__(self, uses: int = 0) -> None:
        self.tensor: Any = None
        """A tensor with the storage; None if it is not on the device."""
        self.version = 0
        self.uses = uses
        """How often it will be used; a storage that came back is freed after the last use."""
        self.recipe: Recipe | None = None
        self.copy: HostCopy | None = None
        self.is_overwritten = False

    def hold(self, tensor: Any) -> None:
        """Holds the storage of a tensor, whose content has to stay as it is now."""
        # The caller may give the tensor another storage (`tensor.data = ...`). Below autograd a detached tensor would count
        # versions of its own.
        with torch._C._SetExcludeDispatchKeyGuard(torch._C.DispatchKey.ADInplaceOrView, False):
            self.tensor = tensor.detach()
        self.version = _version_of(tensor)

    @property
    def can_return(self) -> bool:
        return self.recipe is not None or self.copy is not None

    def provide(self) -> None:
        """Brings the bytes to the device, whatever has to be computed for them."""
        if self.uses <= 0:
            # A use that the plan does not know: others may follow, and each would compute the whole chain again.
            self.uses = NEVER
        if self.tensor is None and self.copy is not None:
            self.hold(self.copy.fetch())
        if self.tensor is None:
            recipes = _missing_recipes(self)
            pending = Counter(id(cell) for recipe in recipes for cell in recipe.parents)
            pending[id(self)] += 1
            for recipe in recipes:
                recipe.run(pending)

    def finish_use(self, *, is_pending: bool = False) -> None:
        """Counts a use, and frees a storage that can return after the last one."""
        self.uses -= 1
        if self.uses <= 0 and not is_pending and self.can_return:
            self.tensor = None

    def read(self, view: TensorView) -> Any:
        """A view of the storage, which is on the device.

        Raises RuntimeError if the content was modified since it was noted.
        """
        if _version_of(self.tensor) != self.version:
            raise RuntimeError(
                "a tensor from which planlab.torch.fit computes a saved value again was modified by an inplace operation"
            )
        return view_of(self.tensor, view)


class Recipe:
    """How to compute the storages of a unit again: its operations, on what other cells hold."""

    def __init__(self, order: int) -> None:
        self.order = order
        self.parents: list[Cell] = []
        self._calls: list[tuple[Any, bool, Any, Any]] = []
        self._outputs: list[tuple[int, weakref.ref[Cell]]] = []
        """The storages that it allocates, by their place among the fresh ones."""

    def add_call(self, operation: Any, args: Any, kwargs: Any) -> None:
        """Appends an operation; instead of tensors the arguments have pairs of a cell or a place, and a view."""
        # Some operations return more if gradients are enabled.
        self._calls.append((operation, torch.is_grad_enabled(), args, kwargs))

    def add_output(self, place: int, cell: Cell) -> None:
        self._outputs.append((place, weakref.ref(cell)))

    def add_parent(self, cell: Cell) -> None:
        if all(cell is not parent for parent in self.parents):
            self.parents.append(cell)

    def run(self, pending: Counter[int]) -> None:
        """Computes the storages again; `pending` are the uses of cells that this and later recipes of a chain make."""
        for cell in self.parents:
            cell.provide()
        fresh = self._run_calls()
        for place, output in self._outputs:
            made = output()
            if made is not None and (made.uses > 0 or pending[id(made)] > 0):
                made.hold(fresh[place])
        del fresh
        for cell in self.parents:
            pending[id(cell)] -= 1
            cell.finish_use(is_pending=pending[id(cell)] > 0)

    def _run_calls(self) -> list[Any]:
        """The tensors whose storages the first operation allocates; the others write to these."""
        fresh: list[Any] = []

        def read(reference: Reference) -> Any:
            if reference.cell is None:
                return view_of(fresh[reference.place], reference.view)
            return reference.cell.read(reference.view)

        for operation, is_grad_enabled, args, kwargs in self._calls:
            given = map_references((args, kwargs), read)
            with torch.set_grad_enabled(is_grad_enabled), torch._C._AutoDispatchBelowAutograd():
                result = operation(*given[0], **given[1])
            if not fresh:
                fresh = fresh_tensors(given, result)
        return fresh


class Reference:
    """A tensor in the arguments of a recipe: a view of a cell, or of an own result."""

    __slots__ = ("cell", "place", "view")

    def __init__(self, view: TensorView, cell: Cell | None, place: int = -1) -> None:
        self.view = view
        self.cell = cell
        self.place = place


def map_references(value: Any, change: Any) -> Any:
    """Arguments with the tensor of each reference."""
    if isinstance(value, Reference):
        return change(value)
    if isinstance(value, (tuple, list)):
        return type(value)(map_references(element, change) for element in value)
    if isinstance(value, dict):
        return {key: map_references(element, change) for key, element in value.items()}
    return value


def fresh_tensors(arguments: Any, result: Any) -> list[Any]:
    """A tensor for each storage of a result that no argument has, in order."""
    known = {tensor.untyped_storage()._cdata for tensor in tensors_in(arguments)}
    fresh = []
    for tensor in tensors_in(result):
        if (key := tensor.untyped_storage()._cdata) not in known:
            known.add(key)
            fresh.append(tensor)
    return fresh


def _missing_recipes(cell: Cell) -> list[Recipe]:
    """The recipes to run before a cell has its bytes, in order."""
    waiting, seen = [cell], {}
    while waiting:
        recipe = waiting.pop().recipe
        if recipe is None or id(recipe) in seen:
            continue
        seen[id(recipe)] = recipe
        waiting.extend(parent for parent in recipe.parents if parent.tensor is None and parent.copy is None)
    return sorted(seen.values(), key=lambda recipe: recipe.order)


class SavedTensor:
    """What autograd holds of a saved tensor. `step` learns when autograd asks for it, and when it forgets it.

    Autograd itself holds a leaf, and not its storage: `leaf.data = ...` changes what the backward pass reads.
    """

    __slots__ = ("__weakref__", "_cell", "_device", "_number", "_step", "_tensor", "_version", "_view")

    def __init__(self, tensor: Any, step: Any = None, number: int = -1, *, is_leaf: bool = False) -> None:
        self._tensor = tensor if is_leaf else tensor.detach()
        self._version = tensor._version
        self._device = tensor.device.type
        self._cell: Cell | None = None
        self._view: TensorView | None = None
        self._step = step
        self._number = number

    def move_to(self, cell: Cell, view: TensorView) -> None:
        """Leaves the bytes to a cell."""
        self._cell, self._view, self._tensor = cell, view, None

    def restore(self) -> Any:
        """The tensor as it was saved.

        Raises RuntimeError as autograd does if the tensor was modified.
        """
        if self._step is not None:
            self._step.note_unpack(self._number)
        if self._cell is None or self._view is None:
            self._check_version()
            # Another tensor, so that a watched step sees how long the backward pass holds it.
            return self._tensor.detach()
        if self._cell.is_overwritten:
            raise _modified(f"{self._view.dtype} {list(self._view.size)}", self._version + 1, self._version)
        # Operations run again as they were recorded, which is after automatic casts.
        with torch.autocast(self._device, enabled=False):
            self._cell.provide()
        tensor = self._cell.read(self._view)
        self._cell.finish_use()
        self._step.number_storage(tensor, self._view.storage)
        return tensor

    def _check_version(self) -> None:
        if self._tensor._version != self._version:
            shown = f"{self._tensor.type()} {list(self._tensor.shape)}"
            raise _modified(shown, self._tensor._version, self._version)

    def __del__(self) -> None:
        if self._step is not None:
            self._step.note_release(self._number)


def _version_of(tensor: Any) -> int:
    """The version of a tensor's content; PyTorch permits no writes to inference tensors, and counts none."""
    return 0 if tensor.is_inference() else int(tensor._version)


def _modified(shown: str, version: int, expected: int) -> RuntimeError:
    return RuntimeError(
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[{shown}] is at version {version}; expected version {expected} instead"
    )
