#!/usr/bin/env python3
"""Checks that a trace of `planlab run --record-only` matches PyTorch's own profiler for a propagation.

    scripts/frameworks/same_as_profiler.py --planlab target/release/planlab [--net NET] [--mode infer|train] [--batch N]

Runs itself under `planlab run --record-only`, with torch.profiler watching one propagation of a net. Then compares, in
order and event by event, requests and frees of at least 4 KiB: their sizes, and which request each free belongs to. The
recorder also sees memory other than tensors (workspaces of libraries, large objects of Python). So the profiler's events
must be a part of the trace's, in the same order; the rest is counted and listed by size.
Prints `equal` (exit code 0) or the first difference (exit code 1).
"""

import argparse
import csv
import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

LEAST = 4096
# Marks before and after the propagation in the trace: requests of a unique size.
MARK = 77_777_777


def watch(arguments) -> None:
    """In the recorded program: a watched propagation between two marks, with the profiler's events in a file."""
    import nets
    import torch
    from torch.profiler import ProfilerActivity, profile

    torch.set_num_threads(1)
    net = nets.make(arguments.net).train(arguments.mode == "train")
    images, targets = nets.inputs(arguments.net, arguments.batch)[0]
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9)

    def propagate():
        if arguments.mode == "infer":
            with torch.inference_mode():
                net(images)
            return
        optimizer.zero_grad(set_to_none=True)
        torch.nn.functional.cross_entropy(net(images), targets).backward()
        optimizer.step()

    propagate()
    propagate()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        torch.empty(MARK, dtype=torch.uint8)
        propagate()
        torch.empty(MARK, dtype=torch.uint8)
    write_events(profiler.profiler.kineto_results.experimental_event_tree(), Path(arguments.events))


def write_events(roots: list, file: Path) -> None:
    """Every request and free that the profiler saw, in order: address and bytes (negative for a free)."""
    found, todo = [], list(reversed(roots))
    while todo:
        node = todo.pop()
        todo += reversed(node.children)
        if node.name == "[memory]":
            found.append((node.start_time_ns, len(found), node.extra_fields.ptr, node.extra_fields.alloc_size))
    found.sort()
    file.write_text(json.dumps([(address, size) for _, _, address, size in found]), encoding="utf-8")


def recorded(file: Path) -> list:
    """The recorder's events: number of the request and bytes (negative for a free)."""
    lines = (line for line in file.open(encoding="utf-8") if not line.startswith("#"))
    sign = {"alloc": 1, "free": -1}
    return [(row["id"], sign[row["event"]] * int(row["size"])) for row in csv.DictReader(lines)]


def between_marks(events: list) -> list:
    """The events after the free of the first mark and before the request of the second."""
    marks = [at for at, (_, size) in enumerate(events) if abs(size) == MARK]
    if len(marks) != 4:
        raise SystemExit(f"same_as_profiler: {len(marks)} events of a mark, not 4")
    return events[marks[1] + 1 : marks[2]]


def paired(events: list) -> list:
    """Each event as its size and, for a free, the number of its request among these events (None if it came before)."""
    live, told, requests = {}, [], 0
    for who, size in events:
        if size > 0:
            live[who] = requests
            told.append((size, None))
            requests += 1
        else:
            told.append((size, live.pop(who, None)))
    return told


def matched(profiler: list, trace: list) -> tuple:
    """Finds the profiler's events in the trace, in order: returns the sizes left over, the matches, the first miss."""
    left, at = [], 0
    kept = []
    for _, size in profiler:
        while at < len(trace) and trace[at][1] != size:
            left.append(trace[at][1])
            at += 1
        if at == len(trace):
            return left, kept, size
        kept.append(trace[at])
        at += 1
    return left + [size for _, size in trace[at:]], kept, None


def compare(arguments) -> int:
    with tempfile.TemporaryDirectory() as folder:
        events, trace = Path(folder) / "events.json", Path(folder) / "trace.csv"
        program = ["/usr/bin/python3", __file__, "--net", arguments.net, "--mode", arguments.mode]
        program += ["--batch", str(arguments.batch), "--events", str(events)]
        words = [arguments.planlab, "run", "--record-only", str(trace), "--", *program]
        subprocess.run(words, check=True)
        profiler = [
            event for event in between_marks(json.loads(events.read_text(encoding="utf-8"))) if abs(event[1]) >= LEAST
        ]
        trace = between_marks(recorded(trace))
    left, kept, missing = matched(profiler, trace)
    requests = sum(size > 0 for _, size in profiler)
    frees = len(profiler) - requests
    named = f"{arguments.net} {arguments.mode} b{arguments.batch}"
    print(f"{named}: {requests} requests, {frees} frees by the profiler")
    if missing is not None:
        print(f"differs: after {len(kept)} events alike the trace lacks one of {missing} bytes")
        return 1
    pairs = zip(paired(profiler), paired(kept), strict=True)
    for at, (ours, theirs) in enumerate(pairs):
        if ours != theirs:
            print(f"differs: event {at} frees another request: {ours}, in the trace {theirs}")
            return 1
    print("equal: every request, its size, its free and their order")
    sizes = Counter(size for size in left if size > 0)
    shown = ", ".join(f"{count} of {size}" for size, count in sizes.most_common(8))
    print(f"in the trace alone: {sum(sizes.values())} requests" + (f" ({shown})" if shown else ""))
    return 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--planlab", default="target/release/planlab", metavar="FILE")
    parser.add_argument("--net", default="resnet18")
    parser.add_argument("--mode", choices=["infer", "train"], default="infer")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--events", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.events:
        watch(arguments)
    else:
        sys.exit(compare(arguments))


if __name__ == "__main__":
    main()
