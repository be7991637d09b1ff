"""A training net out of a joint graph: feature maps, functions, and what each backward pass reads."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import prod
from os import PathLike
from typing import Any

from ._torch_joint import JointGraph, Step, is_placeholder, tensors_of

_KINDS = {"convolution": "convolution", "addmm": "fully-connected", "mm": "fully-connected", "linear": "fully-connected"}


@dataclass
class FeatureMap:
    """A value of the forward pass; the outputs of one operation are one map."""

    name: str
    bytes: int
    add_seconds: float | None = None
    """Measured seconds of summing the parts of its gradient; None if nothing was measured."""
    maker: int | None = None
    """The step of the joint graph that makes it; None for an input of the net."""


@dataclass
class Work:
    """What an accelerator does in a pass."""

    flops: float = 0.0
    bytes: float = 0.0
    launches: int = 0

    def add(self, flops: float, size: float) -> None:
        self.flops += flops
        self.bytes += size
        self.launches += 1


@dataclass
class Function:
    """An operation of the forward pass, with its share of the backward pass."""

    name: str
    kind: str
    inputs: list[int]
    """The maps that it reads, as indexes."""
    output: int
    needs: list[int] = field(default_factory=list)
    """The maps that its backward pass reads: inputs, or the output."""
    forward: Work = field(default_factory=Work)
    backward: Work = field(default_factory=Work)
    forward_seconds: float | None = None
    """Measured seconds; None if nothing was measured."""
    backward_seconds: float | None = None


@dataclass
class TrainingNet:
    """A net in training, as `planlab schedule` reads it."""

    name: str
    batch: int
    parameters: int
    maps: list[FeatureMap]
    functions: list[Function]

    def write(self) -> str:
        """The net as JSON Lines, the format of a training net."""
        header = {"planlab": "training-net", "version": 1, "name": self.name, "batch": self.batch}
        lines: list[dict[str, Any]] = [header | {"parameters": self.parameters}]
        for index, found in enumerate(self.maps):
            line = {"map": index, "name": found.name, "bytes": found.bytes}
            lines.append(line | _given(add_seconds=found.add_seconds))
        lines.extend(_function_line(index, function) for index, function in enumerate(self.functions))
        return "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the net to a file, whole or not at all; compressed if its name ends in `.zst` or `.gz`."""
        from ._native import write_file

        write_file(path, self.write().encode())


def _given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _function_line(index: int, function: Function) -> dict[str, Any]:
    line = {"function": index, "name": function.name, "kind": function.kind, "inputs": function.inputs}
    line |= {"output": function.output, "needs": sorted(function.needs)}
    line |= {"forward": vars(function.forward), "backward": vars(function.backward)}
    return line | _given(forward_seconds=function.forward_seconds, backward_seconds=function.backward_seconds)


def training_net(
    joint: JointGraph, name: str, batch: int, parameters: int, static: Iterable[int], *, is_measured: bool
) -> TrainingNet:
    """The net of a joint graph, with the seconds of its steps if these were measured.

    `static` are the inputs of the graph that are no data: parameters and buffers. They are no maps, and neither is what
    is computed from them alone; its time counts for the function that reads it.
    """
    return _Builder(joint, set(static), is_measured).build(name, batch, parameters)


class _Builder:
    def __init__(self, joint: JointGraph, static: set[int], is_measured: bool) -> None:
        self._joint = joint
        self._is_measured = is_measured
        self._maps: list[FeatureMap] = []
        self._functions: list[Function] = []
        self._map_of_maker: dict[int, int] = {}
        self._function_of_map: dict[int, int] = {}
        self._function_of_step: dict[int, int] = {}
        self._sums: dict[int, int] = {}
        """Steps that sum parts of the gradient of a map."""
        self._forward = set(joint.forward)
        for number in joint.inputs:
            if number not in static:
                self._add_map(joint.steps[number], None)

    def build(self, name: str, batch: int, parameters: int) -> TrainingNet:
        for number in self._joint.forward:
            self._add_forward(self._joint.steps[number])
        if not self._functions:
            raise ValueError("the module computes nothing from its inputs")
        self._place_constants()
        creators = self._creators()
        for step in self._joint.steps:
            if step.number not in self._forward and not is_placeholder(step.node):
                self._add_backward(step, creators)
        self._demote_additions()
        return TrainingNet(name, batch, parameters, self._maps, self._functions)

    def _add_map(self, step: Step, function: int | None) -> int:
        index = len(self._maps)
        size = sum(self._joint.bytes[storage] for storage in step.fresh)
        if function is None:
            size = sum(tensor.untyped_storage().nbytes() for tensor in tensors_of(step.node.meta.get("val")))
        seconds = 0.0 if self._is_measured else None
        self._maps.append(FeatureMap(step.name, max(int(size), 1), seconds, None if function is None else step.number))
        self._map_of_maker[step.number] = index
        if function is not None:
            self._function_of_map[index] = function
        return index

    def _map_of(self, number: int) -> int | None:
        """The map that a step's value is, or is a view or an element of."""
        maker = self._joint.makers.get(number)
        if maker is None:
            maker = self._viewed_input(number)
        return None if maker is None else self._map_of_maker.get(maker)

    def _viewed_input(self, number: int) -> int | None:
        storages = set(self._joint.steps[number].storages)
        inputs = self._joint.inputs
        return next((other for other in inputs if storages & set(self._joint.steps[other].storages)), None)

    def _add_forward(self, step: Step) -> None:
        maps = [found for read in step.reads if (found := self._map_of(read)) is not None]
        inputs = list(dict.fromkeys(maps))
        if not step.fresh:
            if (own := self._map_of(step.number)) is not None and own in self._function_of_map:
                self._count_forward(step, self._function_of_map[own])
            return
        if not inputs:
            return
        index = len(self._functions)
        output = self._add_map(step, index)
        kind = "add" if self._is_plain_addition(step, inputs) else _KINDS.get(_operation(step), "other")
        function = Function(step.name, kind, inputs, output)
        if self._is_measured:
            function.forward_seconds = function.backward_seconds = 0.0
        self._functions.append(function)
        self._count_forward(step, index)

    def _count_forward(self, step: Step, index: int) -> None:
        self._function_of_step[step.number] = index
        function = self._functions[index]
        if step.fresh:
            function.forward.add(_flops(step), _traffic(self._joint, step))
        if function.forward_seconds is not None:
            function.forward_seconds += step.seconds

    def _place_constants(self) -> None:
        """Counts each step that makes no map for the first function that reads its value, directly or through others."""
        for number in reversed(self._joint.forward):
            if number in self._function_of_step:
                continue
            readers = [self._function_of_step[user] for user in self._joint.users[number] if user in self._function_of_step]
            self._count_forward(self._joint.steps[number], min(readers, default=len(self._functions) - 1))

    def _creators(self) -> dict[int, int]:
        """For each number of autograd the function whose gradient has it: that of the first operation with the number."""
        creators: dict[int, int] = {}
        for number in self._joint.forward:
            sequence = self._joint.steps[number].sequence
            if sequence is not None:
                creators.setdefault(sequence, self._function_of_step[number])
        return creators

    def _add_backward(self, step: Step, creators: dict[int, int]) -> None:
        parts = [read for read in step.reads if self._joint.steps[read].is_backward]
        is_sum = _operation(step) == "add" and len(parts) == 2
        views = [self._views_of_gradient(part) for part in parts]
        summed = self._summed_map(views, step) if is_sum else None
        if summed is not None:
            self._count_sum(step, summed, views[0][-1])
            return
        # A sum of gradients has the number of whatever ran before it.
        index = creators.get(step.sequence) if step.sequence is not None and not is_sum else None
        if index is None:
            index = self._neighbour(step)
        needs = self._needs(step)
        later = [self._function_of_map[found] for found in needs if self._function_of_map.get(found, -1) > index]
        self._count_backward(step, max([index, *later]), needs)

    def _count_sum(self, step: Step, summed: int, part: int) -> None:
        self._sums[step.number] = summed
        self._function_of_step[step.number] = self._function_of_step[part]
        found = self._maps[summed]
        if found.add_seconds is not None:
            found.add_seconds += step.seconds

    def _views_of_gradient(self, number: int) -> list[int]:
        """A value of the backward pass, what it is a view or an element of, and so on to the step that computed it."""
        views = [number]
        while not self._joint.steps[number].fresh:
            reads = [read for read in self._joint.steps[number].reads if self._joint.steps[read].is_backward]
            if not reads:
                break
            number = reads[0]
            views.append(number)
        return views

    def _summed_map(self, parts: list[list[int]], step: Step) -> int | None:
        """The last map whose gradient has both parts of a sum; None if both parts come from one backward pass."""
        makers = [part[-1] for part in parts]
        functions = {self._function_of_step.get(maker) for maker in makers}
        if None in functions or (len(functions) == 1 and not any(maker in self._sums for maker in makers)):
            return None
        size = self._joint.bytes[step.fresh[0]] if step.fresh else 0
        first, second = (self._maps_with_gradient(part) for part in parts)
        return max((found for found in first & second if size in self._output_sizes(found)), default=None)

    def _output_sizes(self, index: int) -> set[int]:
        """The bytes of each output that a map is made of."""
        maker = self._maps[index].maker
        return set() if maker is None else {self._joint.bytes[storage] for storage in self._joint.steps[maker].fresh}

    def _maps_with_gradient(self, part: list[int]) -> set[int]:
        """The maps whose gradient a value may be, or may be a part of: additions and copies hand theirs on."""
        waiting: list[int] = []
        for number in part:
            if number in self._sums:
                waiting.append(self._sums[number])
            elif number in self._function_of_step:
                waiting.extend(self._functions[self._function_of_step[number]].inputs)
        found: set[int] = set()
        while waiting:
            index = waiting.pop()
            found.add(index)
            maker = self._function_of_map.get(index)
            if maker is not None and self._hands_gradient_on(self._functions[maker]):
                waiting.extend(self._functions[maker].inputs)
        return found

    def _neighbour(self, step: Step) -> int:
        """A function for a step that autograd did not number: the one whose gradient it reads, else whose maps it reads."""
        for read in step.reads:
            if self._joint.steps[read].is_backward and read in self._function_of_step:
                return self._function_of_step[read]
        makers = [self._function_of_map.get(found) for found in self._needs(step)]
        return max((maker for maker in makers if maker is not None), default=len(self._functions) - 1)

    def _needs(self, step: Step) -> list[int]:
        """The maps of the forward pass that a step of the backward pass reads."""
        found = []
        for read in step.reads:
            maker = self._joint.makers.get(read, self._viewed_input(read))
            if maker is not None and maker in self._map_of_maker:
                found.append(self._map_of_maker[maker])
        # A view of a map reads nothing before an operation reads the view.
        return list(dict.fromkeys(found)) if step.fresh else []

    def _count_backward(self, step: Step, index: int, needs: list[int]) -> None:
        function = self._functions[index]
        self._function_of_step[step.number] = index
        for needed in needs:
            if needed not in function.inputs and needed != function.output:
                function.inputs.append(needed)
            if needed not in function.needs:
                function.needs.append(needed)
        if step.fresh:
            function.backward.add(_flops(step), _traffic(self._joint, step))
        if function.backward_seconds is not None:
            function.backward_seconds += step.seconds

    def _hands_gradient_on(self, function: Function) -> bool:
        """Whether the gradient of an input is that of the output."""
        maker = self._maps[function.output].maker
        return function.kind == "add" or (maker is not None and _operation(self._joint.steps[maker]) == "clone")

    def _is_plain_addition(self, step: Step, inputs: list[int]) -> bool:
        """Whether a step adds two maps of its own shape: the gradient of its output is then that of both."""
        shapes = [tuple(found.shape) for number in [*step.reads, step.number] for found in self._tensors(number)]
        is_scaled = step.node.kwargs.get("alpha", 1) != 1
        return _operation(step) == "add" and len(inputs) == 2 and len(set(shapes)) == 1 and not is_scaled

    def _tensors(self, number: int) -> list[Any]:
        return list(tensors_of(self._joint.steps[number].node.meta.get("val")))

    def _demote_additions(self) -> None:
        """Makes an addition an ordinary function if it has a backward pass, or if nobody reads its output."""
        read = {found for function in self._functions for found in function.inputs}
        for function in self._functions:
            sizes = {self._maps[found].bytes for found in [*function.inputs, function.output]}
            has_pass = function.backward.launches > 0 or bool(function.backward_seconds)
            if function.kind == "add" and (has_pass or len(sizes) > 1 or function.output not in read):
                function.kind = "other"


def _operation(step: Step) -> str:
    """The name of a step's operation without its overload: `add` of `aten.add.Tensor`."""
    packet = getattr(step.node.target, "overloadpacket", step.node.target)
    return str(getattr(packet, "__name__", packet))


def _flops(step: Step) -> float:
    from torch.utils.flop_counter import flop_registry

    count = flop_registry.get(getattr(step.node.target, "overloadpacket", None))
    if count is None:
        # An operation on elements: one operation for each of its results.
        return float(sum(prod(int(length) for length in found.shape) for found in tensors_of(step.node.meta.get("val"))))
    from torch.fx.node import map_arg

    args, kwargs = map_arg((step.node.args, step.node.kwargs), lambda read: read.meta.get("val"))
    return float(count(*args, **kwargs, out_val=step.node.meta.get("val")))


def _traffic(joint: JointGraph, step: Step) -> float:
    """The bytes that a step reads and writes, each tensor once."""
    nodes = [joint.steps[read].node for read in step.reads] + [step.node]
    tensors = [tensor for node in nodes for tensor in tensors_of(node.meta.get("val"))]
    return float(sum(int(tensor.numel()) * tensor.element_size() for tensor in tensors))
