"""ResNet-18 in plain PyTorch, without any reference to planlab in its code.

    python3 examples/resnet18.py
    planlab run -- python3 examples/resnet18.py

Prints the CPU time and page faults of each propagation, and at the end the most resident memory.
scripts/setup-frameworks installs PyTorch.
"""

import os
import resource
import sys
import time

DEBIAN_PYTHON = "/usr/bin/python3"
BATCH, PROPAGATIONS = 16, 10

try:
    import torch
    import torchvision
except ModuleNotFoundError as error:
    # Debian's PyTorch works with Debian's Python, which need not be the first on the path.
    if os.path.realpath(sys.executable) != os.path.realpath(DEBIAN_PYTHON) and os.path.exists(DEBIAN_PYTHON):
        os.execv(DEBIAN_PYTHON, [DEBIAN_PYTHON, *sys.argv])
    sys.exit(f"resnet18: {error}; scripts/setup-frameworks installs what is missing")


def propagate(net: torch.nn.Module, images: torch.Tensor) -> torch.Tensor:
    with torch.inference_mode():
        return net(images)


def main() -> None:
    torch.manual_seed(7)
    torch.set_num_threads(1)
    net = torchvision.models.resnet18().eval()
    images = torch.randn(BATCH, 3, 224, 224)
    for number in range(PROPAGATIONS):
        faults, began = resource.getrusage(resource.RUSAGE_SELF).ru_minflt, time.process_time()
        scores = propagate(net, images)
        took = time.process_time() - began
        faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults
        best = int(scores[0].argmax())
        print(f"propagation {number}: {took * 1000:6.1f} ms of CPU time, {faults:6} page faults, class {best}")
        del scores
    print(f"at most {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MiB resident")


if __name__ == "__main__":
    main()
