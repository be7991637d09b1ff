"""Training steps without compilation within a capacity, on several nets; skipped without PyTorch 2.4."""

import json
import math
import random
import time
import unittest
import warnings
from unittest import mock

try:
    import planlab.torch
    import torch
    from planlab._torch_budget import Search
    from planlab._torch_eager_net import EagerNet
    from planlab._torch_eager_plan import EagerProblem
    from planlab._torch_eager_steps import WatchedStep
    from planlab._torch_eager_store import ThreadStore
    from torch import nn

    from . import torch_nets
    from .torch_steps import STEPS, UNUSUAL, WATCHED, EagerCase, layers

    MISSING = ""
except ImportError as error:
    MISSING, EagerCase = str(error), unittest.TestCase


@unittest.skipIf(MISSING, MISSING)
class EagerNets(EagerCase):
    def setUp(self):
        super().setUp()
        shorter = mock.patch.object(planlab._torch_budget, "_MOST_SECONDS_FOR_LEAST", 2.0)
        shorter.start()
        self.addCleanup(shorter.stop)

    def assert_fits(self, make, **options):
        """Each share that fits has equal gradients and a counted peak that is the planned one."""
        module, inputs = make()
        fitted = 0
        for share in (0.8, 0.6, 0.4):
            with self.subTest(net=make.__name__, share=share, **options):
                try:
                    planner, peaks = self.compare(module, inputs, share=share, **options)
                except planlab.torch.DoesNotFit as error:
                    self.assertGreater(error.least, 0)
                    continue
                (report,) = planner.reports
                self.assertEqual(peaks[:WATCHED], [report.peak_of_all] * WATCHED)
                for peak in peaks[WATCHED:]:
                    self.assertLessEqual(peak, report.peak)
                    self.assertGreater(peak, 0.95 * report.peak)
                self.assertLessEqual(report.peak, report.capacity)
                self.assertLess(report.capacity, report.peak_of_all)
                self.assertTrue(report.recomputed or report.swapped)
                fitted += 1
        return fitted

    def test_recomputed_steps_keep_every_bit(self):
        for make in torch_nets.NETS:
            self.assertGreater(self.assert_fits(make), 0, make.__name__)

    def test_swapped_steps_keep_every_bit(self):
        for make in torch_nets.NETS:
            self.assertGreater(self.assert_fits(make, link="1GB/s"), 0, make.__name__)

    def assert_choices_hold(self, module, inputs, links=(None, "1GB/s", "100MB/s")):
        """Random choices keep every bit and have the peak that the simulation says."""
        numbers = random.Random(0)

        def choose(problem, capacity, time_limit, starts):
            kept = frozenset().union(*(numbers.choice(options) for options in problem.options.values()))
            return "random", Search(problem, capacity, 0.0).evaluate(kept)

        for link in links:
            with mock.patch.object(planlab._torch_eager, "find_choice", choose):
                planner, peaks = self.compare(module, inputs, share=0.5, link=link)
            (report,) = planner.reports
            self.assertLessEqual(max(peaks[WATCHED:]), report.peak)
            self.assertGreater(max(peaks[WATCHED:]), 0.95 * report.peak)

    def test_random_choices_keep_every_bit_and_their_peaks(self):
        for make in torch_nets.NETS:
            with self.subTest(net=make.__name__):
                self.assert_choices_hold(*make())

    def test_unusual_operations_keep_every_bit(self):
        for after in UNUSUAL:
            with self.subTest(operation=after.__name__):
                self.assert_choices_hold(layers(after), (torch.randn(256, 64),), (None, "1GB/s"))

    def test_schedules_are_starts_of_the_search(self):
        module, inputs = torch_nets.gpt()
        for scheduler in ("joint", "capuchin", "superneurons"):
            for link in (None, "1GB/s"):
                planner, peaks = self.compare(module, inputs, share=0.6, link=link, scheduler=scheduler)
                (report,) = planner.reports
                self.assertIn(report.start, {scheduler, "everything", "nothing", "least peak"})
                self.assertLessEqual(max(peaks[WATCHED:]), report.peak)

    def test_net_of_a_tape_has_its_times(self):
        module, inputs = torch_nets.resnet()
        step = WatchedStep()
        with mock.patch.object(planlab._torch_eager, "WatchedStep", return_value=step), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with planlab.torch.fit(module, "1GB"):
                module(*inputs).backward()
        problem = EagerProblem(step.tape, None)
        net = EagerNet(problem)
        lines = [json.loads(line) for line in net.write().splitlines()]
        functions = [line for line in lines if "function" in line]
        passes = sum(line["forward_seconds"] + line["backward_seconds"] for line in functions)
        made = {index for unit in problem.units for index in unit.program}
        events = enumerate(step.tape.events)
        wanted = sum(event.seconds for index, event in events if event.is_backward or index in made)
        self.assertAlmostEqual(passes, wanted)
        found = planlab.schedule(net, scheduler="in-core", time_limit=5.0)
        self.assertTrue(math.isclose(found.seconds, passes, rel_tol=0.2), (found.seconds, passes))

    def test_copies_are_as_many_as_the_report_says(self):
        module, inputs = torch_nets.resnet()
        planner, _ = self.compare(module, inputs, share=0.7, link="1GB/s")
        self.assertEqual(planner.copied_bytes, (STEPS - WATCHED) * planner.reports[0].copied_bytes)

    def test_slow_link_copies_nothing_that_takes_longer(self):
        module, inputs = torch_nets.gpt()
        slow, _ = self.compare(module, inputs, share=0.7, link="1MB/s")
        self.assertFalse(slow.reports[0].swapped)
        store = ThreadStore(20e6)
        began = time.perf_counter()
        copied = store.begin_copy(torch.ones(1_000_000))
        copied.wait()
        self.assertTrue(torch.equal(copied.fetch().view(torch.float32), torch.ones(1_000_000)))
        self.assertGreaterEqual(time.perf_counter() - began, 0.4)

    def test_half_precision_keeps_every_bit(self):
        class Mixed(nn.Module):
            def __init__(self):
                super().__init__()
                layers = [layer for _ in range(4) for layer in (nn.Linear(64, 64), nn.LayerNorm(64), nn.GELU())]
                self.layers = nn.Sequential(*layers)

            def forward(self, x):
                with torch.autocast("cpu", dtype=torch.bfloat16):
                    return self.layers(x).float().square().mean()

        planner, peaks = self.compare(Mixed(), (torch.randn(256, 64),), share=0.7)
        self.assertTrue(planner.reports[0].recomputed)
        self.assertLessEqual(peaks[-1], planner.reports[0].peak)


if __name__ == "__main__":
    unittest.main()
