"""Runs contenders in turn on every cell, each in a process; writes a JSON row for each to OUT/frameworks.jsonl.

Existing rows are not measured again, so a stopped run continues where it was. A row is written whole or not at all.
docs/FILES.md describes the fields. Exit code 3: a contender has no figures, and its row says why.
"""

import argparse
import fnmatch
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import cells
from cells import PLANLAB, Cell, Contender

SCHEMA = 1
DRIVER = Path(__file__).with_name("drive.py")
ROWS = "frameworks.jsonl"
# A process that takes longer counts as failed.
PROCESS_SECONDS = 300
# The length of a failed process's stderr in its row.
REASON_LETTERS = 300


def say(text: str) -> None:
    print(f"{Path(sys.argv[0]).stem}: {text}", file=sys.stderr, flush=True)


def read_provenance(planlab: Path) -> dict:
    """The machine and the build, as in planlab's own rows."""
    answer = subprocess.run([planlab, "doctor", "--json"], capture_output=True, text=True, check=True)
    return json.loads(answer.stdout)["provenance"]


class Places:
    """The paths of everything that a process needs."""

    def __init__(self, planlab: Path, frameworks: Path):
        self.planlab = planlab
        self.models = frameworks / "models"
        # Debian's PyTorch works with Debian's Python, whatever `python3` is.
        self.pythons = {"torch": Path("/usr/bin/python3")}
        for name in ("onnxruntime", "torch2"):
            self.pythons[name] = frameworks / name / "bin" / "python3"
        self.versions = {name: self.version(name) for name in self.pythons}

    def version(self, framework: str) -> str:
        """`torch-1.13.0a0`, or an empty text if it is not installed."""
        module = framework.rstrip("2")
        code = f"import {module}; print('{module}-' + {module}.__version__.split('+')[0])"
        if not self.pythons[framework].exists():
            return ""
        answer = subprocess.run([self.pythons[framework], "-c", code], capture_output=True, text=True, check=False)
        return answer.stdout.strip() if answer.returncode == 0 else ""

    def library(self) -> str:
        """Digest of libplanlab.so: rows of another build are measured again."""
        files = [self.planlab.parent / place / "libplanlab.so" for place in ("", "deps")]
        found = [Path(file) for file in (os.environ.get("PLANLAB_LIBRARY"), *files) if file and Path(file).exists()]
        if not found:
            raise SystemExit("bench-frameworks: there is no libplanlab.so; `just build` makes it")
        return hashlib.sha256(found[0].read_bytes()).hexdigest()


class Rows:
    """The file of rows. An incomplete last line, as a killed run leaves it, is cut off."""

    def __init__(self, file: Path):
        self.file = file
        self.there = {}
        if file.exists():
            self.read()

    def read(self) -> None:
        content = self.file.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        if len(whole) < len(content):
            say(f"{self.file}: a last line of {len(content) - len(whole)} bytes was cut short and is dropped")
            os.truncate(self.file, len(whole))
        for number, line in enumerate(whole.splitlines(), 1):
            try:
                row = json.loads(line)
                self.remember(row)
            except (ValueError, KeyError, TypeError) as error:
                say(f"{self.file}:{number}: {error!r}: not a row")
                raise SystemExit(2) from None

    def remember(self, row: dict) -> None:
        """Notes a row that need not be measured again; failed ones are."""
        if row["status"] != "failed":
            self.there[row["cell"], row["repetition"]] = row

    def append(self, row: dict) -> None:
        line = (json.dumps(row, separators=(",", ":")) + "\n").encode()
        with open(self.file, "ab", buffering=0) as file:
            file.write(line)
            os.fsync(file.fileno())
        self.remember(row)


def key(cell: Cell, contender: Contender, places: Places, host: str) -> str:
    """Digest of everything that defines a row except the repetition."""
    parts = [places.versions[cell.framework], *cell[2:], cell.warm_up(), cell.timed(), contender.name, contender.told()]
    parts += [host, places.library() if contender.name == PLANLAB else ""]
    return hashlib.sha256("|".join(map(str, parts)).encode()).hexdigest()[:16]


def command(cell: Cell, contender: Contender, places: Places, report: Path) -> list:
    """The command of a row's process."""
    driven = [places.pythons[cell.framework], DRIVER, "--net", cell.net, "--mode", cell.mode]
    driven += ["--batch", cell.batch, "--threads", cell.threads]
    driven += ["--warm-up", cell.warm_up(), "--timed", cell.timed()]
    if cell.framework == "onnxruntime":
        model, inputs = exported(cell, places)
        driven += ["--framework", "onnxruntime", "--model", model, "--inputs", inputs]
        driven += ["--arena"] if contender.arena else []
    if contender.name == PLANLAB:
        driven = [places.planlab, "run", "--report", report, "--", *driven]
    return [str(word) for word in driven]


def exported(cell: Cell, places: Places) -> tuple:
    """The net as an ONNX file, with its inputs; made once with PyTorch."""
    folder = places.models / f"{cell.net}-b{cell.batch}"
    model, inputs = folder / "net.onnx", folder / "inputs.npz"
    if not folder.exists():
        places.models.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=places.models) as temporary:
            fresh = Path(temporary) / "net"
            fresh.mkdir()
            words = [places.pythons["torch"], DRIVER, "--net", cell.net, "--batch", cell.batch, "--export"]
            words += ["--model", fresh / model.name, "--inputs", fresh / inputs.name]
            process([str(word) for word in words], os.environ)
            fresh.rename(folder)
    return model, inputs


def limit_threads(threads: int) -> dict:
    """The environment variables that limit the threads of a framework."""
    return dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(threads))


class Failed(Exception):
    """A process without an answer, with the reason."""


def process(words: list, environment: dict, limit: float = PROCESS_SECONDS) -> dict:
    """Runs a process for at most some seconds and returns the object on its last line; its children end with it."""
    running = subprocess.Popen(
        words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        out, errors = running.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(running.pid, signal.SIGKILL)
        running.communicate()
        raise Failed(f"it took more than {limit} s") from None
    except KeyboardInterrupt:
        os.killpg(running.pid, signal.SIGKILL)
        running.communicate()
        raise
    if running.returncode != 0:
        raise Failed(f"exit code {running.returncode}: " + " ".join(errors.split())[-REASON_LETTERS:])
    return json.loads(out.splitlines()[-1])


def planned(report: Path) -> dict:
    """The statistics of `planlab run`; nothing for other contenders."""
    names = ("requests", "planned", "plans", "planning_ns", "plan_height", "plan_load")
    if not report.exists():
        return dict.fromkeys(names)
    told = json.loads(report.read_text(encoding="utf-8"))
    plans = told["plans"]
    largest = max(plans, key=lambda plan: plan["height"], default={"height": None, "load": None})
    nanoseconds = round(sum(plan["planning_seconds"] for plan in plans) * 1e9)
    values = (told["requests"], told["planned"], len(plans), nanoseconds, largest["height"], largest["load"])
    return dict(zip(names, values))


UNMEASURED = {
    "wall_ns": [],
    "cpu_ns": [],
    "faults": [],
} | dict.fromkeys(
    ("first_wall_ns", "first_cpu_ns", "first_faults", "resident_before", "resident_peak", "steady_peak", "digest")
)


def measure(cell: Cell, contender: Contender, places: Places) -> dict:
    """A row without the fields that the caller adds."""
    environment = {**os.environ, **limit_threads(cell.threads), **contender.environment()}
    row = {
        "framework": places.versions[cell.framework],
        "net": cell.net,
        "mode": cell.mode,
        "batch": cell.batch,
        "threads": cell.threads,
        "contender": contender.name,
        "settings": contender.told(),
        "status": "complete",
        "reason": "",
        "warm_up": cell.warm_up(),
        "started_ns": time.time_ns(),
    }
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        try:
            measured = process(command(cell, contender, places, report), environment)
        except Failed as failure:
            row |= {"status": "failed", "reason": str(failure)}
            measured = UNMEASURED
        return row | measured | planned(report)


def shown(row: dict) -> str:
    if row["status"] != "complete":
        return f"failed: {row['reason']}"
    middle = sorted(row["cpu_ns"])[len(row["cpu_ns"]) // 2] / 1e6
    steady = f", {row['steady_peak'] >> 20} MiB" if row["steady_peak"] else ""
    return f"{middle:.1f} ms of CPU time{steady}, {sorted(row['faults'])[len(row['faults']) // 2]} faults"


def chosen(arguments, places: Places) -> list:
    """The requested cells, without those of frameworks that are not installed."""
    missing = sorted(name for name, version in places.versions.items() if not version)
    for name in missing:
        say(f"{name} is not installed (scripts/setup-frameworks installs it if it can): its cells are left out")
    fits = lambda value, globs: not globs or any(fnmatch.fnmatchcase(value, glob) for glob in globs)
    every = cells.quick_cells() if arguments.quick else cells.all_cells()
    every = [cell for cell in every if fits(cell.stage, arguments.stage) and fits(cell.net, arguments.net)]
    return [cell for cell in every if cell.framework not in missing]


def turns(arguments, places: Places, host: str, rows: Rows) -> list:
    """Every process still to run: cell by cell, contenders in turn."""
    named = arguments.contender
    todo = []
    for cell in chosen(arguments, places):
        for repetition in range(arguments.reps):
            for contender in cells.contenders(cell.framework):
                is_asked = not named or contender.name in named
                if is_asked and contender.is_there():
                    digest = key(cell, contender, places, host)
                    if (digest, repetition) not in rows.there:
                        todo.append((cell, contender, repetition, digest))
    return todo


def run(arguments) -> int:
    began = time.monotonic()
    places = Places(Path(arguments.planlab).resolve(), Path(arguments.frameworks).resolve())
    provenance = read_provenance(places.planlab)
    folder = Path(arguments.out)
    folder.mkdir(parents=True, exist_ok=True)
    rows = Rows(folder / ROWS)
    todo = turns(arguments, places, provenance["host"], rows)
    for contender in (*cells.CONTENDERS, cells.ARENA):
        if not contender.is_there():
            say(f"{contender.library} is not installed: {contender.name} is left out")
    say(f"{len(todo)} rows to measure, {len(rows.there)} there already, in {rows.file}")
    code = 0
    for at, (cell, contender, repetition, digest) in enumerate(todo, 1):
        if arguments.limit and time.monotonic() - began > arguments.limit:
            say(f"{arguments.limit} s are over: {len(todo) - at + 1} rows are left for the next run")
            return 3
        load = round(os.getloadavg()[0] * 1000)
        row = measure(cell, contender, places)
        row |= {"provenance": provenance | {"load_average_milli": load}}
        rows.append({"schema": SCHEMA, "cell": digest, "repetition": repetition} | row)
        code = code if row["status"] == "complete" else 3
        say(f"{at}/{len(todo)}, {time.monotonic() - began:.0f} s: {cell}, {contender.name}: {shown(row)}")
    return code


def interrupted(*_) -> None:
    raise KeyboardInterrupt


def run_script(parser: argparse.ArgumentParser, run: Callable) -> None:
    """Runs a script that writes rows to the folder `--out`, and ends with its exit code."""
    parser.add_argument("--out", required=True, metavar="DIR", help="the folder of the rows")
    parser.add_argument("--limit", type=float, metavar="SECONDS", help="no process begins after this time")
    parser.add_argument("--reps", type=int, default=1, metavar="N", help="processes of each contender on each net")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, interrupted)
    try:
        sys.exit(run(arguments))
    except KeyboardInterrupt:
        sys.exit(130)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--planlab", required=True, metavar="FILE", help="the binary, with libplanlab.so beside it")
    parser.add_argument(
        "--frameworks", default="target/frameworks", metavar="DIR", help="where setup-frameworks put them"
    )
    parser.add_argument("--quick", action="store_true", help="few cells: a try that says little")
    stages = ", ".join(dict.fromkeys(cell.stage for cell in cells.all_cells()))
    parser.add_argument("--stage", action="append", metavar="GLOB", help=f"only these: {stages}")
    parser.add_argument("--net", action="append", metavar="GLOB", help="only these nets")
    parser.add_argument("--contender", action="append", metavar="NAME", help="only these contenders")
    run_script(parser, run)


if __name__ == "__main__":
    main()
