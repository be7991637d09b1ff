"""Trains a small transformer within a capacity: PyTorch's solvers of the memory budget beside planlab's, on the CPU.

    OMP_NUM_THREADS=1 python fit_transformer.py [LAYERS WIDTH BATCH LENGTH]

Prints a row for each solver and budget: the peak of a step as counted, the least CPU seconds of some steps, and whether loss
and gradients are those of the step with budget 1, bit for bit. `scripts/setup-torch` installs PyTorch; ilp needs SciPy.
"""

import contextlib
import sys
import time

import planlab.torch
import torch
import torch._functorch.config as functorch_config
from torch import nn
from torch.nn import functional

WORDS = 1000
BUDGETS = (0.7, 0.5, 0.3, 0.2, 0.1, 0.05)
SHARES = (0.6, 0.5, 0.4, 0.35, 0.3, 0.27, 0.2)
REPETITIONS = 7


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.heads = max(width // 64, 1)
        self.before_attention, self.before_layers = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention, self.projection = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.attention(self.before_attention(x)).view(batch, length, 3, self.heads, width // self.heads)
        attended = functional.scaled_dot_product_attention(*parts.permute(2, 0, 3, 1, 4), is_causal=True)
        x = x + self.projection(attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.narrow(functional.gelu(self.wide(self.before_layers(x))))


class Transformer(nn.Module):
    def __init__(self, layers, width, length):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, width), nn.Parameter(torch.randn(length, width) * 0.02)
        self.blocks = nn.ModuleList(Block(width) for _ in range(layers))
        self.last, self.head = nn.LayerNorm(width), nn.Linear(width, WORDS)

    def forward(self, tokens, targets):
        x = self.words(tokens) + self.places
        for block in self.blocks:
            x = block(x)
        scores = self.head(self.last(x))
        return functional.cross_entropy(scores.view(-1, WORDS), targets.view(-1))


def train_step(model, compiled, tokens, targets):
    model.zero_grad()
    loss = compiled(tokens, targets)
    loss.backward()
    return [loss.detach(), *(parameter.grad for parameter in model.parameters())]


@contextlib.contextmanager
def torch_budget(solver, budget):
    """PyTorch's own solver, at a share of the bytes that can be saved."""
    torch._dynamo.reset()
    with functorch_config.patch(activation_memory_budget=budget, activation_memory_budget_solver=solver):
        yield


def measure(model, inputs, context):
    """The peak of a step, its CPU seconds, and its loss and gradients."""
    with context:
        compiled = torch.compile(model, backend="aot_eager")
        train_step(model, compiled, *inputs)
    model.zero_grad()
    with planlab.torch.LiveCounter() as counter:
        train_step(model, compiled, *inputs)
    seconds = []
    for _ in range(REPETITIONS):
        began = time.process_time()
        result = train_step(model, compiled, *inputs)
        seconds.append(time.process_time() - began)
    return counter.peak, min(seconds), [value.clone() for value in result]


def main():
    layers, width, batch, length = (int(word) for word in sys.argv[1:] or (6, 256, 8, 256))
    torch.manual_seed(0)
    model = Transformer(layers, width, length)
    inputs = [torch.randint(0, WORDS, (batch, length)) for _ in range(2)]
    most, seconds, wanted = measure(model, inputs, torch_budget("dp", 1.0))
    print(f"{'solver':<10}{'budget':>10}{'peak MB':>10}{'seconds':>10}  same")
    print(f"{'none':<10}{'':>10}{most / 1e6:>10.1f}{seconds:>10.3f}  True")
    contexts = [(solver, budget, torch_budget(solver, budget)) for solver in ("greedy", "dp", "ilp") for budget in BUDGETS]
    contexts += [("planlab", int(most * share), planlab.torch.fit(int(most * share))) for share in SHARES]
    for solver, budget, context in contexts:
        shown = f"{budget / 1e6:.1f} MB" if solver == "planlab" else str(budget)
        try:
            peak, seconds, found = measure(model, inputs, context)
        except planlab.torch.DoesNotFit as error:
            print(f"{solver:<10}{shown:>10}  does not fit; the least peak is {error.least / 1e6:.1f} MB")
            continue
        same = all(torch.equal(one, other) for one, other in zip(wanted, found, strict=True))
        print(f"{solver:<10}{shown:>10}{peak / 1e6:>10.1f}{seconds:>10.3f}  {same}", flush=True)


if __name__ == "__main__":
    main()
