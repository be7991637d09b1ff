"""One net, one way to save memory, one process: trains, measures, and prints a line of JSON.

The caller has glibc map every large block (`MALLOC_MMAP_THRESHOLD_`), so that freed memory is gone at once. After the
warm-up one step measures the peak: the kernel's mark of resident memory above what was resident before the step. Another
step counts it operation by operation. Then glibc keeps freed blocks, as it does by itself in a long run, and steps are
timed. `digest` is a digest of the losses and all gradients of the timed steps. Each step has a seed of its own.
"""

import argparse
import contextlib
import ctypes
import functools
import gc
import hashlib
import json
import sys
import time

import budget_nets
import drive
import torch
import torch._functorch.config as functorch_config
import torch._functorch.partitioners as partitioners
from bench import UNMEASURED
from torch.utils.checkpoint import checkpoint

import planlab.torch

# glibc's names for its settings, and what its default rule ends with: blocks of 32 MiB or more come from mmap.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
MOST_FROM_HEAP = 32 << 20


class Trainer:
    """Runs steps of a net, whatever is between the two passes."""

    def __init__(self, arguments):
        blocks = functools.partial(checkpoint, use_reentrant=False)
        run_block = blocks if arguments.contender == "torch/checkpoint" else budget_nets.call_block
        self.net, self.inputs = budget_nets.make_net(arguments.net, arguments.batch, run_block)
        self.run_net = self.net
        self.digest = hashlib.sha256()

    def train(self, number):
        torch.manual_seed(number)
        self.net.zero_grad(set_to_none=True)
        loss = self.run_net(*self.inputs)
        loss.backward()
        self.loss = loss.detach()

    def add_to_digest(self):
        for tensor in (self.loss, *(parameter.grad for parameter in self.net.parameters())):
            self.digest.update(tensor.numpy())

    def count_peak(self, counter, number):
        """The counted bytes of a step above those before it."""
        self.net.zero_grad(set_to_none=True)
        before = counter.peak = counter.live
        self.train(number)
        return counter.peak - before

    def measure_peak(self, number):
        """The resident bytes of a step above those before it."""
        self.net.zero_grad(set_to_none=True)
        gc.collect()
        if not drive.forget_peak():
            raise SystemExit("the kernel does not reset its mark of resident memory (/proc/self/clear_refs)")
        before = drive.status("VmRSS")
        self.train(number)
        return drive.status("VmHWM") - before


@contextlib.contextmanager
def timed_choice(seconds):
    """Adds the seconds that the partitioner of `torch.compile` takes to choose what is saved to a list."""
    choose = partitioners.choose_saved_values_set

    def choose_values(*args, **kwargs):
        began = time.perf_counter()
        values = choose(*args, **kwargs)
        seconds.append(time.perf_counter() - began)
        return values

    partitioners.choose_saved_values_set = choose_values
    try:
        yield
    finally:
        partitioners.choose_saved_values_set = choose


@contextlib.contextmanager
def open_contender(arguments, trainer, seconds):
    """What a contender needs around the steps; yields planlab's planner, or None. Adds seconds of planning to a list."""
    kind, limit = arguments.contender, {"capacity": arguments.capacity, "time_limit": arguments.search_seconds}
    solver = kind.removeprefix("torch/")
    with contextlib.ExitStack() as stack:
        planner = None
        if kind == "planlab/compiled":
            planner = stack.enter_context(planlab.torch.fit(**limit))
        elif kind.startswith("planlab/"):
            planner = stack.enter_context(planlab.torch.fit(trainer.net, link=arguments.link, **limit))
        elif solver == "save-on-cpu":
            stack.enter_context(torch.autograd.graph.save_on_cpu())
        elif arguments.budget is not None:
            settings = {"activation_memory_budget": arguments.budget, "activation_memory_budget_solver": solver}
            stack.enter_context(functorch_config.patch(settings))
        if kind == "planlab/compiled" or arguments.budget is not None:
            stack.enter_context(timed_choice(seconds))
            trainer.run_net = torch.compile(trainer.net, backend="aot_eager", fullgraph=True)
        yield planner


def warm_up(trainer, planner, steps):
    """Runs the first steps; returns the cost of the first one, and the seconds of a later one that planned, or 0."""
    first, planning = None, 0.0
    for number in range(steps):
        had_plan = planner is None or bool(planner.reports)
        measured = drive.measured(trainer.train, range(number, number + 1))
        first = first or measured
        # What is compiled is planned inside of the first step, and timed there.
        if number > 0 and not had_plan and planner.reports:
            planning = measured[0] / 1e9
    return first, planning


def keep_freed_blocks():
    libc = ctypes.CDLL(None)
    libc.mallopt(M_MMAP_THRESHOLD, MOST_FROM_HEAP)
    libc.mallopt(M_TRIM_THRESHOLD, 2 * MOST_FROM_HEAP)


def time_steps(trainer, numbers):
    """What each step took, as `drive.measured` returns it; the digest gets what it computed."""
    keep_freed_blocks()
    trainer.train(0)
    samples = []
    for number in numbers:
        samples.append(drive.measured(trainer.train, range(number, number + 1)))
        trainer.add_to_digest()
    return samples


def count_in_advance(arguments, trainer):
    """The counted peak without compilation under planlab, whose modes hide what they compute from a counter inside."""
    with planlab.torch.LiveCounter() as counter, open_contender(arguments, trainer, []) as planner:
        warm_up(trainer, planner, arguments.warm_up)
        return trainer.count_peak(counter, arguments.warm_up)


def run(arguments):
    trainer = Trainer(arguments)
    is_watched = arguments.contender in ("planlab/eager", "planlab/eager-link")
    counted = count_in_advance(arguments, trainer) if is_watched else None
    seconds = []
    resident = drive.status("VmRSS")
    with open_contender(arguments, trainer, seconds) as planner:
        first, planning = warm_up(trainer, planner, arguments.warm_up)
        measured = trainer.measure_peak(arguments.warm_up)
        if counted is None:
            with planlab.torch.LiveCounter() as counter:
                counted = trainer.count_peak(counter, arguments.warm_up)
        timed = range(arguments.warm_up, arguments.warm_up + arguments.timed)
        samples = time_steps(trainer, timed)
        report = planner.reports[-1] if planner is not None and planner.reports else None
    if planning:
        seconds.append(planning - min(wall for wall, *_ in samples) / 1e9)
    return UNMEASURED | drive.describe_samples(first, samples) | {
        "resident_before": resident,
        "digest": trainer.digest.hexdigest(),
        "planning_ns": round(sum(seconds) * 1e9) if seconds else None,
        "budget": figures(arguments, counted_peak=counted, measured_peak=measured) | planned_figures(report),
    }


def planned_figures(report):
    """What planlab's report says of a step; nothing without a report."""
    if report is None:
        return {}
    return {
        "recompute_ns": round(report.recompute_seconds * 1e9),
        "copied_bytes": getattr(report, "copied_bytes", 0),
    }


def figures(arguments, **measured):
    """The part of a row about memory."""
    names = ("counted_peak", "measured_peak", "least_peak", "recompute_ns", "copied_bytes")
    return {"capacity": arguments.capacity} | dict.fromkeys(names) | measured


def answer(arguments):
    """What was measured; that the step does not fit is an answer too."""
    try:
        return run(arguments)
    except planlab.torch.DoesNotFit as error:
        refused = {"status": "out-of-memory", "reason": str(error)}
        return UNMEASURED | refused | {"budget": figures(arguments, least_peak=error.least)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--net", required=True, choices=budget_nets.NETS)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--contender", required=True)
    parser.add_argument("--capacity", type=int, help="bytes of a step, for planlab")
    parser.add_argument("--budget", type=float, help="PyTorch's activation_memory_budget")
    parser.add_argument("--link", help="the rate of copies to the host, such as 1GB/s")
    parser.add_argument("--search-seconds", type=float, default=10.0, help="planlab's time limit for each search")
    parser.add_argument("--warm-up", type=int, default=5, help="steps before the measured ones; the third one plans")
    parser.add_argument("--timed", type=int, default=5, help="steps that are timed")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    json.dump(answer(arguments), sys.stdout)
    print()


if __name__ == "__main__":
    main()
