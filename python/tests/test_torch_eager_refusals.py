"""What could change a gradient of a step without compilation; skipped without PyTorch 2.4."""

import contextlib
import copy
import unittest
import warnings

try:
    import planlab.torch
    import torch
    from torch import nn
    from torch.nn import functional
    from torch.utils.checkpoint import checkpoint

    from .torch_steps import STEPS, WATCHED, EagerCase, layers, train

    MISSING = ""
except ImportError as error:
    MISSING, EagerCase = str(error), unittest.TestCase


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
