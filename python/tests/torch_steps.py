"""Steps of training for the tests: what they compute, and a case that compares them with plain autograd."""

import copy
import unittest
import warnings

import planlab.torch
import torch
from torch import nn
from torch.nn import functional

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
