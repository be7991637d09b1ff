"""PyTorch: a module as a net to schedule, and a training step that fits a capacity.

`graph` turns a module into a training net, which `planlab.schedule` and the program read. `fit` decides what the forward pass
saves and what the backward pass computes again, with `torch.compile` or without, so that a step stays within a number of bytes.
`LiveCounter` counts the bytes that a step takes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, overload

from ._torch_budget import DoesNotFit
from ._torch_capture import capture_step
from ._torch_check import NotPlanned
from ._torch_eager import EagerPlanner, fit_module
from ._torch_eager_store import open_store
from ._torch_fit import StepPlanner, fit_compiled
from ._torch_joint import require_torch
from ._torch_live import LiveCounter
from ._torch_net import FeatureMap, Function, TrainingNet, training_net
from ._torch_report import FitReport, check_limits, check_scheduler, parse_rate
from ._torch_times import measure_run

__all__ = [
    "DoesNotFit",
    "EagerPlanner",
    "FeatureMap",
    "FitReport",
    "Function",
    "LiveCounter",
    "NotPlanned",
    "StepPlanner",
    "TrainingNet",
    "fit",
    "graph",
]


def graph(
    module: Any,
    inputs: Any,
    *,
    loss_fn: Callable[[Any], Any] | None = None,
    times: Literal["measured"] | None = "measured",
    repetitions: int = 5,
) -> TrainingNet:
    """The training net of a module: its feature maps and functions, with the time of each pass.

    module: an `nn.Module`, or a function, in the state in which it is trained. The step must be one graph for
        `torch.compile`.
    inputs: the arguments of a call, a tuple, or a single tensor.
    loss_fn: what turns the output of the module into a loss; without it the output is the loss.
    times: "measured" runs the step `repetitions` + 1 times, operation by operation, where the module is, and takes the
        median of each; None leaves the times to the roofline of a machine. Measuring changes neither parameters nor
        buffers, nor the caller's random numbers.

    Every operation of the forward pass is a function, and its outputs together are one map; views are the map that they
    view. An operation of the backward pass counts for the function whose gradient autograd computes with it. The times of
    the functions, and of the sums of gradients, add up to those of all operations.

    Raises ImportError without PyTorch 2.4, ValueError if there is nothing to train.
    """
    if times not in ("measured", None):
        raise ValueError(f'`times` is {times!r}; it has to be "measured" or None')
    if repetitions < 1:
        raise ValueError(f"`repetitions` is {repetitions}; it has to be 1 or more")
    arguments = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    captured = capture_step(_with_loss(module, loss_fn), arguments)
    if times is not None:
        seconds = measure_run(captured.module, captured.arguments, repetitions)
        for step in captured.joint.steps:
            step.seconds = seconds.get(step.name, 0.0)
    parameters = sum(parameter.numel() for parameter in getattr(module, "parameters", list)())
    name = type(module).__name__ if hasattr(module, "parameters") else getattr(module, "__name__", "step")
    return training_net(
        captured.joint, name, _batch(arguments), parameters, captured.static, is_measured=times is not None
    )


@overload
def fit(
    module: float | str | None = None,
    /,
    capacity: float | str | None = None,
    *,
    share: float | None = None,
    scheduler: str | None = "joint",
    time_limit: float = 10.0,
) -> AbstractContextManager[StepPlanner]: ...


@overload
def fit(
    module: Any,
    /,
    capacity: float | str | None = None,
    *,
    share: float | None = None,
    link: float | str | None = None,
    scheduler: str | None = "joint",
    time_limit: float = 10.0,
) -> AbstractContextManager[EagerPlanner]: ...


def fit(
    module: Any = None,
    /,
    capacity: float | str | None = None,
    *,
    share: float | None = None,
    link: float | str | None = None,
    scheduler: str | None = "joint",
    time_limit: float = 10.0,
) -> AbstractContextManager[Any]:
    """Training steps in the block stay within a capacity, bit for bit: of a module, or of what `torch.compile` compiles.

    `fit(module, capacity="500MB")` plans a module that runs without compilation. `fit("500MB")` plans what is compiled in the
    block; compile with `fullgraph=True`, and call the module in the block.

    capacity: `500MB`, `2GiB`, or a number of bytes.
    share: the capacity as a share of what the step takes if it saves everything: above 0 and at most 1.
    link: how fast values may be copied to the host and back, as `3GB/s`; without it nothing is copied. For modules alone.
    scheduler: the scheduler of planlab from whose schedule the search starts, beside two simple choices; None for none.
    time_limit: seconds for the scheduler and for each search.

    The planner that the block gets has `reports`, which say what was decided. Without compilation the first two steps run as
    they are, and are watched; the third one follows a plan. `steps_planned` and `steps_departed` count the steps with a plan,
    and those that left it. Each compiled graph is planned alone, before it runs.

    Warns if nothing was planned. Raises DoesNotFit, with the least peak found, if no choice was found that fits. Raises
    NotPlanned if a compiled graph cannot be planned surely, as that of a module with checkpoints of its own. Raises ImportError
    if this PyTorch has no place for a plan, and ValueError for a wrong argument.
    """
    if not hasattr(module, "register_forward_pre_hook"):
        if module is not None and capacity is not None:
            raise ValueError("the first of two arguments has to be an `nn.Module`")
        if link is not None:
            raise ValueError("`link` needs a module; what is compiled is not copied")
        given = capacity if module is None else module
        return fit_compiled(StepPlanner(given, share=share, scheduler=scheduler, time_limit=time_limit))
    if isinstance(module, require_torch("planlab.torch.fit").jit.ScriptModule):
        raise ValueError("a ScriptModule runs no hooks, so its steps cannot be planned; give the module that was scripted")
    check_scheduler(scheduler)
    device = next((parameter.device.type for parameter in module.parameters()), "cpu")
    store = None if link is None else open_store(parse_rate(link), device)
    limit = check_limits(capacity, share)
    return fit_module(module, EagerPlanner(limit, share=share, store=store, scheduler=scheduler, time_limit=time_limit))


def _with_loss(module: Any, loss_fn: Callable[[Any], Any] | None) -> Callable[..., Any]:
    if loss_fn is None:
        return module  # type: ignore[no-any-return]
    return lambda *arguments: loss_fn(module(*arguments))


def _batch(arguments: Sequence[Any]) -> int:
    """The first extent of the first argument that has one."""
    extents = [int(argument.shape[0]) for argument in arguments if getattr(argument, "ndim", 0)]
    return max(extents[0], 1) if extents else 1
