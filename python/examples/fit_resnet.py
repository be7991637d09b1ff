"""Trains a ResNet without compilation at several capacities, with copies to the host and without.

    python examples/fit_resnet.py [BLOCKS CHANNELS BATCH PIXELS]

For each capacity it prints the counted peak of a step, its seconds (the least), and whether losses, gradients and running
statistics are those of plain PyTorch, bit for bit. Every row has an optimiser of its own and begins with the same weights.
"""

import copy
import sys
import time

import planlab.torch
import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

STEPS = 15
# Two steps are watched, and the third one begins with the search.
FIRST = 3
SHARES = (0.8, 0.6, 0.4, 0.3, 0.25)
LINKS = (None, "1GB/s")


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.convolutions = nn.ModuleList(nn.Conv2d(channels, channels, 3, padding=1, bias=False) for _ in range(2))
        self.norms = nn.ModuleList(nn.BatchNorm2d(channels) for _ in range(2))

    def forward(self, x):
        y = functional.relu(self.norms[0](self.convolutions[0](x)), inplace=True)
        return functional.relu(self.norms[1](self.convolutions[1](y)) + x, inplace=True)


class Checkpoint(nn.Module):
    """A block whose backward pass runs it again, as PyTorch offers it."""

    def __init__(self, block):
        super().__init__()
        self.block = block

    def forward(self, x):
        return checkpoint(self.block, x, use_reentrant=False)


def resnet(blocks, channels):
    layers = [nn.Conv2d(3, channels, 3, padding=1), *(Block(channels) for _ in range(blocks))]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10))


def train(model, images, classes, counter):
    """The peaks and seconds of some steps, and all that they computed."""
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    peaks, seconds, values = [], [], []
    for _ in range(STEPS):
        optimiser.zero_grad(set_to_none=True)
        before = counter.peak = counter.live
        began = time.perf_counter()
        loss = functional.cross_entropy(model(images), classes)
        loss.backward()
        seconds.append(time.perf_counter() - began)
        peaks.append(counter.peak - before)
        values += [loss.detach().clone(), *(parameter.grad.clone() for parameter in model.parameters())]
        del loss
        optimiser.step()
    values += [buffer.clone() for buffer in model.buffers()]
    return max(peaks[FIRST:]), min(seconds[FIRST:]), values


def is_same(wanted, found):
    return all(torch.equal(one, other) for one, other in zip(wanted, found, strict=True))


def main():
    blocks, channels, batch, pixels = (int(word) for word in sys.argv[1:] or (8, 32, 16, 32))
    torch.manual_seed(0)
    first = resnet(blocks, channels)
    inputs = torch.randn(batch, 3, pixels, pixels), torch.randint(0, 10, (batch,))
    with planlab.torch.LiveCounter() as counter:
        most, seconds, wanted = train(copy.deepcopy(first), *inputs, counter)
    print(f"{'link':<8}{'capacity MB':>12}{'peak MB':>10}{'seconds':>10}{'again':>7}{'copied':>8}  same")
    print(f"{'':<8}{'':>12}{most / 1e6:>10.1f}{seconds:>10.3f}{'':>15}  True", flush=True)
    blocked = nn.Sequential(*(Checkpoint(part) if isinstance(part, Block) else part for part in copy.deepcopy(first)))
    with planlab.torch.LiveCounter() as counter:
        peak, seconds, found = train(blocked, *inputs, counter)
    print(
        f"{'every block a checkpoint':<20}{peak / 1e6:>6.1f}{seconds:>10.3f}{'':>15}  {is_same(wanted, found)}", flush=True
    )
    for link, share in ((link, share) for link in LINKS for share in SHARES):
        model = copy.deepcopy(first)
        row = f"{link or '':<8}{most * share / 1e6:>12.1f}"
        try:
            with planlab.torch.LiveCounter() as counter, planlab.torch.fit(model, int(most * share), link=link) as planner:
                peak, seconds, found = train(model, *inputs, counter)
        except planlab.torch.DoesNotFit as error:
            print(f"{row}  does not fit; the least peak is {error.least / 1e6:.1f} MB", flush=True)
            continue
        report = planner.reports[0]
        counts = f"{len(report.recomputed):>7}{len(report.swapped):>8}"
        print(f"{row}{peak / 1e6:>10.1f}{seconds:>10.3f}{counts}  {is_same(wanted, found)}", flush=True)


if __name__ == "__main__":
    main()
