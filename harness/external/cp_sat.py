#!/usr/bin/env python3
"""Plans an instance with the CP-SAT solver of OR-Tools, for `planlab`'s external planners.

Reads the lab's buffers CSV (live ranges half-open, optional `alignment` and `offset` = pin). Minimises the height of a
plan as a two-dimensional packing with fixed time intervals. Keeps the best plan so far in the output file; each plan
replaces the one before as a whole. At the end it prints its status, bound and time. --at-most names a height that is
known to be possible. With --capacity it looks for any plan that fits.
"""

import argparse
import csv
import math
import os
import sys
import time

STARTED = time.monotonic()


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("instance")
    parser.add_argument("output")
    parser.add_argument("--at-most", type=int, help="bytes; the height is minimised below this")
    parser.add_argument("--capacity", type=int, help="bytes; any plan that fits is good")
    parser.add_argument("--time-limit", type=float, default=60.0, help="seconds, from the start of this script")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--version", action="version", version=version())
    return parser.parse_args()


def version():
    from importlib import metadata

    try:
        return "ortools " + metadata.version("ortools")
    except metadata.PackageNotFoundError:
        return "ortools is not installed (setup-cp-sat installs it)"


class Buffer:
    def __init__(self, row):
        self.id = row["id"]
        self.lower, self.upper = int(row["lower"]), int(row["upper"])
        self.size = int(row["size"])
        self.alignment = int(row.get("alignment") or 1)
        offset = row.get("offset") or ""
        self.pin = int(offset) if offset not in ("", "-1") else None


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        lines = (line for line in file if not line.startswith("#"))
        return [Buffer(row) for row in csv.DictReader(lines)]


def load(buffers):
    changes = sorted(change for b in buffers for change in ((b.upper, -b.size), (b.lower, b.size)))
    live = most = 0
    for _, change in changes:
        live += change
        most = max(most, live)
    return most


def unit_of(buffers):
    """The largest number of bytes that divides every size, alignment and pin: the solver's unit."""
    unit = 0
    for b in buffers:
        unit = math.gcd(unit, b.size)
        if b.alignment > 1:
            unit = math.gcd(unit, b.alignment)
        if b.pin is not None:
            unit = math.gcd(unit, b.pin)
    return unit or 1


def model_of(cp_model, buffers, unit, capacity, at_most):
    model = cp_model.CpModel()
    total = sum(b.size + b.alignment - 1 for b in buffers)
    top = max([total] + [b.pin + b.size for b in buffers if b.pin is not None])
    limit = min(bytes for bytes in (capacity, at_most, top) if bytes is not None) // unit
    height = model.new_int_var(-(-load(buffers) // unit), limit, "height")
    offsets, times, places = [], [], []
    for b in buffers:
        size = b.size // unit
        if b.pin is not None:
            offset = model.new_int_var(b.pin // unit, b.pin // unit, "")
        elif b.alignment > unit:
            step = b.alignment // unit
            multiple = model.new_int_var(0, limit // step, "")
            offset = model.new_int_var(0, limit, "")
            model.add(offset == step * multiple)
        else:
            offset = model.new_int_var(0, limit, "")
        model.add(offset + size <= height)
        offsets.append(offset)
        times.append(model.new_fixed_size_interval_var(b.lower, b.upper - b.lower, ""))
        places.append(model.new_fixed_size_interval_var(offset, size, ""))
    model.add_no_overlap_2d(times, places)
    model.add_cumulative(times, [b.size // unit for b in buffers], height)
    if capacity is None:
        model.minimize(height)
    return model, offsets


def write(path, buffers, offsets):
    """Writes the file whole or not at all, so that it can be read at any time."""
    partial = path + ".part"
    with open(partial, "w", encoding="utf-8") as file:
        file.write("id,offset\n")
        for b, offset in zip(buffers, offsets):
            file.write(f"{b.id},{offset}\n")
    os.replace(partial, path)


def main():
    args = arguments()
    try:
        from ortools.sat.python import cp_model
    except ImportError:
        sys.exit(version())

    buffers = read(args.instance)
    unit = unit_of(buffers)
    limits = [bytes for bytes in (args.capacity, args.at_most) if bytes is not None]
    if limits and min(limits) < load(buffers):
        print("status: INFEASIBLE")
        return 3
    model, offsets = model_of(cp_model, buffers, unit, args.capacity, args.at_most)

    class Keep(cp_model.CpSolverSolutionCallback):
        def on_solution_callback(self):
            write(args.output, buffers, [unit * self.value(offset) for offset in offsets])

    solver = cp_model.CpSolver()
    solver.parameters.num_workers = args.threads
    solver.parameters.random_seed = args.seed
    # Reading counts as well, and a part of the rest is reserved for the end.
    left = args.time_limit - (time.monotonic() - STARTED)
    solver.parameters.max_time_in_seconds = max(0.01, 0.97 * left - 0.05)
    began = time.monotonic()
    status = solver.solve(model, Keep())
    print(f"solved in: {time.monotonic() - began:.6f} s")
    print(f"status: {solver.status_name(status)}")
    if args.capacity is None and status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        print(f"bound: {unit * math.ceil(solver.best_objective_bound - 1e-6)}")
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return 0
    return 3


if __name__ == "__main__":
    sys.exit(main())
