"""Decides what `torch.compile` saves between the passes, so that the peak of a step stays within a capacity."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

from ._scheduling import NoSchedule, schedule
from ._torch_budget import Choice, DoesNotFit, JointProblem, Search, find_choice, joint_graph_of, saved_values
from ._torch_check import NotPlanned, check_graph, check_plan
from ._torch_joint import JointGraph, require_torch
from ._torch_live import split
from ._torch_net import training_net
from ._torch_report import FitReport, check_limits, check_scheduler, find_capacity, machine_text
from ._torch_times import measure_steps

torch: Any = require_torch("planlab.torch")


class StepPlanner:
    """Chooses what the forward pass of each graph saves, so that a step takes the least time within a peak in bytes.

    `fit` makes one and puts it in the place of PyTorch's own choice, which limits the bytes that are saved; the peak may be
    far above.

    The peak is that of the joint graph in the order in which the partitioner executes it: what the forward pass allocates
    and returns, what is saved, computed again and held for a moment, and the gradients of parameters, with the copies that
    autograd makes of some. Parameters, buffers, inputs, and what kernels use inside of one operation do not count. Random
    operations, operations of extensions, and those that read a buffer which the step overwrites never run again.
    """

    def __init__(
        self,
        capacity: float | str | None = None,
        *,
        share: float | None = None,
        scheduler: str | None = "joint",
        time_limit: float = 10.0,
    ) -> None:
        """Gives a step a number of bytes, or a share of what it takes if it saves everything.

        capacity: `500MB`, `2GiB`, or a number.
        share: above 0 and at most 1.
        scheduler: the scheduler of planlab from whose schedule the search starts, beside two simple choices; None for none.
        time_limit: seconds for the scheduler and for each search.

        Raises ValueError if not one of `capacity` and `share` is given, or if there is no such scheduler.
        """
        check_scheduler(scheduler)
        self._capacity = check_limits(capacity, share)
        self._share = share
        self._scheduler = scheduler
        self._time_limit = time_limit
        self._waiting = 0
        self.reports: list[FitReport] = []
        """A report for each graph that was compiled."""

    def announce_graph(self) -> None:
        """Says that PyTorch is about to split a joint graph.

        Raises NotPlanned if the graph before it was split without asking.
        """
        self.check_all_planned()
        self._waiting += 1

    def check_all_planned(self) -> None:
        """Raises NotPlanned if a graph was split without asking what to save."""
        if self._waiting > 0:
            raise NotPlanned(
                "a graph was split without a plan, so its peak is unknown: the backend has a partitioner of its own, or no "
                "gradient depends on the loss"
            )

    def choose_values(self, graph: Any, node_info: Any, memory_budget: float = 1.0) -> list[Any]:
        """The nodes to save, in place of the partitioner's own choice, which the budget is for.

        Raises NotPlanned if a plan could change a gradient, DoesNotFit if no choice was found that fits.
        """
        if self._waiting == 0:
            raise NotPlanned("a graph inside of a graph (a nested compiled region) has no peak of its own")
        joint = joint_graph_of(graph, node_info)
        check_graph(joint)
        plan = split(joint, self._choose(joint, node_info).kept)
        self._waiting = 0
        return [joint.steps[number].node for number in plan.saved]

    def _choose(self, joint: JointGraph, node_info: Any) -> Choice:
        measure_steps(joint)
        problem = JointProblem(joint)
        most = Search(problem, 0, 0.0).everything().peak
        capacity = find_capacity(self._capacity, self._share, most)
        start, choice = find_choice(problem, capacity, self._time_limit, lambda: self.starts(joint, node_info, capacity))
        check_plan(joint, split(joint, choice.kept))
        self.reports.append(_report(joint, choice, start, most, capacity))
        return choice

    def starts(self, joint: JointGraph, node_info: Any, capacity: int) -> dict[str, Collection[int]]:
        """Where the search begins: for each start its name, and the steps whose values it saves."""
        scheduled = self._scheduled(joint, node_info, capacity)
        starts: dict[str, Collection[int]] = {} if scheduled is None else {str(self._scheduler): scheduled}
        return starts | {"everything": saved_values(JointProblem(joint)), "nothing": []}

    def _scheduled(self, joint: JointGraph, node_info: Any, capacity: int) -> set[int] | None:
        """What a schedule without copies keeps; None without a schedule.

        The gradients of parameters are no maps, so their room is taken off the capacity.
        """
        if self._scheduler is None:
            return None
        static = [joint.number_of(node) for node in node_info.static_lifetime_input_nodes]
        gradients = {storage for number in joint.gradients for storage in joint.steps[number].storages}
        room = capacity - sum(joint.bytes[storage] for storage in gradients)
        if room <= 0:
            return None
        net = training_net(joint, "step", 1, 0, [number for number in static if number is not None], is_measured=True)
        try:
            found = schedule(
                net, machine=machine_text(None), capacity=room, scheduler=self._scheduler, time_limit=self._time_limit
            )
        except NoSchedule:
            return None
        makers = [net.maps[index].maker for index, kept in found.classes.items() if kept == "keep"]
        return {maker for maker in makers if maker is not None}


@contextmanager
def fit_compiled(planner: StepPlanner) -> Iterator[StepPlanner]:
    """What `torch.compile` compiles in the block is planned."""
    dynamo: Any = importlib.import_module("torch._dynamo")
    dynamo.reset()
    try:
        with _install_planner(planner), dynamo.config.patch(automatic_dynamic_shapes=False):
            yield planner
        planner.check_all_planned()
        if not planner.reports:
            warnings.warn(
                "no graph was planned in the block: nothing was compiled that is trained; the peak is unknown",
                stacklevel=3,
            )
    except Exception as error:
        # The compiler wraps what a planner raises.
        cause: Any = error
        while cause is not None and not isinstance(cause, (DoesNotFit, NotPlanned)):
            cause = getattr(cause, "inner_exception", None) or cause.__cause__
        if cause is None or cause is error:
            raise
        raise cause from None


def takes_plans() -> bool:
    """Whether this PyTorch has a place for a plan, and says what the outputs of a joint graph are."""
    names = ("torch._functorch.config", "torch._functorch.partitioners", "torch._functorch._aot_autograd.descriptors")
    try:
        config, partitioners, descriptors = (importlib.import_module(name) for name in names)
    except ImportError:
        return False
    is_asked = hasattr(config, "joint_custom_pass") and hasattr(partitioners, "choose_saved_values_set")
    return is_asked and hasattr(descriptors, "InputMutationAOTOutput")


@contextmanager
def _install_planner(planner: StepPlanner) -> Iterator[None]:
    """The partitioner asks the planner instead of its own `choose_saved_values_set`.

    A solver of the memory budget is not enough: PyTorch asks it last, and saves what it likes if little would be saved.
    """
    if not takes_plans():
        raise ImportError(f"PyTorch {torch.__version__} has no place for a plan of what a step saves; 2.15 has")
    config: Any = importlib.import_module("torch._functorch.config")
    partitioners: Any = importlib.import_module("torch._functorch.partitioners")
    before, choose = config.joint_custom_pass, partitioners.choose_saved_values_set
    if getattr(choose, "__func__", None) is StepPlanner.choose_values:
        raise RuntimeError("a block of `fit` is inside of another")

    def announce(module: Any, inputs: Any) -> Any:
        planner.announce_graph()
        return before(module, inputs) if callable(before) else module

    # A plan depends on measured times and on the block, so it may neither come from a cache nor go into one.
    settings = {"joint_custom_pass": announce, "enable_autograd_cache": False}
    partitioners.choose_saved_values_set = planner.choose_values
    try:
        with config.patch(settings):
            yield
    finally:
        partitioners.choose_saved_values_set = choose


def _report(joint: JointGraph, choice: Choice, start: str, peak_of_all: int, capacity: int) -> FitReport:
    plan = split(joint, choice.kept)
    ran = set(plan.forward)
    again = [joint.steps[number].name for number in plan.backward if number in ran and joint.steps[number].fresh]
    saved = [joint.steps[number].name for number in plan.saved]
    return FitReport(capacity, choice.peak, peak_of_all, choice.seconds, start, saved, again)
