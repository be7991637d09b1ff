"""Nets out of PyTorch modules, and training steps within a capacity; skipped without PyTorch 2.4."""

import importlib
import json
import math
import pathlib
import re
import tempfile
import unittest
from unittest import mock

import planlab

try:
    import planlab.torch
    import torch
    from planlab._torch_budget import JointProblem, Search, find_choice, saved_values
    from planlab._torch_capture import capture_step
    from planlab._torch_check import check_plan
    from planlab._torch_fit import StepPlanner, takes_plans
    from planlab._torch_joint import JointGraph
    from planlab._torch_live import split
    from planlab._torch_report import parse_bytes
    from torch import nn
    from torch.nn import functional

    MISSING = ""
except ImportError as error:
    MISSING = str(error)

ROOT = pathlib.Path(__file__).resolve().parents[2]
CLASSES = 10
BATCH = 4


if not MISSING:

    class Perceptron(nn.Module):
        """Three layers with dropout."""

        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(width, 64) for width in (32, 64, 64))
            self.head = nn.Linear(64, CLASSES)

        def forward(self, x, targets):
            for layer in self.layers:
                x = functional.dropout(functional.relu(layer(x)), 0.2)
            return functional.cross_entropy(self.head(x), targets)

    class Residual(nn.Module):
        """Convolutions with normalisation and shortcuts."""

        def __init__(self, blocks=3, channels=8):
            super().__init__()
            self.stem = nn.Conv2d(3, channels, 3, padding=1)
            self.convolutions = nn.ModuleList(nn.Conv2d(channels, channels, 3, padding=1) for _ in range(blocks))
            self.norms = nn.ModuleList(nn.BatchNorm2d(channels) for _ in range(blocks))
            self.head = nn.Linear(channels, CLASSES)

        def forward(self, x, targets):
            x = self.stem(x)
            for convolution, norm in zip(self.convolutions, self.norms, strict=True):
                x = x + functional.relu(norm(convolution(x)))
            x = functional.max_pool2d(x, 2).mean((2, 3))
            return functional.cross_entropy(self.head(x), targets)

    class Transformer(nn.Module):
        """Blocks of attention and two layers, as in GPT."""

        def __init__(self, blocks=3, width=32, words=40, length=16):
            super().__init__()
            self.words, self.places = nn.Embedding(words, width), nn.Parameter(torch.zeros(length, width))
            self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2 * blocks))
            self.attention = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(blocks))
            self.wide = nn.ModuleList(nn.Linear(width, 4 * width) for _ in range(blocks))
            self.narrow = nn.ModuleList(nn.Linear(4 * width, width) for _ in range(blocks))
            self.head = nn.Linear(width, words)

        def forward(self, tokens, targets):
            x = self.words(tokens) + self.places
            for block in range(len(self.wide)):
                batch, length, width = x.shape
                parts = self.attention[block](self.norms[2 * block](x)).view(batch, length, 3, 2, width // 2)
                y = functional.scaled_dot_product_attention(*parts.permute(2, 0, 3, 1, 4), is_causal=True)
                x = x + y.transpose(1, 2).reshape(batch, length, width)
                x = x + self.narrow[block](functional.gelu(self.wide[block](self.norms[2 * block + 1](x))))
            return functional.cross_entropy(self.head(x).flatten(0, 1), targets.flatten())

    class Layers(nn.Module):
        """Layers of one width with something after each."""

        def __init__(self, after, layers=6, width=64):
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
            self.register_buffer("scale", torch.ones(256, width))
            self.after = after

        def forward(self, x):
            for index, layer in enumerate(self.layers):
                x = self.after(self, index, layer(x))
            self.scale.mul_(0.5)
            return x.sum()

    class Looked(nn.Module):
        """A table that outweighs all that a step saves."""

        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(20000, 64)
            self.layers = nn.ModuleList(nn.Linear(64, 64) for _ in range(4))

        def forward(self, rows):
            x = self.table(rows)
            for layer in self.layers:
                x = functional.gelu(layer(x))
            return x.square().mean()

    class Noise(nn.Module):
        """Layers, and beside them a product with noise; a break makes two graphs of it."""

        def __init__(self, breaks):
            super().__init__()
            self.layers, self.weight = Layers(gelu_layer), nn.Parameter(torch.randn(256, 64))
            self.breaks = breaks

        def forward(self, x):
            first = self.layers(x)
            if self.breaks:
                torch._dynamo.graph_break()
            return first + (self.weight * torch.rand(256, 64)).square().sum()


def gelu_layer(module, index, x):
    return functional.gelu(x)


def scaled_layer(module, index, x):
    return torch.tanh(x * (module.scale + index))


def noisy_layer(module, index, x):
    draws = (lambda: torch.rand(x.shape), lambda: torch.bernoulli(torch.full(x.shape, 0.5)), lambda: torch.randn(x.shape))
    return torch.tanh(x) * draws[index % 3]()


def perceptron():
    return Perceptron(), (torch.randn(BATCH * 64, 32), torch.randint(0, CLASSES, (BATCH * 64,)))


def residual():
    return Residual(), (torch.randn(BATCH, 3, 16, 16), torch.randint(0, CLASSES, (BATCH,)))


def transformer():
    return Transformer(), (torch.randint(0, 40, (BATCH * 4, 16)), torch.randint(0, 40, (BATCH * 4, 16)))


def train_step(module, call, inputs):
    """Loss, gradients and buffers after a step."""
    torch.manual_seed(1)
    module.zero_grad()
    loss = call(*inputs)
    loss.backward()
    return [loss.detach().clone(), *(parameter.grad.clone() for parameter in module.parameters())]


@unittest.skipIf(MISSING, MISSING)
class Graphs(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        torch.set_num_threads(1)

    def names(self, net, indexes):
        return [net.maps[index].name for index in indexes]

    def test_chain_has_a_function_for_each_operation(self):
        module = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
        net = planlab.torch.graph(module, torch.randn(3, 8), loss_fn=lambda y: y.sum(), times=None)
        kinds = [(function.name, function.kind) for function in net.functions]
        wanted = [("addmm", "fully-connected"), ("relu", "other"), ("addmm_1", "fully-connected"), ("sum_1", "other")]
        self.assertEqual(kinds, wanted)
        needs = [self.names(net, function.needs) for function in net.functions]
        self.assertEqual(needs[1:], [["relu"], ["relu"], []])
        self.assertEqual([found.bytes for found in net.maps], [96, 192, 192, 48, 4])
        self.assertEqual((net.batch, net.parameters), (3, 8 * 16 + 16 + 16 * 4 + 4))

    def test_dropout_is_one_map_with_its_mask(self):
        module, inputs = perceptron()
        net = planlab.torch.graph(module, inputs, times=None)
        sizes = [found.bytes for found in net.maps if found.name.startswith("native_dropout")]
        values = BATCH * 64 * 64
        self.assertEqual(sizes, [4 * values + values] * 3)

    def test_shortcut_is_an_addition_without_backward_pass(self):
        def call(x, weight):
            y = x @ weight
            return (y + torch.tanh(y @ weight)).exp().sum()

        net = planlab.torch.graph(call, (torch.randn(4, 4), torch.randn(4, 4, requires_grad=True)), times=None)
        additions = [function for function in net.functions if function.kind == "add"]
        self.assertEqual([self.names(net, function.inputs) for function in additions], [["mm", "tanh"]])
        self.assertEqual(additions[0].needs, [])

    def test_backward_passes_need_inputs_or_outputs_alone(self):
        for make in (perceptron, residual, transformer):
            module, inputs = make()
            net = planlab.torch.graph(module, inputs, times=None)
            for function in net.functions:
                self.assertLessEqual(set(function.needs), {*function.inputs, function.output}, function.name)

    def test_no_time_is_lost(self):
        def count_nodes(module, arguments, repetitions):
            return {node.name: 1.0 for node in module.graph.nodes if node.op == "call_function"}

        for make in (perceptron, residual, transformer):
            module, inputs = make()
            with mock.patch.object(planlab.torch, "measure_run", side_effect=count_nodes) as measure:
                net = planlab.torch.graph(module, inputs)
            total = sum(count_nodes(measure.call_args.args[0], (), 1).values())
            passes = sum(function.forward_seconds + function.backward_seconds for function in net.functions)
            self.assertEqual(passes + sum(found.add_seconds for found in net.maps), total)

    def test_gradients_of_a_shortcut_are_summed_once(self):
        module, inputs = transformer()
        net = planlab.torch.graph(module, inputs, repetitions=1)
        summed = [found.name for found in net.maps if found.add_seconds]
        # The sum before each of the two parts of each block.
        self.assertEqual(len(summed), 6)

    def test_sums_are_found_behind_views_and_norms(self):
        layer = nn.TransformerEncoderLayer(32, 2, 64, dropout=0.1, batch_first=True)
        weight = torch.randn(16, 32, requires_grad=True)

        def call(x):
            return layer(x @ weight).square().sum()

        net = planlab.torch.graph(call, torch.randn(4, 8, 16), repetitions=1)
        summed = [found.name for found in net.maps if found.add_seconds]
        self.assertEqual(summed, ["mm", "native_layer_norm"])

    def test_sum_behind_a_slice_is_found(self):
        def call(x, weight):
            y = x @ weight
            return torch.cat([y, y.exp()], 1).square().sum()

        inputs = (torch.randn(4, 4), torch.randn(4, 4, requires_grad=True))
        net = planlab.torch.graph(call, inputs, repetitions=1)
        self.assertEqual([found.name for found in net.maps if found.add_seconds], ["mm"])

    def test_measuring_leaves_no_trace(self):
        module, inputs = residual()
        before = {name: value.clone() for name, value in module.state_dict().items()}
        state = torch.get_rng_state()
        net = planlab.torch.graph(module, inputs, repetitions=1)
        self.assertTrue(torch.equal(state, torch.get_rng_state()))
        for name, value in module.state_dict().items():
            self.assertTrue(torch.equal(value, before[name]), name)
        self.assertTrue(all(function.forward_seconds > 0.0 for function in net.functions))

    def test_nets_are_accepted_by_the_schedulers(self):
        for make in (perceptron, residual, transformer):
            module, inputs = make()
            net = planlab.torch.graph(module, inputs, repetitions=1)
            found = planlab.schedule(net, scheduler="in-core", time_limit=5.0)
            self.assertEqual(set(found.classes.values()), {"keep"})
            passes = sum(function.forward_seconds + function.backward_seconds for function in net.functions)
            sums = sum(found.add_seconds for found in net.maps)
            self.assertTrue(math.isclose(found.seconds, passes + sums, rel_tol=0.2), (found.seconds, passes, sums))

    def test_text_has_a_line_for_each_part(self):
        module, inputs = perceptron()
        net = planlab.torch.graph(module, inputs, times=None)
        lines = [json.loads(line) for line in net.write().splitlines()]
        self.assertEqual(lines[0]["name"], "Perceptron")
        self.assertEqual(len(lines), 1 + len(net.maps) + len(net.functions))

    def test_module_without_gradients_is_refused(self):
        with self.assertRaisesRegex(ValueError, "nothing to train"):
            planlab.torch.graph(lambda x: x.sum(), torch.randn(3))

    def test_wrong_arguments_are_refused(self):
        with self.assertRaisesRegex(ValueError, "`times`"):
            planlab.torch.graph(nn.Linear(1, 1), torch.randn(1), times="guessed")
        with self.assertRaisesRegex(ValueError, "`repetitions`"):
            planlab.torch.graph(nn.Linear(1, 1), torch.randn(1), repetitions=0)


@unittest.skipIf(MISSING, MISSING)
@unittest.skipUnless(MISSING or takes_plans(), "this PyTorch has no place for a plan of what a step saves")
class Fits(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        torch.set_num_threads(1)
        self.addCleanup(torch._dynamo.reset)

    def fitted(self, module, inputs, **options):
        """The report of a step within a capacity, its counted peak, its loss and gradients."""
        with planlab.torch.fit(**options) as planner:
            compiled = torch.compile(module, backend="aot_eager", fullgraph=True)
            result = train_step(module, compiled, inputs)
        module.zero_grad()
        with planlab.torch.LiveCounter() as counter:
            compiled(*inputs).backward()
        self.assertEqual(len(planner.reports), 1)
        return planner.reports[0], counter.peak, result

    def assert_fits(self, make, shares):
        module, inputs = make()
        buffers = {name: value.clone() for name, value in module.named_buffers()}
        wanted = train_step(module, module, inputs)
        peaks = []
        for share in shares:
            module.load_state_dict(buffers, strict=False)
            report, peak, found = self.fitted(module, inputs, share=share, scheduler=None)
            self.assertEqual(peak, report.peak, "the estimate is what is counted")
            self.assertLessEqual(peak, report.capacity)
            self.assertLessEqual(report.capacity, report.peak_of_all)
            self.assert_equal(wanted, found)
            peaks.append(peak)
        self.assertEqual(peaks, sorted(peaks, reverse=True))
        self.assertLess(peaks[-1], peaks[0])
        return report

    def assert_equal(self, wanted, found):
        for one, other in zip(wanted, found, strict=True):
            self.assertTrue(torch.equal(one, other), "loss and gradients keep every bit of the step without compilation")

    def assert_refused(self, module, inputs, message, backend="aot_eager"):
        with self.assertRaisesRegex(planlab.torch.NotPlanned, message), planlab.torch.fit("1GB", scheduler=None):
            torch.compile(module, backend=backend)(*inputs)

    def test_transformer_fits_with_equal_gradients(self):
        report = self.assert_fits(transformer, (1.0, 0.75, 0.5))
        self.assertGreater(len(report.recomputed), 0)
        self.assertGreater(report.recompute_seconds, 0.0)

    def test_convolutions_fit_with_equal_gradients(self):
        self.assert_fits(residual, (1.0, 0.9, 0.8))

    def test_dropout_never_runs_again(self):
        report = self.assert_fits(perceptron, (1.0, 0.9))
        self.assertFalse([name for name in report.recomputed if name.startswith("native_dropout")])

    def test_mixed_precision_is_counted_as_it_runs(self):
        layers = [layer for _ in range(3) for layer in (nn.Linear(64, 64), nn.LayerNorm(64), nn.GELU())]

        class Mixed(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = nn.Sequential(*layers)

            def forward(self, x):
                with torch.autocast("cpu", dtype=torch.bfloat16):
                    return self.layers(x).float().square().mean()

        self.assert_fits(lambda: (Mixed(), (torch.randn(256, 64),)), (1.0, 0.8))

    def test_random_numbers_are_never_drawn_again(self):
        report = self.assert_fits(lambda: (Layers(noisy_layer), (torch.randn(256, 64),)), (1.0, 0.85, 0.7))
        for kind in ("rand", "bernoulli"):
            self.assertFalse([name for name in report.recomputed if name.startswith(kind)])

    def test_noise_alone_is_not_drawn_again(self):
        class Product(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = nn.Parameter(torch.randn(256, 64))

            def forward(self):
                return (self.weight * torch.rand(256, 64)).square().sum()

        module = Product()
        wanted = train_step(module, module, ())
        report, peak, found = self.fitted(module, (), share=1.0, scheduler=None)
        self.assert_equal(wanted, found)
        self.assertEqual(peak, report.peak)

    def test_every_graph_of_a_step_is_planned(self):
        module, inputs = Noise(breaks=True), (torch.randn(256, 64),)
        before = module.layers.scale.clone()
        wanted = train_step(module, module, inputs)
        module.layers.scale.copy_(before)
        with planlab.torch.fit(share=1.0, scheduler=None) as planner:
            found = train_step(module, torch.compile(module, backend="aot_eager"), inputs)
        self.assertEqual(len(planner.reports), 2)
        self.assert_equal(wanted, found)

    def test_overwritten_buffer_is_not_read_again(self):
        self.assert_fits(lambda: (Layers(scaled_layer), (torch.randn(256, 64),)), (1.0, 0.85, 0.8))

    def test_input_that_is_read_after_it_is_overwritten_is_refused(self):
        graph = torch.fx.Graph()
        weight, buffer, tangent = (graph.placeholder(name) for name in ("primals_1", "primals_2", "tangents_1"))
        product = graph.call_function(torch.ops.aten.mul.Tensor, (weight, buffer))
        gradient = graph.call_function(torch.ops.aten.mul.Tensor, (tangent, buffer))
        write = graph.call_function(torch.ops.aten.copy_.default, (buffer, product))
        graph.output([product, gradient, None])
        for node in (weight, buffer, tangent, product, gradient):
            node.meta["val"] = torch.empty(4)
        write.meta["val"] = buffer.meta["val"]
        joint = JointGraph(graph, 1)
        self.assertEqual([joint.steps[number].name for number in joint.writes], [write.name])
        with self.assertRaisesRegex(planlab.torch.NotPlanned, "primals_2, which the step overwrites"):
            check_plan(joint, split(joint, []))
        write.replace_input_with(buffer, weight)
        write.meta["val"] = weight.meta["val"]
        check_plan(JointGraph(graph, 1), split(JointGraph(graph, 1), []))

    def test_operation_that_may_not_run_twice_is_refused(self):
        module, inputs = perceptron()
        joint = capture_step(module, inputs).joint
        with self.assertRaisesRegex(planlab.torch.NotPlanned, "native_dropout.* may not run twice"):
            check_plan(joint, split(joint, []))
        check_plan(joint, split(joint, Search(JointProblem(joint), 0, 0.0).evaluate([]).kept))

    def test_step_that_saves_less_than_its_parameters_is_planned(self):
        module, inputs = Looked(), (torch.randint(0, 20000, (256,)),)
        wanted = train_step(module, module, inputs)
        report, peak, found = self.fitted(module, inputs, share=1.0, scheduler=None)
        self.assert_equal(wanted, found)
        self.assertEqual(peak, report.peak)

    def test_gradients_that_autograd_copies_count(self):
        class Shared(nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.second, self.wide = (nn.Parameter(torch.randn(64, 64)) for _ in range(3))

            def forward(self, x):
                return torch.tanh(x @ (self.first + self.second)).sum() + self.wide.sum()

        module, inputs = Shared(), (torch.randn(4, 64),)
        report, peak, _ = self.fitted(module, inputs, share=1.0, scheduler=None)
        self.assertEqual(peak, report.peak)
        self.assertGreaterEqual(peak, 3 * 4 * 64 * 64)

    def test_operations_of_extensions_run_once(self):
        calls = []

        @torch.library.custom_op("planlab_tests::count", mutates_args=())
        def count(x: torch.Tensor) -> torch.Tensor:
            calls.append(1)
            return x + 1

        count.register_fake(torch.empty_like)
        count.register_autograd(lambda context, gradient: gradient)
        module = Layers(lambda module, index, x: torch.tanh(count(x).sin()))
        inputs = (torch.randn(256, 64),)
        with planlab.torch.fit(share=0.8, scheduler=None) as planner:
            compiled = torch.compile(module, backend="aot_eager", fullgraph=True)
            train_step(module, compiled, inputs)
        calls.clear()
        train_step(module, compiled, inputs)
        self.assertEqual(len(calls), len(module.layers))
        self.assertGreater(len(planner.reports[0].recomputed), 0)

    def test_checkpoints_of_a_module_are_refused(self):
        def call(module, index, x):
            return torch.utils.checkpoint.checkpoint(lambda y: torch.tanh(y).sin(), x, use_reentrant=False)

        self.assert_refused(Layers(call), (torch.randn(256, 64),), "says itself")

    def test_backend_with_its_own_partitioner_is_refused(self):
        module, inputs = perceptron()
        self.assert_refused(module, inputs, "without a plan", backend="aot_eager_default_partitioner")

    def test_blocks_do_not_nest(self):
        with self.assertRaisesRegex(RuntimeError, "inside of another"), planlab.torch.fit("1GB"), planlab.torch.fit("1GB"):
            self.fail("the inner block has begun")

    def test_step_that_fits_is_not_searched(self):
        module, inputs = perceptron()
        with mock.patch.object(Search, "best_from") as search:
            report, _, _ = self.fitted(module, inputs, capacity="1GB")
        search.assert_not_called()
        self.assertEqual((report.start, report.recompute_seconds), ("everything", 0.0))

    def test_block_without_a_plan_is_warned_of(self):
        module, x = nn.Linear(8, 8), torch.randn(4, 8)
        with self.assertWarnsRegex(UserWarning, "no graph was planned"), planlab.torch.fit("1GB"):
            module(x)

    def timed_joint(self, make):
        """A joint graph whose operations take the same time in every run."""
        joint = capture_step(*make()).joint
        for step in joint.steps:
            step.seconds = 1.0 + step.number % 7
        return joint

    def test_search_improves_a_start(self):
        joint = self.timed_joint(transformer)
        capacity = int(Search(JointProblem(joint), 0, 0.0).everything().peak * 0.7)
        search = Search(JointProblem(joint), capacity, 5.0)
        for start in (saved_values(JointProblem(joint)), []):
            begun = search.evaluate(start)
            _, found = search.best_from({"start": start})
            self.assertLess(found.rank(), begun.rank())
            self.assertLessEqual(found.peak, capacity)

    def test_search_improves_a_schedule(self):
        searches = []
        best_from = Search.best_from

        def noted(search, starts):
            found = best_from(search, starts)
            searches.append((search, starts, found))
            return found

        module, inputs = transformer()
        with mock.patch.object(Search, "best_from", autospec=True, side_effect=noted):
            report, peak, _ = self.fitted(module, inputs, share=0.6, scheduler="joint", time_limit=2.0)
        search, starts, (start, found) = searches[0]
        self.assertEqual(list(starts), ["joint", "everything", "nothing"])
        self.assertEqual((report.start, report.recompute_seconds), (start, found.seconds))
        self.assertLessEqual(found.rank(), search.evaluate(starts["joint"]).rank())
        self.assertLessEqual(peak, report.capacity)

    def test_no_capacity_above_the_least_is_refused(self):
        for make in (residual, lambda: (Layers(scaled_layer), (torch.randn(256, 64),))):
            problem = JointProblem(self.timed_joint(make))
            starts = {"everything": saved_values(problem), "nothing": []}
            most = Search(problem, 0, 0.0).everything().peak
            with self.assertRaises(planlab.torch.DoesNotFit) as raised:
                find_choice(problem, 1, 2.0, lambda: starts)
            least = raised.exception.least
            self.assertLess(least, most)
            for capacity in range(least, most, max((most - least) // 9, 1)):
                _, choice = find_choice(problem, capacity, 2.0, lambda: starts)
                self.assertLessEqual(choice.peak, capacity)
            with self.assertRaises(planlab.torch.DoesNotFit):
                find_choice(problem, least - 1, 2.0, lambda: starts)

    def test_impossible_capacity_is_refused_before_training(self):
        module, inputs = transformer()
        with self.assertRaises(planlab.torch.DoesNotFit) as raised, planlab.torch.fit("10kB", scheduler=None):
            train_step(module, torch.compile(module, backend="aot_eager"), inputs)
        self.assertTrue(all(parameter.grad is None for parameter in module.parameters()))
        self.assertIn(str(raised.exception.least), str(raised.exception))
        report, peak, _ = self.fitted(module, inputs, capacity=raised.exception.least, scheduler=None)
        self.assertLessEqual(peak, raised.exception.least)
        self.assertLess(report.peak, report.peak_of_all)

    def test_examples_of_the_page_fit(self):
        net, *steps = re.findall(r"```python\n(.*?)```", (ROOT / "docs/torch.md").read_text(), re.DOTALL)
        names = {"print": lambda *values: None}
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "net.jsonl")
            exec(net.replace("net.jsonl", str(path)), names)
            self.assertEqual(path.read_text(), names["net"].write())
        self.assertNotEqual(set(names["schedule"].classes.values()), {"keep"})
        self.assertEqual(len(steps), 2)
        for step in steps:
            exec(step, names)
            self.assertLess(names["report"].peak, names["report"].peak_of_all)
            self.assertLessEqual(names["report"].peak, 12_000_000)
            self.assertTrue(names["report"].recomputed)

    def test_settings_are_restored(self):
        config, partitioners = (importlib.import_module(f"torch._functorch.{name}") for name in ("config", "partitioners"))

        def settings():
            return config.joint_custom_pass, config.enable_autograd_cache, partitioners.choose_saved_values_set

        before = settings()
        with self.assertRaises(ZeroDivisionError), planlab.torch.fit("1GB"):
            self.assertNotEqual(settings()[2], before[2])
            raise ZeroDivisionError
        self.assertEqual(settings(), before)

    def test_dynamic_shapes_are_refused(self):
        module, inputs = perceptron()
        with self.assertRaisesRegex(Exception, "dynamic shapes"), planlab.torch.fit("1GB", scheduler=None):
            torch.compile(module, backend="aot_eager", dynamic=True)(*inputs)

    def test_wrong_arguments_are_refused(self):
        for options in ({}, {"capacity": 1, "share": 0.5}, {"share": 0.0}, {"share": 1.5}, {"capacity": "a lot"}):
            with self.subTest(options), self.assertRaises(ValueError):
                planlab.torch.StepPlanner(**options)

    def test_sizes_have_decimal_and_binary_units(self):
        sizes = {"500MB": 500_000_000, "2GiB": 2 << 30, "8m": 8 << 20, "1.5kB": 1500, 7: 7, "64 b": 64}
        self.assertEqual({text: parse_bytes(text) for text in sizes}, sizes)
        for text in ("", "0", "-1", "5 apples"):
            with self.subTest(text), self.assertRaises(ValueError):
                parse_bytes(text)


@unittest.skipIf(MISSING, MISSING)
class Counters(unittest.TestCase):
    def test_freed_bytes_do_not_count(self):
        kept = torch.zeros(1000)
        with planlab.torch.LiveCounter() as counter:
            first = kept + 1
            second = first.view(10, 100) + 1
            del first
            third = second * 2
        self.assertEqual(counter.peak, 8000)
        self.assertEqual(counter.live, 8000)
        del second, third
        self.assertEqual(counter.live, 0)

    def test_later_storages_at_the_same_address_count(self):
        before = [torch.zeros(1000) for _ in range(8)]
        with planlab.torch.LiveCounter() as counter:
            first = [tensor + 1 for tensor in before]
            del before
            second = [tensor + 1 for tensor in first]
        self.assertEqual(counter.live, 4000 * (len(first) + len(second)))
        self.assertEqual(counter.peak, counter.live)


if __name__ == "__main__":
    unittest.main()
