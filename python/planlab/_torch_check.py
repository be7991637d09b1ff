"""Refuses training steps that cannot be planned surely, so that no plan changes a gradient."""

from __future__ import annotations

from typing import Any

from ._torch_joint import JointGraph, is_mutating, is_placeholder, is_repeatable, is_tangent, require_torch, tensors_of
from ._torch_live import Split


class NotPlanned(RuntimeError):
    """A compiled graph for which what the backward pass computes again cannot be chosen surely."""


def check_graph(joint: JointGraph) -> None:
    """Raises NotPlanned for a joint graph with parts whose second run, or whose order, could change a gradient."""
    _check_outputs(joint)
    for step in joint.steps:
        node = step.node
        if is_placeholder(node):
            _check_placeholder(node)
        elif is_mutating(node.target):
            _check_write(joint, step.number)
        elif "with_effects" in str(node.target):
            raise NotPlanned(f"{step.name} has effects beyond its results, so its place in a step is fixed")
        if "RECOMPUTE" in str(node.meta.get("recompute", "")):
            raise NotPlanned(f"the module says itself what to compute again (a checkpoint around {step.name})")
        if _has_dynamic_shape(node):
            raise NotPlanned("a step with dynamic shapes has no fixed peak; compile with `dynamic=False`")


def check_plan(joint: JointGraph, plan: Split) -> None:
    """Raises NotPlanned if the backward pass of a plan reads what is overwritten, or repeats what may not run again."""
    for number in plan.saved:
        if joint.steps[number].is_overwritten:
            raise NotPlanned(f"the backward pass reads {joint.steps[number].name}, which the step overwrites before it")
    ran = set(plan.forward)
    for number in plan.backward:
        step = joint.steps[number]
        may_repeat = is_repeatable(step.node.target) or step.node.op == "get_attr"
        if number in ran and (step.is_fixed or not may_repeat):
            raise NotPlanned(f"{step.name} would run in both passes, and may not run twice")


def _check_outputs(joint: JointGraph) -> None:
    """Raises NotPlanned unless the outputs are those of the forward pass, and then one gradient for each input."""
    (output,) = joint.graph.find_nodes(op="output")
    kinds = [type(desc).__name__ for desc in output.meta.get("desc") or ()]
    first, second = kinds[: joint.outputs], kinds[joint.outputs :]
    if len(kinds) != len(output.args[0]) or "GradAOTOutput" in first or set(second) - {"GradAOTOutput", "NoneType"}:
        raise NotPlanned("PyTorch does not say which outputs of the graph are gradients")


def _check_placeholder(node: Any) -> None:
    is_input = str(node.target).startswith("primals") or is_tangent(node)
    if not _has_dynamic_shape(node) and not (is_input and any(True for _ in tensors_of(node.meta.get("val")))):
        raise NotPlanned(f"the graph has an input that is no tensor: {node.name}")


def _check_write(joint: JointGraph, number: int) -> None:
    """Raises NotPlanned for a write other than the last one to an input in the forward pass."""
    step = joint.steps[number]
    is_copy = str(step.node.target) == "aten.copy_.default" and is_placeholder(step.node.args[0])
    if step.is_backward or "backward" in str(step.node.meta.get("partitioner_tag", "")):
        raise NotPlanned(f"the backward pass writes to an input ({step.name})")
    if not is_copy or any(user.op != "output" for user in step.node.users):
        raise NotPlanned(f"{step.name} writes to a value in the middle of the step")


def _has_dynamic_shape(node: Any) -> bool:
    torch = require_torch("planlab.torch.fit")
    return isinstance(node.meta.get("val"), (torch.SymInt, torch.SymFloat, torch.SymBool))
