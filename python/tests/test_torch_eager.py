"""Training steps without compilation within a capacity; skipped without PyTorch 2.4."""

import contextlib
import copy
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
    from torch.nn import functional
    from torch.utils.checkpoint import checkpoint

    from . import torch_nets

    MISSING = ""
except ImportError as error:
    MISSING = str(error)

STEPS = 5
WATCHED = 2


def train(module, inputs, count=STEPS, counter=None, backward=lambda loss: loss.backward()):
    """The losses and gradients of some steps, the buffers after them, and the counted peak of each step."""
    optimiser = torch.optim.SGD(module.parameters(), lr=0.01, momentum=0.9)
    values, peaks = [], []
    for number in range(count):
        torch.manual_seed(number)
        optimiser.zero_grad(set_to_none=True)
        if counter is not None:
            before = counter.peak = counter.live
        loss = module(*inputs)
        backward(loss)
        if counter is not None:
            peaks.append(counter.peak - before)
        values += [loss.detach().clone(), *(parameter.grad.clone() for parameter in module.parameters())]
        # What this step returned is no part of the next one.
        del loss
        optimiser.step()
    return values + [buffer.clone() for buffer in module.buffers()], peaks


@unittest.skipIf(MISSING, MISSING)
class EagerCase(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        torch.set_num_threads(1)
        quiet = warnings.catch_warnings()
        quiet.__enter__()
        self.addCleanup(quiet.__exit__, None, None, None)
        warnings.simplefilter("ignore", UserWarning)

    def assert_equal(self, wanted, found):
        self.assertEqual(len(wanted), len(found))
        for number, (one, other) in enumerate(zip(wanted, found, strict=True)):
            self.assertTrue(torch.equal(one, other), f"value {number} keeps every bit of plain autograd")

    def compare(self, module, inputs, count=STEPS, backward=lambda loss: loss.backward(), **options):
        """The planner after steps that equal plain ones, and the counted peaks of these steps."""
        options = {"scheduler": None, "time_limit": 1.0} | options
        wanted, _ = train(copy.deepcopy(module), inputs, count, backward=backward)
        module = copy.deepcopy(module)
        with planlab.torch.LiveCounter() as counter, planlab.torch.fit(module, **options) as planner:
            found, peaks = train(module, inputs, count, counter, backward)
        self.assert_equal(wanted, found)
        return planner, peaks


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


def transform(x):
    return torch.fft.ifft(torch.fft.fft(x).conj() * 1.5).real.sin()


def write_slices(x):
    y = torch.zeros_like(x)
    y[:128], y[128:] = x[:128].sin(), x[128:].cos()
    y += x.tanh()
    return y.clone().mul_(2.0).sigmoid_()


def add_rows(x):
    return torch.where(x > 0.0, x, x.exp()).index_add(0, torch.arange(256) % 7, x).tanh().cumsum(1).sin()


def gate_halves(x):
    first, second = x.chunk(2, 1)
    return torch.cat([first.sigmoid() * second, torch.maximum(first, second)], 1)


def add_noise(x):
    return x.tanh() * torch.rand_like(x) + torch.randn(64)


def choose_rows(x):
    return x[x.sum(1) > -1e9].tanh()


def multiply_sparse(x):
    return torch.sparse.mm(torch.eye(256).to_sparse(), x).tanh()


def change_types(x):
    return x.bfloat16().sin().float() * x.double().cos().float()


UNUSUAL = (transform, write_slices, add_rows, gate_halves, add_noise, choose_rows, multiply_sparse, change_types)


def layers(after=functional.gelu, depth=6, width=64):
    """A module of layers of one width, with a function after each."""

    class Layers(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
            self.scale = nn.Parameter(torch.ones(width))
            self.after = after

        def forward(self, x):
            for layer in self.layers:
                x = self.after(layer(x))
            return (x * self.scale).square().mean()

    return Layers()


@unittest.skipIf(MISSING, MISSING)
class EagerRefusals(EagerCase):
    """What could change a gradient runs as it is, or is refused."""

    def setUp(self):
        super().setUp()
        self.inputs = (torch.randn(256, 64),)

    def planned(self, module, inputs=None, **options):
        """A block with a plan that steps follow."""
        inputs = self.inputs if inputs is None else inputs
        stack = contextlib.ExitStack()
        self.addCleanup(stack.close)
        options = {"share": 0.7, "scheduler": None, "time_limit": 1.0} | options
        planner = stack.enter_context(planlab.torch.fit(module, **options))
        train(module, inputs, WATCHED + 1)
        self.assertEqual(len(planner.reports), 1)
        return planner

    def reports_plan(self, planner):
        (report,) = planner.reports
        self.assertTrue(report.recomputed or report.swapped)
        return report

    def gradients(self, module, backward=lambda loss: loss.backward(), inputs=None):
        module.zero_grad(set_to_none=True)
        torch.manual_seed(7)
        loss = module(*(self.inputs if inputs is None else inputs))
        backward(loss)
        return [loss.detach().clone(), *(parameter.grad.clone() for parameter in module.parameters())]

    def assert_same_gradients(self, module, backward, **options):
        """Gradients within a plan are those of the module outside of it."""
        self.planned(module, **options)
        self.assert_equal(self.gradients(copy.deepcopy(module), backward), self.gradients(module, backward))

    def test_random_operations_never_run_again(self):
        module = layers(lambda x: functional.dropout(torch.tanh(x), 0.2))
        planner, _ = self.compare(module, self.inputs, share=0.8)
        recomputed = self.reports_plan(planner).recomputed
        self.assertFalse([name for name in recomputed if name.startswith(("bernoulli", "empty_like"))])

    def test_operations_of_extensions_run_once(self):
        calls = []

        @torch.library.custom_op("planlab_tests::count_calls", mutates_args=())
        def count_calls(x: torch.Tensor) -> torch.Tensor:
            calls.append(1)
            return x + 1

        count_calls.register_autograd(lambda context, gradient: gradient)
        module = layers(lambda x: torch.tanh(count_calls(x).sin()))
        planner, _ = self.compare(module, self.inputs, share=0.8)
        self.assertTrue(self.reports_plan(planner).recomputed)
        self.assertEqual(len(calls), 2 * STEPS * len(module.layers))

    def test_functions_of_the_user_keep_every_bit(self):
        class Cube(torch.autograd.Function):
            @staticmethod
            def forward(context, x):
                y = x * x
                context.save_for_backward(x, y)
                return y * x

            @staticmethod
            def backward(context, gradient):
                x, y = context.saved_tensors
                return gradient * (y + 2 * x * x)

        planner, _ = self.compare(layers(lambda x: Cube.apply(torch.tanh(x))), self.inputs, share=0.7)
        self.reports_plan(planner)

    def test_buffer_that_the_step_overwrites_is_not_read_again(self):
        scale = torch.ones(64)

        def after(x):
            y = torch.tanh(x + scale)
            scale.mul_(1.01)
            return y.sin()

        module = layers(after)
        wanted, _ = train(copy.deepcopy(module), self.inputs)
        scale.fill_(1.0)
        with planlab.torch.fit(module, share=0.8, scheduler=None, time_limit=1.0) as planner:
            found, _ = train(module, self.inputs)
        self.assert_equal(wanted, found)
        self.reports_plan(planner)

    def test_parameters_that_change_during_the_backward_pass_keep_every_bit(self):
        def trained(module, fitted):
            for parameter in module.parameters():
                parameter.register_post_accumulate_grad_hook(self.descend)
            block = (
                planlab.torch.fit(module, share=0.8, scheduler=None, time_limit=1.0) if fitted else warnings.catch_warnings()
            )
            with block:
                for _ in range(STEPS):
                    module(*self.inputs).backward()
            return list(module.parameters())

        module = layers()
        self.assert_equal(trained(copy.deepcopy(module), False), trained(module, True))

    def descend(self, parameter):
        with torch.no_grad():
            parameter.sub_(parameter.grad, alpha=1e-4)
        parameter.grad = None

    def test_saved_tensor_that_is_overwritten_raises_as_in_autograd(self):
        class Spoiled(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers, self.spoils = layers(), False

            def forward(self, x):
                x = torch.sigmoid(self.layers.layers[0](x))
                y = self.layers(x)
                if self.spoils:
                    x.mul_(2.0)
                return y

        for is_watched in (True, False):
            module = Spoiled()
            with planlab.torch.fit(module, share=0.7, scheduler=None, time_limit=1.0):
                if not is_watched:
                    train(module, self.inputs, WATCHED + 1)
                module.spoils = True
                module.zero_grad(set_to_none=True)
                with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
                    module(*self.inputs).backward()
                module.spoils = False
                train(module, self.inputs, 2)

    def test_unplanned_write_to_what_is_read_again_changes_no_gradient(self):
        module = layers(torch.tanh)
        planner = self.planned(module, share=0.8)
        self.assertIn("addmm", str(planner.reports[0].recomputed))
        wanted = self.gradients(copy.deepcopy(module))

        def backward(loss):
            with torch.no_grad():
                # No backward pass of a layer reads its bias, so autograd permits this.
                for layer in module.layers:
                    layer.bias.data.mul_(3.0)
            loss.backward()

        self.assert_equal(wanted, self.gradients(module, backward))

    def test_write_that_the_plan_cannot_see_raises(self):
        module = layers(torch.tanh)
        planner = self.planned(module, share=0.8)
        self.assertIn("addmm", str(planner.reports[0].recomputed))
        module.zero_grad(set_to_none=True)
        loss = module(*self.inputs)
        loss.backward(retain_graph=True)
        with torch.no_grad():
            for layer in module.layers:
                layer.bias.add_(1.0)
        with self.assertRaisesRegex(RuntimeError, "computes a saved value again was modified"):
            loss.backward()

    def test_unplanned_operation_that_only_reads_a_dropped_value_is_permitted(self):
        module, total = layers(), torch.zeros(256, 64)
        self.planned(module)
        wanted = self.gradients(copy.deepcopy(module))

        def after(x):
            y = functional.gelu(x)
            total.add_(y.detach())
            return y

        module.after = after
        self.assert_equal(wanted, self.gradients(module))

    def test_two_backward_passes_of_one_graph_are_equal(self):
        def backward(loss):
            loss.backward(retain_graph=True)
            loss.backward()

        for link in (None, "1GB/s"):
            self.compare(layers(), self.inputs, backward=backward, share=0.8, link=link)
        self.assert_same_gradients(layers(), backward)

    def test_gradient_of_a_gradient_keeps_every_bit(self):
        module = layers(torch.tanh)
        self.planned(module)
        found = []
        for trained in (copy.deepcopy(module), module):

            def backward(loss, parameters=tuple(trained.parameters())):
                gradients = torch.autograd.grad(loss, parameters, create_graph=True)
                (loss + sum(gradient.square().sum() for gradient in gradients)).backward()

            found.append(self.gradients(trained, backward))
        self.assert_equal(*found)

    def test_error_in_a_backward_pass_ends_that_step_alone(self):
        module = layers()
        planner = self.planned(module)

        def fail(gradient):
            raise ValueError("from a hook")

        module.zero_grad(set_to_none=True)
        loss = module(*self.inputs)
        module.layers[2].weight.register_hook(fail)
        with self.assertRaisesRegex(ValueError, "from a hook"):
            loss.backward()
        module.layers[2].weight._backward_hooks.clear()
        del loss
        self.assert_equal(self.gradients(copy.deepcopy(module)), self.gradients(module))
        self.assertEqual(len(planner.reports), 1)

    def test_evaluation_in_the_block_leaves_the_plan(self):
        module = layers()
        planner = self.planned(module)
        wanted = self.gradients(copy.deepcopy(module))
        with torch.no_grad():
            expected = module(*self.inputs)
        for _ in range(3):
            with torch.no_grad():
                self.assertTrue(torch.equal(module(*self.inputs), expected))
            self.assertTrue(torch.equal(module(*self.inputs), expected))
            self.assert_equal(wanted, self.gradients(module))
        self.assertEqual(len(planner.reports), 1)

    def test_second_model_in_the_block_runs_as_it_is(self):
        first, second = layers(), layers(torch.tanh)
        wanted = self.gradients(copy.deepcopy(first)), self.gradients(copy.deepcopy(second))
        with planlab.torch.fit(first, share=0.8, scheduler=None, time_limit=1.0) as planner:
            for _ in range(STEPS):
                self.assert_equal(wanted[0], self.gradients(first))
                self.assert_equal(wanted[1], self.gradients(second))
        self.reports_plan(planner)

    def test_two_models_under_one_loss_keep_every_bit(self):
        first, second = layers(), layers(torch.tanh)

        def losses(module, other):
            return self.gradients(module, lambda loss: (loss + other(*self.inputs)).backward())

        wanted = losses(copy.deepcopy(first), copy.deepcopy(second))
        with planlab.torch.fit(first, share=0.8, scheduler=None, time_limit=1.0) as planner:
            for _ in range(STEPS):
                self.assert_equal(wanted, losses(first, second))
        self.reports_plan(planner)

    def test_blocks_do_not_nest(self):
        first, second = layers(), layers()
        with planlab.torch.fit(first, "1GB"), self.assertRaisesRegex(RuntimeError, "inside of another"):
            with planlab.torch.fit(second, "1GB"):
                self.fail("the inner block has begun")
            train(first, self.inputs)

    def test_checkpoints_of_the_module_keep_every_bit(self):
        for is_reentrant in (False, True):
            module = layers(lambda x: checkpoint(lambda y: torch.tanh(y).sin(), x, use_reentrant=is_reentrant))
            planner, _ = self.compare(module, self.inputs, share=0.9)
            self.assertTrue(planner.reports)

    def test_accumulated_gradients_keep_every_bit(self):
        def trained(module):
            for number in range(4 * STEPS):
                if number % 4 == 0:
                    module.zero_grad(set_to_none=True)
                module(*self.inputs).backward()
            return [parameter.grad.clone() for parameter in module.parameters()]

        module = layers()
        wanted = trained(copy.deepcopy(module))
        with planlab.torch.fit(module, share=0.8, scheduler=None, time_limit=1.0) as planner:
            self.assert_equal(wanted, trained(module))
        self.assertEqual(len(planner.reports), 2)

    def test_backward_pass_after_the_block_keeps_every_bit(self):
        for link in (None, "1GB/s"):
            module = layers()
            wanted = self.gradients(copy.deepcopy(module))
            with planlab.torch.fit(module, share=0.8, link=link, scheduler=None, time_limit=1.0):
                for _ in range(WATCHED + 1):
                    self.gradients(module)
                module.zero_grad(set_to_none=True)
                loss = module(*self.inputs)
            loss.backward()
            self.assert_equal(wanted[1:], [parameter.grad for parameter in module.parameters()])

    def test_each_form_of_inputs_has_a_plan(self):
        module, small = layers(), (torch.randn(128, 64),)
        wanted = [self.gradients(copy.deepcopy(module), inputs=inputs) for inputs in (self.inputs, small)]
        with planlab.torch.fit(module, share=0.8, scheduler=None, time_limit=1.0) as planner:
            for _ in range(STEPS):
                for values, inputs in zip(wanted, (self.inputs, small), strict=True):
                    self.assert_equal(values, self.gradients(module, inputs=inputs))
        self.assertEqual(len(planner.reports), 2)

    def test_forms_without_end_are_said_once(self):
        module = layers()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with planlab.torch.fit(module, "1GB", scheduler=None):
                for rows in range(1, 20):
                    train(module, (torch.randn(rows, 64),), 1)
        self.assertEqual(len([warning for warning in caught if "more than 16 forms" in str(warning.message)]), 1)

    def test_step_without_choices_is_refused(self):
        module = nn.Linear(64, 64)
        with self.assertRaises(planlab.torch.DoesNotFit), planlab.torch.fit(module, "1kB"):
            for _ in range(WATCHED + 1):
                module(*self.inputs).sum().backward()
                module.zero_grad(set_to_none=True)

    def test_step_that_changes_is_planned_again(self):
        module = layers()
        planner = self.planned(module)
        module.after = torch.tanh
        wanted = self.gradients(copy.deepcopy(module))
        for _ in range(STEPS + 2):
            self.assert_equal(wanted, self.gradients(module))
        self.assertEqual([report.reason.split(",")[0] for report in planner.reports][0], "first steps")
        self.assertRegex(planner.reports[1].reason, "changed at operation .*tanh")

    def test_module_that_changes_each_step_is_said_once(self):
        module = layers()
        changes = [torch.tanh, torch.sin, torch.cos, functional.gelu, functional.relu, torch.sigmoid, torch.erf]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with planlab.torch.fit(module, share=0.7, scheduler=None):
                for number in range(12):
                    module.after = changes[number % len(changes)]
                    self.assert_equal(self.gradients(copy.deepcopy(module)), self.gradients(module))
        messages = [str(warning.message) for warning in caught if "something else in each step" in str(warning.message)]
        self.assertEqual(len(messages), 1)

    def test_step_that_fits_changes_nothing(self):
        planner, peaks = self.compare(layers(), self.inputs, capacity="1GB")
        (report,) = planner.reports
        self.assertEqual((report.start, report.recomputed, report.swapped), ("everything", [], []))
        self.assertEqual(set(peaks), {report.peak})

    def test_step_that_does_not_fit_is_refused_before_it_runs(self):
        module = layers()
        before = None
        with self.assertRaises(planlab.torch.DoesNotFit) as raised, planlab.torch.fit(module, "1kB", scheduler=None):
            for _ in range(STEPS):
                before = [parameter.clone() for parameter in module.parameters()]
                train(module, self.inputs, 1)
        self.assert_equal(before, list(module.parameters()))
        self.assertGreater(raised.exception.least, 1000)
        train(module, self.inputs, 1)

    def test_block_without_a_plan_is_warned_of(self):
        module = layers()
        with self.assertWarnsRegex(UserWarning, "no step was planned"), planlab.torch.fit(module, "1GB"):
            train(module, self.inputs, 1)

    def test_wrong_arguments_are_refused(self):
        with self.assertRaisesRegex(ValueError, "one of `capacity` and `share`"):
            planlab.torch.fit(layers())
        with self.assertRaisesRegex(ValueError, "no rate"):
            planlab.torch.fit(layers(), "1GB", link="3GB")
        with self.assertRaisesRegex(ValueError, "`link` needs a module"):
            planlab.torch.fit("1GB", link="3GB/s")


if __name__ == "__main__":
    unittest.main()
