"""Captures the joint graph of a module's training step without running the step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ._torch_joint import JointGraph, is_placeholder, is_tangent, require_torch


@dataclass(frozen=True)
class CapturedStep:
    """A joint graph with the values of its inputs."""

    joint: JointGraph
    module: Any
    """The graph as a module that PyTorch's interpreter runs."""
    arguments: list[Any]
    """A value for each input of the graph; gradients of outputs are ones."""
    static: list[int]
    """The steps of the graph that are parameters and buffers."""


class _Captured(Exception):
    """Leaves the step before it computes anything."""

    def __init__(self, arguments: Sequence[Any]) -> None:
        super().__init__("captured")
        self.arguments = list(arguments)


def capture_step(call: Callable[..., Any], inputs: Sequence[Any]) -> CapturedStep:
    """The joint graph of a call that returns a loss.

    Raises ValueError if the call has no single graph that needs gradients.
    """
    torch = require_torch("planlab.torch.graph")
    from torch._dynamo.backends.common import aot_autograd
    from torch._functorch.partitioners import min_cut_rematerialization_partition

    graphs: list[tuple[Any, int, list[int]]] = []

    def partition(module: Any, arguments: Any, *, num_fwd_outputs: int, **options: Any) -> Any:
        module.graph.eliminate_dead_code()
        static = options.get("static_lifetime_input_indices") or []
        graphs.append((_copy_module(torch, module), num_fwd_outputs, list(static)))
        return min_cut_rematerialization_partition(module, arguments, num_fwd_outputs=num_fwd_outputs, **options)

    def leave(module: Any, example: Any) -> Any:
        def run(arguments: Sequence[Any]) -> Any:
            raise _Captured(arguments)

        run._boxed_call = True  # type: ignore[attr-defined]
        return run

    backend = aot_autograd(fw_compiler=leave, bw_compiler=leave, partition_fn=partition)
    # What an earlier call compiled for the same code would hide this one.
    torch._dynamo.reset()
    try:
        torch.compile(call, backend=backend, fullgraph=True, dynamic=False)(*inputs)
    except _Captured as captured:
        arguments = captured.arguments
    else:
        arguments = []
    finally:
        torch._dynamo.reset()
    if not graphs:
        raise ValueError("nothing to train: the loss depends on no parameter that requires a gradient")
    return _captured_step(torch, *graphs[0], arguments)


def _copy_module(torch: Any, module: Any) -> Any:
    graph = torch.fx.Graph()
    results = graph.graph_copy(module.graph, {})
    graph.output(results)
    return torch.fx.GraphModule(module, graph)


def _captured_step(torch: Any, module: Any, outputs: int, static: list[int], arguments: list[Any]) -> CapturedStep:
    joint = JointGraph(module.graph, outputs)
    values = iter(arguments)
    filled = []
    for step in joint.steps:
        if is_tangent(step.node):
            filled.append(torch.ones_like(_real(torch, step.node.meta["val"])))
        elif is_placeholder(step.node):
            filled.append(next(values))
    return CapturedStep(joint, module, filled, [joint.inputs[index] for index in static])


def _real(torch: Any, value: Any) -> Any:
    return torch.empty([int(length) for length in value.shape], dtype=value.dtype, device=value.device)
