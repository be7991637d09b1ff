"""Trains nets within less and less memory, each contender in a process; writes a JSON row for each to OUT/frameworks.jsonl.

The contenders are planlab with `torch.compile` and without, PyTorch's solvers of its memory budget, checkpoints around the
blocks of a net, and saved tensors on the host. The capacities are shares of what a step takes with no limit, which is
measured first. Existing rows are not measured again, so a stopped run continues where it was. docs/FILES.md describes the
fields. Exit code 3: a contender has no figures, and its row says why.
"""

import argparse
import hashlib
import json
import os
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

from bench import UNMEASURED, Failed, Rows, limit_threads, process, read_provenance, run_script, say

SCHEMA = 2
DRIVER = Path(__file__).with_name("budget_step.py")
ROWS = "frameworks.jsonl"
# The nets, with the images or sentences of a step.
BATCHES = {"gpt": 16, "resnet18": 32, "unet": 32, "bert": 16, "vgg": 48, "lstm": 128}
QUICK_NETS = ("gpt", "resnet18")
SHARES = (0.8, 0.6, 0.4)
BUDGETS = (0.7, 0.5, 0.3, 0.2, 0.1)
SOLVERS = ("dp", "greedy", "ilp")
LINK = "1GB/s"
THREADS = 1
WARM_UP, TIMED = 5, 7
# A process searches, plans and trains; on a busy machine that takes minutes.
PROCESS_SECONDS = 900
# Blocks of this many bytes or more come from mmap until the peak is measured.
MMAP_BYTES = 1 << 16
# Of planlab's search, which several starts have each.
SEARCH_SECONDS, QUICK_SEARCH_SECONDS = 10.0, 2.0


class Contender(NamedTuple):
    """A way to save memory, and how much of it."""

    name: str
    share: float | None = None  # planlab's capacity over what a step takes with no limit
    budget: float | None = None  # PyTorch's activation_memory_budget
    link: str = ""  # the rate of copies

    def settings(self) -> str:
        """The settings in one line."""
        given = {"share": self.share, "budget": self.budget, "link": self.link or None}
        return " ".join(f"{name}={value}" for name, value in given.items() if value is not None)


UNCONSTRAINED = Contender("unconstrained")


def list_contenders(shares: tuple, budgets: tuple) -> list:
    """All contenders in turn; the first one has no limit."""
    plain = [UNCONSTRAINED, Contender("torch/checkpoint"), Contender("torch/save-on-cpu")]
    ours = [
        Contender(name, share=share, link=link)
        for share in shares
        for name, link in (("planlab/compiled", ""), ("planlab/eager", ""), ("planlab/eager-link", LINK))
    ]
    return plain + ours + [Contender(f"torch/{solver}", budget=budget) for solver in SOLVERS for budget in budgets]


class Installed(NamedTuple):
    """The PyTorch and the planlab that are measured."""

    python: str
    framework: str  # torch-2.15.0
    package: str  # digest of the package planlab

    @classmethod
    def find(cls, python: str) -> "Installed":
        code = "import planlab, torch; print(torch.__version__.split('+')[0]); print(planlab.__path__[0])"
        answer = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
        if answer.returncode != 0:
            raise SystemExit(f"bench-budget: {python} lacks PyTorch 2 or planlab; see scripts/setup-torch")
        version, folder = answer.stdout.splitlines()
        return cls(python, f"torch-{version}", digest_package(Path(folder)))


def digest_package(folder: Path) -> str:
    """Digest of a package's modules: planlab's rows of another build are measured again."""
    digest = hashlib.sha256()
    for file in sorted(file for file in folder.iterdir() if file.suffix in (".py", ".so")):
        digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()


class Cell(NamedTuple):
    """A contender on a net."""

    net: str
    batch: int
    contender: Contender
    search_seconds: float

    def key(self, installed: Installed, host: str) -> str:
        """Digest of everything that defines a row except the repetition."""
        parts = [installed.framework, self.net, self.batch, THREADS, WARM_UP, TIMED, self.contender.name]
        parts += [self.contender.settings(), host]
        parts += [self.search_seconds, installed.package] if self.contender.share else []
        return hashlib.sha256("|".join(map(str, parts)).encode()).hexdigest()[:16]

    def command(self, python: str, capacity: int | None) -> list:
        """The command of the row's process."""
        options = {
            "net": self.net,
            "batch": self.batch,
            "threads": THREADS,
            "contender": self.contender.name,
            "capacity": capacity,
            "budget": self.contender.budget,
            "link": self.contender.link or None,
            "search-seconds": self.search_seconds,
            "warm-up": WARM_UP,
            "timed": TIMED,
        }
        given = [(f"--{name}", str(value)) for name, value in options.items() if value is not None]
        return [python, str(DRIVER), *(word for pair in given for word in pair)]


def find_capacity(contender: Contender, unconstrained: dict | None) -> int | None:
    """The bytes of a contender's step; None for those that ask for no number of bytes.

    Raises Failed if it is a share of what was not measured.
    """
    if contender.share is None:
        return None
    if unconstrained is None or unconstrained["status"] != "complete":
        raise Failed("what the step takes with no limit is unknown")
    return int(unconstrained["budget"]["counted_peak"] * contender.share)


def measure(cell: Cell, installed: Installed, unconstrained: dict | None) -> dict:
    """A row without the fields that the caller adds."""
    environment = {**os.environ, **limit_threads(THREADS), "MALLOC_MMAP_THRESHOLD_": str(MMAP_BYTES)}
    row = {
        "framework": installed.framework,
        "net": cell.net,
        "mode": "train",
        "batch": cell.batch,
        "threads": THREADS,
        "contender": cell.contender.name,
        "settings": cell.contender.settings(),
        "status": "complete",
        "reason": "",
        "warm_up": WARM_UP,
        "started_ns": time.time_ns(),
    }
    try:
        capacity = find_capacity(cell.contender, unconstrained)
        return row | process(cell.command(installed.python, capacity), environment, PROCESS_SECONDS)
    except Failed as failure:
        return row | UNMEASURED | {"status": "failed", "reason": str(failure), "budget": {}}


def describe_row(row: dict) -> str:
    if row["status"] != "complete":
        return f"{row['status']}: {row['reason']}"
    figures = row["budget"]
    megabytes = [f"{(figures[name] or 0) / 1e6:.1f} MB" for name in ("counted_peak", "measured_peak")]
    return f"{min(row['cpu_ns']) / 1e6:.0f} ms of CPU time, {megabytes[0]} counted, {megabytes[1]} measured"


def list_cells(arguments) -> list:
    """The requested cells, net by net; the one with no limit comes first, because the capacities depend on it."""
    nets = arguments.net or (QUICK_NETS if arguments.quick else BATCHES)
    shares, budgets = (SHARES[1:2], BUDGETS[1:2]) if arguments.quick else (SHARES, BUDGETS)
    seconds = QUICK_SEARCH_SECONDS if arguments.quick else SEARCH_SECONDS
    part = 4 if arguments.quick else 1
    named = lambda contender: not arguments.contender or contender.name in (UNCONSTRAINED.name, *arguments.contender)
    wanted = [contender for contender in list_contenders(shares, budgets) if named(contender)]
    return [Cell(net, BATCHES[net] // part, contender, seconds) for net in nets for contender in wanted]


def run(arguments) -> int:
    began = time.monotonic()
    installed = Installed.find(arguments.python)
    provenance = read_provenance(Path(arguments.planlab).resolve())
    folder = Path(arguments.out)
    folder.mkdir(parents=True, exist_ok=True)
    rows = Rows(folder / ROWS)
    cells = [(cell, repetition) for cell in list_cells(arguments) for repetition in range(arguments.reps)]
    code, unconstrained = 0, None
    for at, (cell, repetition) in enumerate(cells, 1):
        key = cell.key(installed, provenance["host"])
        row = rows.there.get((key, repetition))
        if row is None:
            if arguments.limit and time.monotonic() - began > arguments.limit:
                say(f"{arguments.limit} s are over: the next run continues with {cell.net}, {cell.contender.name}")
                return 3
            load = round(os.getloadavg()[0] * 1000)
            row = measure(cell, installed, unconstrained)
            row |= {"provenance": provenance | {"load_average_milli": load}}
            row = {"schema": SCHEMA, "cell": key, "repetition": repetition} | row
            rows.append(row)
            name = f"{cell.net}, {cell.contender.name} {cell.contender.settings()}".rstrip()
            say(f"{at}/{len(cells)}, {time.monotonic() - began:.0f} s: {name}: {describe_row(row)}")
        unconstrained = row if cell.contender == UNCONSTRAINED else unconstrained
        code = 3 if row["status"] == "failed" else code
    return code


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--planlab", required=True, metavar="FILE", help="the binary, which names machine and build")
    parser.add_argument(
        "--python", default="target/torch/bin/python", metavar="FILE", help="a Python with PyTorch 2 and planlab"
    )
    parser.add_argument("--quick", action="store_true", help="two nets, small batches, one capacity: some minutes")
    parser.add_argument("--net", action="append", choices=BATCHES, help="only these nets")
    parser.add_argument("--contender", action="append", metavar="NAME", help="only these, and the one with no limit")
    run_script(parser, run)


if __name__ == "__main__":
    main()
