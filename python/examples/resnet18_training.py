"""Records a training of ResNet-18 in PyTorch, plans its memory, and saves it for `planlab explain`.

    pip install ./python torch torchvision
    python3 python/examples/resnet18_training.py resnet18.json.zst
    planlab explain resnet18.json.zst
"""

import sys

import planlab
import torch
import torchvision

with planlab.record("torch", device="cpu") as recording:
    net = torchvision.models.resnet18()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for _ in range(3):
        recording.iteration()
        loss = torch.nn.functional.cross_entropy(net(torch.randn(8, 3, 224, 224)), torch.arange(8))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
plan = recording.trace.plan()
print(f"{len(recording.trace)} buffers; iterations at steps", *recording.iterations)
print(f"load {plan.load} bytes, height {plan.height} bytes, proved {plan.proved}")
recording.save(sys.argv[1])
