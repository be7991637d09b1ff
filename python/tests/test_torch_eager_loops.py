"""Loops of training that a step without compilation has to bear; skipped without PyTorch 2.4."""

import contextlib
import copy
import io
import threading
import unittest
import warnings
from unittest import mock

try:
    import planlab.torch
    import torch
    from planlab._torch_eager_store import BufferPool
    from planlab._torch_report import parse_rate
    from torch import nn
    from torch.optim.swa_utils import AveragedModel
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils.checkpoint import checkpoint

    from .torch_steps import STEPS, WATCHED, EagerCase, layers, train

    MISSING = ""
except ImportError as error:
    MISSING, EagerCase = str(error), unittest.TestCase


def gradients(module, compute):
    """The gradients of a module after a function has computed them."""
    module.zero_grad(set_to_none=True)
    compute(module)
    return [parameter.grad.clone() for parameter in module.parameters()]


def tanh_sin(x):
    return torch.tanh(x).sin()


def generator(depth=12, width=16):
    return nn.Sequential(*(part for _ in range(depth) for part in (nn.Linear(width, width), nn.Tanh(), nn.Softsign())))


@unittest.skipIf(MISSING, MISSING)
class EagerLoops(EagerCase):
    def setUp(self):
        super().setUp()
        self.x = torch.randn(256, 64)

    def fit(self, module, **options):
        return planlab.torch.fit(module, **({"share": 0.7, "scheduler": None, "time_limit": 0.5} | options))

    @contextlib.contextmanager
    def messages(self):
        """The warnings of the block."""
        found = []
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield found
        found.extend(str(warning.message) for warning in caught)

    def test_storages_that_leaves_get_before_the_backward_pass_are_those_of_plain_eager(self):
        def change_biases(module, x):
            for layer in module.layers:
                layer.bias.data = layer.bias.data * 3.0

        def change_parameters(module, x):
            for parameter in module.parameters():
                parameter.data = parameter.data * 3.0

        def change_input(module, x):
            x.data = torch.zeros_like(x)

        def steps(module, change):
            found = []
            for number in range(WATCHED + 2):
                x = self.x.clone()

                def compute(module, x=x, number=number):
                    loss = module(x)
                    if number > WATCHED:
                        change(module, x)
                    loss.backward()

                found += gradients(module, compute)
            return found

        for change in (change_biases, change_parameters, change_input):
            with self.subTest(change=change.__name__):
                module = layers(tanh_sin, depth=4)
                wanted = steps(copy.deepcopy(module), change)
                with self.fit(module, share=0.6) as planner:
                    self.assert_equal(wanted, steps(module, change))
                self.assertTrue(planner.reports[0].recomputed)

    def test_module_without_hooks_is_refused_and_blocks_no_other(self):
        class Closed(nn.Linear):
            def register_forward_hook(self, *arguments, **options):
                raise KeyError("closed")

        with self.assertRaises(KeyError), self.fit(closed := Closed(4, 4)):
            self.fail("the block has begun")
        self.assertFalse(closed._forward_pre_hooks)
        with self.assertRaisesRegex(ValueError, "ScriptModule"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.fit(torch.jit.script(nn.Linear(4, 4)))
        with self.fit(nn.Linear(4, 4)):
            pass

    def test_other_loss_with_the_output_goes_first(self):
        class Count(TorchDispatchMode):
            layers = 0

            def __torch_dispatch__(self, operation, types, arguments=(), keywords=None):
                self.layers += operation is torch.ops.aten.addmm.default
                return operation(*arguments, **(keywords or {}))

        def step(module, judge, x):
            module.zero_grad(set_to_none=True)
            judge.zero_grad(set_to_none=True)
            made = module(x)
            judge(made.detach()).mean().backward()
            judge(made).mean().backward()
            return [parameter.grad.clone() for part in (module, judge) for parameter in part.parameters()]

        module, judge, x = generator(), nn.Linear(16, 1), torch.randn(2048, 16)
        wanted = step(copy.deepcopy(module), copy.deepcopy(judge), x)
        with planlab.torch.LiveCounter() as counter, Count() as count, self.fit(module, share=0.5) as planner:
            for _ in range(STEPS):
                counter.peak, count.layers = counter.live, 0
                self.assert_equal(wanted, step(module, judge, x))
        (report,) = planner.reports
        again = sum(name.startswith("addmm") for name in report.recomputed)
        self.assertGreater(again, 0)
        self.assertEqual(count.layers, 12 + 2 + again)
        self.assertLessEqual(counter.peak, report.capacity)
        self.assertEqual((planner.steps_planned, planner.steps_departed), (STEPS - WATCHED, 0))

    def test_second_backward_pass_computes_each_value_once(self):
        runs = []

        run = planlab._torch_eager_saved.Recipe.run

        def count_run(recipe, pending):
            runs.append(recipe)
            return run(recipe, pending)

        module, x = generator(), torch.randn(1024, 16)
        with self.fit(module, share=0.5):
            for _ in range(WATCHED + 1):
                gradients(module, lambda module: module(x).mean().backward())
            module.zero_grad(set_to_none=True)
            loss = module(x).mean()
            loss.backward(retain_graph=True)
            with mock.patch.object(planlab._torch_eager_saved.Recipe, "run", count_run):
                loss.backward()
        self.assertGreater(len(runs), 0)
        self.assertEqual(len(runs), len(set(map(id, runs))))

    def test_failed_backward_pass_whose_loss_stays_ends_that_step_alone(self):
        def fail(gradient):
            raise ArithmeticError

        module, kept = generator(4), []
        with self.fit(module, share=0.8) as planner:
            for number in range(STEPS + 2):
                y = module(torch.ones(64, 16))
                if number in (0, STEPS):
                    y.register_hook(fail)
                    kept.append(y.mean())
                    with self.assertRaises(ArithmeticError):
                        kept[-1].backward()
                else:
                    y.mean().backward()
                module.zero_grad(set_to_none=True)
        self.assertEqual(len(planner.reports), 1)
        self.assertEqual((planner.steps_planned, planner.steps_departed), (STEPS - WATCHED, 0))

    def test_evaluation_with_gradients_is_no_part_of_another_step(self):
        module, other, x = generator(4), nn.Linear(16, 16), torch.randn(64, 16)
        with self.fit(module, share=0.8) as planner:
            for _ in range(STEPS):
                gradients(module, lambda module: module(x).mean().backward())
                features = module(x).detach()
                other(features).mean().backward()
                self.assertIsNone(planner._step)
        self.assertEqual(len(planner.reports), 1)
        self.assertEqual((planner.steps_planned, planner.steps_departed), (STEPS - WATCHED, 0))

    def test_steps_that_leave_the_plan_in_turns_are_warned_of(self):
        module = layers(tanh_sin, depth=4)
        with self.messages() as messages, self.fit(module) as planner:
            for number in range(14):
                loss = module(self.x)
                if number % 2 and number > WATCHED:
                    loss = loss + loss.abs() * 0.1
                loss.backward()
                module.zero_grad(set_to_none=True)
        self.assertEqual(planner.steps_departed, 2)
        self.assertRegex(" ".join(messages), "something else in each step.* a peak of [0-9]+ bytes in a capacity of [0-9]+")

    def test_arguments_and_settings_are_part_of_a_form(self):
        class Tasks(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = layers(tanh_sin, depth=4)
                self.dropout = nn.Dropout(0.5)
                self.body.after = lambda x: self.dropout(tanh_sin(x))

            def forward(self, x, task):
                return self.body(x).sin() if task == "a" else self.body(x).cos().abs()

        def settings(module, number):
            module.dropout.train(number % 4 >= 2)
            return "ab"[number % 2]

        module = Tasks()
        with self.fit(module, share=0.8) as planner:
            for number in range(4 * (WATCHED + 1)):
                module(self.x, settings(module, number)).backward()
                module.zero_grad(set_to_none=True)
        self.assertEqual(len(planner.reports), 4)
        self.assertEqual(planner.steps_departed, 0)

    def test_copies_of_the_module_have_no_plan(self):
        def train_once(module):
            module(torch.ones(64, 16)).mean().backward()

        for link in (None, "1GB/s"):
            module, file = generator(4), io.BytesIO()
            with self.fit(module, share=0.8, link=link) as planner:
                for _ in range(WATCHED + 1):
                    wanted = gradients(module, train_once)
                torch.save(module, file)
                file.seek(0)
                copies = [AveragedModel(module).module, torch.load(file, weights_only=False)]
                planned = planner.steps_planned
                for copied in copies:
                    self.assert_equal(wanted, gradients(copied, train_once))
                self.assertEqual(planner.steps_planned, planned)
            self.assertFalse(module._forward_pre_hooks or module._forward_hooks)

    def test_inputs_from_inference_mode_keep_every_bit(self):
        module = layers(tanh_sin, depth=4)
        with torch.inference_mode():
            x = torch.randn(256, 64)
        class Scaled(nn.Module):
            def forward(self, x):
                return (x * 2.0 + 1.0).exp().sin()

        outer = nn.Sequential(Scaled(), module)

        def step(module):
            module(x).backward()

        wanted = gradients(copy.deepcopy(outer), step)
        with self.fit(outer, share=0.55) as planner:
            for _ in range(STEPS):
                self.assert_equal(wanted, gradients(outer, step))
        self.assertTrue(planner.reports[0].recomputed)

    def test_block_that_ends_leaves_no_threads(self):
        before = threading.active_count()
        for error in (None, ArithmeticError):
            expected = contextlib.nullcontext() if error is None else self.assertRaises(error)
            with expected, self.fit(layers(), link="1GB/s") as planner:
                planner._store.begin_copy(torch.ones(1 << 20)).wait()
                if error is not None:
                    raise error
            self.assertEqual(threading.active_count(), before)

    def test_host_buffers_take_no_more_than_was_in_use(self):
        pool = BufferPool()
        for size in range(1000, 2000, 10):
            buffers = [pool.take_buffer(size) for _ in range(3)]
            for buffer in buffers:
                pool.give_back(buffer)
            again = pool.take_buffer(size)
            self.assertTrue(any(again is buffer for buffer in buffers))
            pool.give_back(again)
            self.assertLessEqual(sum(buffer.numel() for buffer in pool._free + pool._returned), 6000)

    def test_refusal_of_a_form_is_not_searched_twice(self):
        module, raised = layers(), []
        with self.messages() as messages, self.fit(module, share=None, capacity="1kB"):
            train(module, (self.x,), WATCHED)
            for _ in range(2):
                with self.assertRaises(planlab.torch.DoesNotFit) as caught:
                    train(module, (self.x,), 1)
                raised.append((str(caught.exception), caught.exception.least))
                search = mock.patch.object(planlab._torch_eager, "find_choice", side_effect=AssertionError)
                search.start()
                self.addCleanup(search.stop)
        self.assertEqual(raised[0], raised[1])
        self.assertNotIn("no step was planned", " ".join(messages))

    def test_threads_have_blocks_of_their_own(self):
        modules, planners, errors = [generator(4), generator(4)], [None, None], []
        barrier = threading.Barrier(2, timeout=60)

        def fit_one(place):
            try:
                with self.fit(modules[place], share=0.8) as planners[place]:
                    barrier.wait()
                    for _ in range(STEPS):
                        # The module of the other thread runs here as it is.
                        modules[1 - place](torch.ones(8, 16))
                        modules[place](torch.ones(64, 16)).mean().backward()
                    barrier.wait()
            except Exception as error:
                errors.append(error)

        threads = [threading.Thread(target=fit_one, args=(place,)) for place in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(errors, [])
        self.assertEqual([len(planner.reports) > 0 for planner in planners], [True, True])

    def test_module_in_a_checkpoint_is_named_as_the_reason(self):
        module = layers()
        with self.messages() as messages, self.fit(module):
            for _ in range(STEPS):
                checkpoint(module, self.x.clone().requires_grad_(), use_reentrant=True).backward()
        self.assertRegex(" ".join(messages), "checkpoints compute the whole module again")

    def test_arguments_are_checked_before_the_block(self):
        module = layers()
        with self.assertRaisesRegex(ValueError, "no scheduler `nonsense`"):
            planlab.torch.fit(module, "1GB", scheduler="nonsense")
        with self.assertRaisesRegex(ValueError, "no scheduler `nonsense`"):
            planlab.torch.fit("1GB", scheduler="nonsense")
        for capacity in (0, -1, True, float("inf"), float("nan"), "0GB", "much"):
            with self.subTest(capacity=capacity), self.assertRaisesRegex(ValueError, "`capacity` is"):
                planlab.torch.fit(module, capacity)
        for link in (0, 0.5, True, float("inf"), "0GB/s", "3GB"):
            with self.subTest(link=link), self.assertRaisesRegex(ValueError, "`link` is"):
                planlab.torch.fit(module, "1GB", link=link)
        self.assertEqual(planlab.torch.StepPlanner(1e16, scheduler=None)._capacity, 10**16)
        self.assertEqual(parse_rate(1e16), 1e16)


if __name__ == "__main__":
    unittest.main()
