"""One net, one configuration, one process: propagates, measures, and prints a line of JSON.

The caller chooses the allocator; this program does nothing special. It measures for each timed propagation: wall time,
CPU time of all threads, minor page faults. For the process: the cost of the first propagation, the most resident memory
ever, and the most after the warm-up (the kernel's mark is reset through /proc/self/clear_refs). `digest` is a digest of
the output's bytes; in training, of all losses and all weights.
"""

import argparse
import hashlib
import json
import os
import resource
import sys
import time


# The bytes read of /proc/self/status: enough for the fields, and fewer than a request that would be planned, so that
# measuring does not change the result.
STATUS_BYTES = 2048


def status(field: str) -> int:
    """A field of /proc/self/status, in bytes."""
    file = os.open("/proc/self/status", os.O_RDONLY)
    for line in os.read(file, STATUS_BYTES).splitlines():
        if line.startswith(field.encode() + b":"):
            os.close(file)
            return int(line.split()[1]) * 1024
    raise SystemExit(f"drive: /proc/self/status has no {field}")


def forget_peak() -> bool:
    """Resets the kernel's mark of the most resident memory; returns false if that fails."""
    try:
        file = os.open("/proc/self/clear_refs", os.O_WRONLY)
        os.write(file, b"5")
        os.close(file)
        return True
    except OSError:
        return False


def measured(propagate, numbers: range) -> tuple:
    """Mean wall time and CPU time in nanoseconds, and mean minor page faults (rounded up), of one propagation."""
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    wall, cpu = time.perf_counter_ns(), time.process_time_ns()
    for number in numbers:
        propagate(number)
    cpu, wall = time.process_time_ns() - cpu, time.perf_counter_ns() - wall
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults
    return wall // len(numbers), cpu // len(numbers), -(-faults // len(numbers))


def describe_samples(first: tuple, samples: list) -> dict:
    """The fields of a row with the first propagation and the timed ones, each as `measured` returns it."""
    walls, cpus, faults = (list(column) for column in zip(*samples))
    return {
        "first_wall_ns": first[0],
        "first_cpu_ns": first[1],
        "first_faults": first[2],
        "wall_ns": walls,
        "cpu_ns": cpus,
        "faults": faults,
    }


class Torch:
    """A net in PyTorch, in inference or in training with SGD."""

    def __init__(self, arguments):
        import nets
        import torch

        torch.set_num_threads(arguments.threads)
        self.torch = torch
        self.framework = "torch-" + torch.__version__.split("+")[0]
        self.net = nets.make(arguments.net)
        self.inputs = nets.inputs(arguments.net, arguments.batch)
        self.is_training = arguments.mode == "train"
        self.net.train(self.is_training)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=1e-3, momentum=0.9)
        self.losses = []
        torch.manual_seed(nets.SEED)

    def propagate(self, number: int):
        images, targets = self.inputs[number % len(self.inputs)]
        if self.is_training:
            return self.train(images, targets)
        with self.torch.inference_mode():
            return self.net(images)

    def train(self, images, targets):
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.torch.nn.functional.cross_entropy(self.net(images), targets)
        loss.backward()
        self.optimizer.step()
        self.losses.append(loss.item())
        return loss.detach()

    def digest(self, output) -> str:
        digest = hashlib.sha256(output.numpy().tobytes())
        if self.is_training:
            digest.update(json.dumps(self.losses).encode())
            for parameter in self.net.parameters():
                digest.update(parameter.detach().numpy())
        return digest.hexdigest()


class Onnxruntime:
    """An exported net on onnxruntime's CPU provider, in inference; with its arena and memory patterns on request."""

    def __init__(self, arguments):
        import numpy
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = arguments.threads
        options.inter_op_num_threads = 1
        options.enable_cpu_mem_arena = arguments.arena
        options.enable_mem_pattern = arguments.arena
        options.log_severity_level = 3
        self.framework = "onnxruntime-" + onnxruntime.__version__
        providers = ["CPUExecutionProvider"]
        self.session = onnxruntime.InferenceSession(arguments.model, options, providers=providers)
        with numpy.load(arguments.inputs) as kept:
            self.inputs = [{"input": kept[name]} for name in sorted(kept.files)]

    def propagate(self, number: int):
        return self.session.run(None, self.inputs[number % len(self.inputs)])

    def digest(self, output) -> str:
        return hashlib.sha256(output[0].tobytes()).hexdigest()


def run(arguments) -> dict:
    subject = (Torch if arguments.framework == "torch" else Onnxruntime)(arguments)
    resident_before = status("VmRSS")
    first = measured(subject.propagate, range(1))
    for number in range(1, arguments.warm_up):
        subject.propagate(number)
    peak_before = status("VmHWM")
    is_forgotten = forget_peak()
    samples = []
    # One sample covers the inputs of all lengths, as each length has its own time.
    turn, end = len(subject.inputs), arguments.warm_up + arguments.timed
    for begin in range(arguments.warm_up, end, turn):
        samples.append(measured(subject.propagate, range(begin, begin + turn)))
    steady_peak = status("VmHWM") if is_forgotten else None
    peak = max(peak_before, status("VmHWM"))
    output = subject.propagate(end)
    return describe_samples(first, samples) | {
        "framework": subject.framework,
        "warm_up": arguments.warm_up,
        "resident_before": resident_before,
        "resident_peak": peak,
        "steady_peak": steady_peak,
        "digest": subject.digest(output),
    }


def export(arguments) -> dict:
    """Writes the net and its inputs for onnxruntime; the batch size stays open."""
    import numpy

    subject = Torch(arguments)
    axes = {0: "batch", 1: "length"} if arguments.net == "seq2seq" else {0: "batch"}
    subject.torch.onnx.export(
        subject.net, subject.inputs[0][0], arguments.model, input_names=["input"], dynamic_axes={"input": axes}
    )
    numpy.savez(arguments.inputs, **{f"{at:02}": images.numpy() for at, (images, _) in enumerate(subject.inputs)})
    return {"framework": subject.framework, "model": arguments.model}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--framework", choices=["torch", "onnxruntime"], default="torch")
    parser.add_argument("--net", required=True)
    parser.add_argument("--mode", choices=["infer", "train"], default="infer")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--warm-up", type=int, default=6, help="propagations before the timed ones, the first included")
    parser.add_argument("--timed", type=int, default=8, help="propagations that are timed")
    parser.add_argument("--model", help="the ONNX file")
    parser.add_argument("--inputs", help="its inputs, an .npz file")
    parser.add_argument("--arena", action="store_true", help="onnxruntime's own arena and memory patterns stay on")
    parser.add_argument("--export", action="store_true", help="only write MODEL and INPUTS")
    arguments = parser.parse_args()
    if arguments.warm_up < 1 or arguments.timed < 1:
        parser.error("--warm-up and --timed must be at least 1")
    json.dump(export(arguments) if arguments.export else run(arguments), sys.stdout)
    print()


if __name__ == "__main__":
    main()
