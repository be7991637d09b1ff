"""Nets out of PyTorch modules, and training steps within a capacity; skipped without PyTorch 2.4."""

import importlib.util
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


def takes_solvers():
    return importlib.util.find_spec("torch") and hasattr(
        importlib.import_module("torch._inductor.custom_graph_pass"), "CustomKnapsackSolver"
    )


@unittest.skipIf(MISSING, MISSING)
@unittest.skipUnless(MISSING or takes_solvers(), "this PyTorch takes no solver for its memory budget")
class Fits(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        torch.set_num_threads(1)
        self.addCleanup(torch._dynamo.reset)

    def fitted(self, module, inputs, **options):
        """The report of a step within a capacity, its counted peak, its loss and gradients."""
        with planlab.torch.fit(**options) as solver:
            compiled = torch.compile(module, backend="aot_eager", fullgraph=True)
            result = train_step(module, compiled, inputs)
        module.zero_grad()
        with planlab.torch.LiveCounter() as counter:
            train_step(module, compiled, inputs)
        self.assertEqual(len(solver.reports), 1)
        return solver.reports[0], counter.peak, result

    def assert_fits(self, make, shares):
        module, inputs = make()
        buffers = {name: value.clone() for name, value in module.named_buffers()}
        plain = torch.compile(module, backend="aot_eager", fullgraph=True)
        wanted = train_step(module, plain, inputs)
        peaks = []
        for share in shares:
            module.load_state_dict(buffers, strict=False)
            report, peak, found = self.fitted(module, inputs, share=share, scheduler=None)
            self.assertEqual(peak, report.peak, "the estimate is what is counted")
            self.assertLessEqual(peak, report.capacity)
            self.assertLessEqual(report.capacity, report.peak_of_all)
            for one, other in zip(wanted, found, strict=True):
                self.assertTrue(torch.equal(one, other), "loss and gradients keep every bit")
            peaks.append(peak)
        self.assertEqual(peaks, sorted(peaks, reverse=True))
        self.assertLess(peaks[-1], peaks[0])
        return report

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

    def test_block_without_a_plan_is_warned_of(self):
        module, x = nn.Linear(8, 8), torch.randn(4, 8)
        with self.assertWarnsRegex(UserWarning, "no graph was planned"), planlab.torch.fit("1GB"):
            module(x)

    def test_search_improves_a_schedule(self):
        module, inputs = transformer()
        report, peak, _ = self.fitted(module, inputs, share=0.6, scheduler="joint", time_limit=2.0)
        self.assertIn(report.start, ("joint", "everything", "nothing"))
        self.assertLessEqual(peak, report.capacity)

    def test_impossible_capacity_is_refused_before_training(self):
        module, inputs = transformer()
        with self.assertRaises(planlab.torch.DoesNotFit) as raised, planlab.torch.fit("10kB", scheduler=None):
            train_step(module, torch.compile(module, backend="aot_eager"), inputs)
        self.assertTrue(all(parameter.grad is None for parameter in module.parameters()))
        self.assertIn(str(raised.exception.least), str(raised.exception))
        report, peak, _ = self.fitted(module, inputs, capacity=raised.exception.least, scheduler=None)
        self.assertLessEqual(peak, raised.exception.least)
        self.assertLess(report.peak, report.peak_of_all)

    def test_example_of_the_page_fits(self):
        blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs/torch.md").read_text(), re.DOTALL)
        self.assertEqual(len(blocks), 2)
        names = {"print": lambda *values: None}
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "net.jsonl")
            exec("".join(blocks).replace("net.jsonl", str(path)), names)
            self.assertEqual(path.read_text(), names["net"].write())
        self.assertNotEqual(set(names["schedule"].classes.values()), {"keep"})
        self.assertLess(names["report"].peak, names["report"].peak_of_all)
        self.assertLessEqual(names["report"].peak, 12_000_000)

    def test_settings_are_restored(self):
        config = importlib.import_module("torch._functorch.config")
        before = config.activation_memory_budget, config.activation_memory_budget_solver
        with self.assertRaises(ZeroDivisionError), planlab.torch.fit("1GB"):
            self.assertNotEqual(config.activation_memory_budget, before[0])
            raise ZeroDivisionError
        self.assertEqual((config.activation_memory_budget, config.activation_memory_budget_solver), before)

    def test_dynamic_shapes_are_refused(self):
        module, inputs = perceptron()
        with self.assertRaisesRegex(Exception, "dynamic shapes"), planlab.torch.fit("1GB", scheduler=None):
            torch.compile(module, backend="aot_eager", dynamic=True)(*inputs)

    def test_wrong_arguments_are_refused(self):
        for options in ({}, {"capacity": 1, "share": 0.5}, {"share": 0.0}, {"share": 1.5}, {"capacity": "a lot"}):
            with self.subTest(options), self.assertRaises(ValueError):
                planlab.torch.BudgetSolver(**options)

    def test_sizes_have_decimal_and_binary_units(self):
        from planlab._torch_fit import parse_bytes

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


if __name__ == "__main__":
    unittest.main()
