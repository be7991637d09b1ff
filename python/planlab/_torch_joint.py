"""The joint graph of PyTorch's AOTAutograd: both passes of training as steps that read and write storages."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any


def require_torch(what: str) -> Any:
    """Returns the module `torch`.

    Raises ImportError, which names `what` needs it, if PyTorch is missing or older than 2.4.
    """
    try:
        import torch
    except ImportError as error:
        raise ImportError(f"{what} needs PyTorch, which cannot be imported: {error}") from error
    release = tuple(int(part) for part in torch.__version__.split(".")[:2])
    if release < (2, 4):
        raise ImportError(f"{what} needs PyTorch 2.4 or later; this is {torch.__version__}")
    return torch


@dataclass(eq=False, slots=True)
class Step:
    """A node of the joint graph."""

    number: int
    """Its position in the graph."""
    node: Any
    reads: tuple[int, ...]
    """The steps whose values it reads, each once."""
    storages: tuple[int, ...]
    """The storages of its tensors, as indexes of `JointGraph.bytes`."""
    fresh: tuple[int, ...] = ()
    """Those of them that no step before it has: memory that it allocates."""
    is_backward: bool = False
    """Whether it depends on a gradient of an output."""
    is_overwritten: bool = False
    """Whether it is an input, or a view of one, that is overwritten before the backward pass."""
    is_fixed: bool = False
    """Whether it may not run a second time: it is not known to return the same again, or reads what is overwritten."""
    seconds: float = 0.0

    @property
    def is_getitem(self) -> bool:
        return self.node.target is operator.getitem

    @property
    def name(self) -> str:
        return str(self.node.name)

    @property
    def sequence(self) -> int | None:
        """The number that autograd gave to the operation; its gradient has the same."""
        number = self.node.meta.get("seq_nr")
        return None if number is None else int(number)


class JointGraph:
    """A joint graph; of its outputs the first `outputs` are those of the forward pass, the others are gradients."""

    def __init__(self, graph: Any, outputs: int) -> None:
        self.graph = graph
        self.outputs = outputs
        self.steps: list[Step] = []
        self.bytes: list[int] = []
        """The size of each storage; 0 if it exists before the step."""
        self._by_node: dict[Any, int] = {}
        self._storages: dict[int, int] = {}
        self._overwritten = overwritten_storages(graph)
        results: list[Any] = []
        for node in graph.nodes:
            if node.op == "output":
                results = list(node.args[0])
            else:
                self._append(node)
        self.results = self._numbers(results[:outputs])
        """The steps whose values the forward pass returns."""
        self.gradients = self._numbers(results[outputs:])
        """The steps whose values the backward pass returns."""
        self.copied_bytes = copied_gradient_bytes(self._nodes_of(self.inputs), results[outputs:])
        """The bytes of the gradients that autograd copies after the backward pass."""
        self.writes = [step.number for step in self.steps if is_mutating(step.node.target) and not step.is_backward]
        """The steps of the forward pass that write to an input, such as a buffer."""

    def _numbers(self, nodes: Iterable[Any]) -> list[int]:
        return [self._by_node[node] for node in nodes if node in self._by_node]

    def _nodes_of(self, numbers: Iterable[int]) -> list[Any]:
        return [self.steps[number].node for number in numbers]

    def _append(self, node: Any) -> None:
        reads = tuple(self._by_node[read] for read in node.all_input_nodes)
        step = Step(len(self.steps), node, reads, ())
        step.is_backward = is_tangent(node) or any(self.steps[read].is_backward for read in reads)
        exists = (is_placeholder(node) and not is_tangent(node)) or node.op == "get_attr"
        fresh = []
        found = []
        for tensor in tensors_of(node.meta.get("val")):
            storage = tensor.untyped_storage()
            if (key := storage._cdata) not in self._storages:
                self._storages[key] = len(self.bytes)
                self.bytes.append(0 if exists else int(storage.nbytes()))
                fresh.append(self._storages[key])
            found.append(self._storages[key])
        step.storages = tuple(dict.fromkeys(found))
        step.fresh = tuple(fresh) if not exists else ()
        reads_overwritten = any(self.steps[read].is_overwritten for read in reads)
        if exists:
            keys = {tensor.untyped_storage()._cdata for tensor in tensors_of(node.meta.get("val"))}
            step.is_overwritten = not keys.isdisjoint(self._overwritten)
        else:
            step.is_overwritten = not fresh and reads_overwritten
        step.is_fixed = bool(step.fresh) and (not is_repeatable(node.target) or reads_overwritten)
        self._by_node[node] = step.number
        self.steps.append(step)

    def number_of(self, node: Any) -> int | None:
        """The step of a node of the graph."""
        return self._by_node.get(node)

    @cached_property
    def inputs(self) -> list[int]:
        """The parameters, buffers and inputs of the module."""
        return [step.number for step in self.steps if is_placeholder(step.node) and not step.is_backward]

    @cached_property
    def tangents(self) -> list[int]:
        return [step.number for step in self.steps if is_placeholder(step.node) and step.is_backward]

    @cached_property
    def forward(self) -> list[int]:
        """The steps of the forward pass, in order."""
        return sorted(self.ancestors(self.results, self.inputs) - set(self.inputs))

    @cached_property
    def required(self) -> set[int]:
        """The steps of the forward pass whatever is saved: those that its results and its writes to inputs need."""
        return self.ancestors([*self.results, *self.writes], self.inputs) - set(self.inputs)

    @cached_property
    def users(self) -> list[list[int]]:
        users: list[list[int]] = [[] for _ in self.steps]
        for step in self.steps:
            for read in step.reads:
                users[read].append(step.number)
        return users

    @cached_property
    def makers(self) -> dict[int, int]:
        """For each step of the forward side, the step that allocated what it is a view or an element of, or itself.

        A step that makes nothing and views nothing has no maker.
        """
        makers: dict[int, int] = {}
        owners: dict[int, int] = {}
        for step in self.steps:
            if step.is_backward:
                continue
            for storage in step.fresh:
                owners.setdefault(storage, step.number)
            if (owner := next((owners[held] for held in step.storages if held in owners), None)) is not None:
                makers[step.number] = owner
        return makers

    def ancestors(self, numbers: Iterable[int], stops: Iterable[int] = ()) -> set[int]:
        """The steps that the given ones depend on, themselves included; `stops` are included, but not followed."""
        stop, seen, waiting = set(stops), set(), list(numbers)
        while waiting:
            number = waiting.pop()
            if number in seen:
                continue
            seen.add(number)
            if number not in stop:
                waiting.extend(self.steps[number].reads)
        return seen


def is_placeholder(node: Any) -> bool:
    return bool(node.op == "placeholder")


def is_tangent(node: Any) -> bool:
    return is_placeholder(node) and "tangents" in str(node.target)


def is_random(operation: Any) -> bool:
    """Whether an operation draws random numbers."""
    tags = getattr(operation, "tags", ())
    return any(str(tag).endswith("nondeterministic_seeded") for tag in tags)


def is_mutating(operation: Any) -> bool:
    """Whether an operation writes to one of its arguments."""
    return bool(getattr(getattr(operation, "_schema", None), "is_mutable", False))


def is_repeatable(operation: Any) -> bool:
    """Whether an operation is known to return the same again: one of PyTorch's own without effects or random numbers.

    Operations of extensions, and those that hold graphs of their own, may do anything.
    """
    return operation is operator.getitem or (is_builtin(operation) and not is_random(operation) and not is_mutating(operation))


def is_builtin(operation: Any) -> bool:
    """Whether an operation is one of PyTorch's own."""
    return getattr(operation, "namespace", "") in ("aten", "prims") and hasattr(operation, "_schema")


def written_arguments(operation: Any, args: Any, kwargs: Any) -> Iterator[Any]:
    """The arguments that an operation writes to, as its schema says."""
    schema = getattr(operation, "_schema", None)
    for place, argument in enumerate(schema.arguments if schema is not None else ()):
        if argument.alias_info is not None and argument.alias_info.is_write:
            given = args[place] if place < len(args) else kwargs.get(argument.name)
            yield from (given if isinstance(given, (tuple, list)) else [given])


def written_nodes(node: Any) -> Iterator[Any]:
    """The nodes that a node writes to."""
    return (given for given in written_arguments(node.target, node.args, node.kwargs) if hasattr(given, "meta"))


def copied_gradient_bytes(inputs: Iterable[Any], gradients: Iterable[Any]) -> int:
    """The bytes of the gradients that autograd copies before it gives them to their inputs, all alive at once.

    It copies one whose strides differ from those of its input, such as an expanded number, and one that is another's, too.
    """
    copied, taken = 0, set()
    for node, gradient in zip(inputs, gradients, strict=False):
        for given, tensor in zip(*(tensors_of(getattr(one, "meta", {}).get("val")) for one in (node, gradient)), strict=False):
            key = tensor.untyped_storage()._cdata
            if key in taken or _strides(given) != _strides(tensor):
                copied += int(tensor.numel()) * int(tensor.element_size())
            taken.add(key)
    return copied


def _strides(tensor: Any) -> list[int]:
    """The strides of the extents above 1."""
    return [stride for length, stride in zip(tensor.shape, tensor.stride(), strict=True) if length != 1]


def replayed_inputs(graph: Any) -> Iterator[Any]:
    """The inputs whose new values the forward pass returns; its caller writes them to the inputs."""
    (output,) = graph.find_nodes(op="output")
    replayed = [found for desc in output.meta.get("desc") or () if (found := getattr(desc, "mutated_input", None))]
    for node in graph.find_nodes(op="placeholder"):
        if node.meta.get("aot_runtime_epilogue_input_mutation") or node.meta.get("desc") in replayed:
            yield node


def overwritten_storages(graph: Any) -> set[int]:
    """The addresses of the storages that the graph, or its caller after the forward pass, writes to."""
    nodes = [written for node in graph.nodes for written in written_nodes(node)]
    nodes.extend(replayed_inputs(graph))
    return {tensor.untyped_storage()._cdata for node in nodes for tensor in tensors_of(node.meta.get("val"))}


def tensors_of(value: Any) -> Iterator[Any]:
    """The tensors in a value: itself, or elements of tuples and lists."""
    if isinstance(value, (tuple, list)):
        for element in value:
            yield from tensors_of(element)
    elif hasattr(value, "untyped_storage"):
        yield value
