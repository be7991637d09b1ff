"""Compares what PyTorch's solvers of the memory budget compute again with what planlab does at the same peak.

    OMP_NUM_THREADS=1 target/torch/bin/python scripts/frameworks/recompute_times.py [LAYERS WIDTH BATCH LENGTH]

`scripts/setup-torch` and `pip install ./python` make the environment. The net is that of python/examples/fit_transformer.py.
Each row has the peak of PyTorch's choice, and the measured seconds of what it computes again; then the seconds of planlab's
choice with that peak as its capacity, from each start of its search. Both are judged by the same estimate and the same times.
"""

import pathlib
import sys

import torch
import torch._functorch.config as functorch_config
import torch._functorch.partitioners as partitioners

from planlab._torch_budget import JointProblem, Search, joint_graph_of, recompute_seconds
from planlab._torch_fit import StepPlanner
from planlab._torch_live import live_bytes, split_at
from planlab._torch_times import measure_steps

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "python/examples"))
from fit_transformer import BUDGETS, WORDS, Transformer

SEARCH_SECONDS = 10.0


class Comparison:
    """Stands in for the partitioner's choice, and compares each choice that it makes."""

    def __init__(self):
        self.choose = partitioners.choose_saved_values_set
        self.seconds = {}

    def __call__(self, graph, node_info, memory_budget=1):
        values = self.choose(graph, node_info, memory_budget=memory_budget)
        joint = joint_graph_of(graph, node_info)
        # Measured once, so that all rows have the same times.
        if not self.seconds:
            measure_steps(joint)
            self.seconds = {step.name: step.seconds for step in joint.steps}
        for step in joint.steps:
            step.seconds = self.seconds[step.name]
        plan = split_at(joint, {joint.number_of(node) for node in values})
        peak = max(live_bytes(joint, plan))
        found = self.search(joint, node_info, peak)
        row = [f"{functorch_config.activation_memory_budget_solver} {memory_budget}", f"{peak / 1e6:.1f}"]
        row.append(f"{recompute_seconds(joint, plan):.3f}")
        print("| " + " | ".join(row + found) + " |", flush=True)
        return values

    def search(self, joint, node_info, peak):
        """The seconds of planlab's choices within a peak, from each start."""
        planner = StepPlanner(peak, time_limit=SEARCH_SECONDS)
        cells = []
        for name, start in planner.starts(joint, node_info, peak).items():
            _, choice = Search(JointProblem(joint), peak, SEARCH_SECONDS).best_from({name: start})
            cells.append(f"{choice.seconds:.3f}" if choice.excess == 0 else "does not fit")
        return cells


def main():
    torch.set_num_threads(1)
    layers, width, batch, length = (int(word) for word in sys.argv[1:] or (6, 256, 8, 256))
    model = Transformer(layers, width, length)
    inputs = [torch.randint(0, WORDS, (batch, length)) for _ in range(2)]
    partitioners.choose_saved_values_set = comparison = Comparison()
    print("| solver and budget | peak, MB | PyTorch's, seconds | from joint | from everything | from nothing |")
    print("|---|---|---|---|---|---|")
    for solver in ("greedy", "dp", "ilp"):
        for budget in BUDGETS:
            torch._dynamo.reset()
            with functorch_config.patch(activation_memory_budget=budget, activation_memory_budget_solver=solver):
                torch.compile(model, backend="aot_eager")(*inputs)
    print(f"\nall operations of both passes: {sum(comparison.seconds.values()):.3f} seconds")


if __name__ == "__main__":
    main()
