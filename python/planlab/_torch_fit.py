"""A solver for the memory budget of `torch.compile` that holds the peak of a step, not the bytes of what it saves."""

from __future__ import annotations

import importlib
import re
import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ._scheduling import NoSchedule, schedule
from ._torch_budget import Choice, DoesNotFit, Search, joint_graph_of, mark_choice
from ._torch_joint import JointGraph, require_torch
from ._torch_live import split
from ._torch_net import training_net
from ._torch_times import measure_steps

torch: Any = require_torch("planlab.torch")
_passes: Any = importlib.import_module("torch._inductor.custom_graph_pass")
_Base: Any = getattr(_passes, "CustomKnapsackSolver", object)

# A budget at which the partitioner asks its solver; at 0 it saves nothing, and does not ask.
_LEAST_BUDGET = 1e-12
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_UNITS |= {unit + "ib": _UNITS[unit] for unit in "kmgt"} | {"b": 1}
_UNITS |= {unit + "b": 1000**power for power, unit in enumerate("kmgt", 1)}
# Copies to the host are out of question, so their rate is the least. The other rates count for nothing beside measured
# times.
_MACHINE = """name = "recompute"
copy_out = 1
copy_in = 1
flops = 1e12
memory = 1e11
launch = 0
capacity = 9000000000000000
bytes_per_parameter = 0
workspace = 0
"""


@dataclass(frozen=True)
class FitReport:
    """What was decided for one compiled graph."""

    capacity: int
    """The bytes that a step may take."""
    peak: int
    """The most bytes of a step that are live at once."""
    peak_of_all: int
    """The same if the backward pass computes nothing again."""
    recompute_seconds: float
    """Measured time of what the backward pass computes again."""
    start: str
    """Where the search began: "everything" or "nothing" saved, or the scheduler whose schedule it improved."""
    saved: list[str]
    """The names of the values that the forward pass saves, parameters and inputs included."""
    recomputed: list[str]
    """The names of the operations that run again."""


class BudgetSolver(_Base):  # type: ignore[misc]
    """Chooses what `torch.compile` saves, so that a step takes the least time within a peak in bytes.

    Give it to PyTorch as `torch._functorch.config.activation_memory_budget_solver`, with an `activation_memory_budget` just
    above 0, or use `fit`, which does so. PyTorch's own solvers limit the bytes that are saved; the peak may be far above.

    The peak is that of the joint graph in the order in which the partitioner executes it: what the forward pass allocates
    and returns, what is saved, computed again and held for a moment, and the gradients of parameters. Parameters, buffers,
    inputs, and what kernels use inside of one operation do not count. Random operations never run again.
    """

    def __init__(
        self,
        capacity: int | str | None = None,
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

        Raises ValueError if not one of `capacity` and `share` is given, ImportError if this PyTorch takes no solver.
        """
        if _Base is object:
            raise ImportError(f"PyTorch {torch.__version__} takes no solver for its memory budget; 2.15 does")
        if (capacity is None) == (share is None):
            raise ValueError("give one of `capacity` and `share`")
        if share is not None and not 0.0 < share <= 1.0:
            raise ValueError(f"`share` is {share}; it has to be above 0 and at most 1")
        self._capacity = None if capacity is None else parse_bytes(capacity)
        self._share = share
        self._scheduler = scheduler
        self._time_limit = time_limit
        self.reports: list[FitReport] = []
        """A report for each graph that was compiled."""

    def uuid(self) -> None:
        """Keeps compiled graphs out of PyTorch's caches: times, and with them the choice, differ from run to run."""
        return

    def __call__(
        self, memory: list[float], joint_graph: Any, max_memory: float, node_info: Any, candidates: list[Any]
    ) -> tuple[list[int], list[int]]:
        """The indexes of the candidates to save, and of those to compute again, as the partitioner asks."""
        if any(isinstance(node.meta.get("val"), torch.SymInt) for node in joint_graph.nodes):
            raise ValueError("a step with dynamic shapes has no fixed peak; compile with `dynamic=False`")
        joint = joint_graph_of(joint_graph, node_info)
        choice = self._choose(joint, node_info)
        mark_choice(joint, choice)
        again = [index for index, node in enumerate(candidates) if not _is_kept(joint, choice, node)]
        _check_cut(joint, choice, joint_graph, node_info, [candidates[index] for index in again])
        return [index for index in range(len(candidates)) if index not in set(again)], again

    def _choose(self, joint: JointGraph, node_info: Any) -> Choice:
        measure_steps(joint)
        most = Search(joint, 0, 0.0).everything().peak
        capacity = self._capacity if self._capacity is not None else int(most * (self._share or 1.0))
        search = Search(joint, capacity, self._time_limit)
        everything: dict[str, Collection[int]] = {"everything": search.free}
        start, choice = search.best_from(everything if most <= capacity else self.starts(joint, node_info, capacity))
        if choice.excess > 0:
            least = search.least_peak(choice)
            raise DoesNotFit(
                f"the step does not fit {capacity} bytes: the least peak that was found is {least} bytes "
                f"({most} if it saves everything)",
                least,
            )
        self.reports.append(_report(joint, choice, start, most, capacity))
        return choice

    def starts(self, joint: JointGraph, node_info: Any, capacity: int) -> dict[str, Collection[int]]:
        """Where the search begins: for each start its name, and the steps whose values it saves."""
        scheduled = self._scheduled(joint, node_info, capacity)
        starts: dict[str, Collection[int]] = {} if scheduled is None else {str(self._scheduler): scheduled}
        return starts | {"everything": Search(joint, capacity, 0.0).free, "nothing": []}

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
                net, machine=_MACHINE, capacity=room, scheduler=self._scheduler, time_limit=self._time_limit
            )
        except NoSchedule:
            return None
        makers = [net.maps[index].maker for index, kept in found.classes.items() if kept == "keep"]
        return {maker for maker in makers if maker is not None}


@contextmanager
def fit(
    capacity: int | str | None = None,
    *,
    share: float | None = None,
    scheduler: str | None = "joint",
    time_limit: float = 10.0,
) -> Iterator[BudgetSolver]:
    """What `torch.compile` compiles in the block saves so much that a step stays within a capacity.

    Compile and call the module in the block: PyTorch compiles with the first call. The arguments are those of
    `BudgetSolver`, which the block gets: its `reports` say what was decided. Each graph is planned alone, so compile with
    `fullgraph=True`. Code that was compiled before is compiled again.

    Warns if PyTorch asked for no choice, as for a module with checkpoints of its own. Raises DoesNotFit before the first
    step if no choice was found that fits; it has the least peak that was found.
    """
    solver = BudgetSolver(capacity, share=share, scheduler=scheduler, time_limit=time_limit)
    functorch: Any = importlib.import_module("torch._functorch.config")
    dynamo: Any = importlib.import_module("torch._dynamo")
    dynamo.reset()
    budget = {"activation_memory_budget": _LEAST_BUDGET, "activation_memory_budget_solver": solver}
    try:
        with functorch.patch(budget), dynamo.config.patch(automatic_dynamic_shapes=False):
            yield solver
        if not solver.reports:
            warnings.warn(
                "no graph was planned in the block: nothing was compiled, or the module says itself what to compute again, "
                "or nothing can be chosen; the peak is unknown",
                stacklevel=3,
            )
    except Exception as error:
        # The compiler wraps what a solver raises.
        cause: Any = error
        while cause is not None and not isinstance(cause, DoesNotFit):
            cause = getattr(cause, "inner_exception", None) or cause.__cause__
        if cause is None or cause is error:
            raise
        raise cause from None


def _is_kept(joint: JointGraph, choice: Choice, node: Any) -> bool:
    number = joint.number_of(node)
    return number is None or joint.makers.get(number, number) in choice.kept


def _check_cut(joint: JointGraph, choice: Choice, graph: Any, node_info: Any, again: list[Any]) -> None:
    """Asks the partitioner what it will save.

    Raises RuntimeError if that is not what was chosen, as the peak would then be another one.
    """
    partitioners: Any = importlib.import_module("torch._functorch.partitioners")
    config: Any = importlib.import_module("torch._functorch.config")
    options = partitioners.MinCutOptions(False, False, False, False, config.ban_recompute_reductions)
    values, _ = partitioners.solve_min_cut(graph, node_info, options, partitioners.OrderedSet(again))
    chosen = {joint.steps[number].name for number in split(joint, choice.kept).saved}
    if (saved := {node.name for node in values}) != chosen:
        odd = ", ".join(sorted(saved ^ chosen))
        raise RuntimeError(f"PyTorch's partitioner does not save what was chosen; the difference is {odd}")


def _report(joint: JointGraph, choice: Choice, start: str, peak_of_all: int, capacity: int) -> FitReport:
    plan = split(joint, choice.kept)
    ran = set(plan.forward)
    again = [joint.steps[number].name for number in plan.backward if number in ran and joint.steps[number].fresh]
    saved = [joint.steps[number].name for number in plan.saved]
    return FitReport(capacity, choice.peak, peak_of_all, choice.seconds, start, saved, again)


def parse_bytes(text: int | str) -> int:
    """The number of bytes that `500MB`, `2GiB`, `8m` (MiB) or a number says.

    Raises ValueError for anything else, and for less than 1 byte.
    """
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-z]*)\s*", str(text).lower())
    if match is None or match[2] not in _UNITS or (size := int(float(match[1]) * _UNITS[match[2]])) < 1:
        raise ValueError(f"{text!r} is no number of bytes such as 500MB, 2GiB or 1000000")
    return size
