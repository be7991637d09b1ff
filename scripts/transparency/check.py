"""Runs programs with and without `planlab run`, in turns: exit codes and outputs must be equal. Prints the cost of each.

Programs whose memory is easily wasted may take 1.2 times as much memory as without, besides their plans and the library.

Exit code 1: a program differed. 3: a program could not be tried.
"""

import argparse
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
MEMORY = HERE.parent.parent / "interpose/tests/programs/memory.c"
PYTHON = "/usr/bin/python3"
PROCESS_SECONDS = 900
# What the library itself takes, and the most memory as a share of that without it.
LIBRARY_KIB = 4 << 10
MOST_MEMORY = 1.2
# CPython's own tests to run.
CPYTHON = "test_os test_threading test_subprocess test_gc test_signal test_thread test_queue test_mmap test_io"
SQL = """
CREATE TABLE t(a INTEGER, b TEXT, c REAL);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1500000)
INSERT INTO t SELECT i, hex(i * 7919 % 1000003), i / 3.0 FROM n;
CREATE INDEX by_b ON t(b);
SELECT count(*), sum(length(b)), round(sum(c)) FROM t WHERE b > '4';
UPDATE t SET b = b || a WHERE a % 3 = 0;
DELETE FROM t WHERE a % 5 = 0;
SELECT substr(b, 1, 2) AS two, count(*), max(a) FROM t GROUP BY two ORDER BY two LIMIT 40;
VACUUM;
SELECT count(*), max(b), min(c) FROM t;
"""
SHELL = """
for n in $(seq 1500); do /bin/true; done
seq 1 400000 | sort -R --random-source=/bin/sh | sort -n | gzip -c | gunzip -c | cksum
find /usr/include -name '*.h' -exec cat {} + | tr -s ' ' '\\n' | sort | uniq -c | sort -rn | head -n 40
"""

# The words of the programs about memory, and the KiB of their plans at most and in the end; what the library knows of a
# thread takes up to 16.
MEMORY_PROGRAMS = {
    ("sparse_calloc", "1024"): (0, 0),
    ("sparse_malloc", "1024"): (0, 0),
    ("moving_malloc", "1024"): (0, 0),
    ("zeroed", "16"): (17 << 10, 17 << 10),
    ("idle", "16", "4", "1"): (33 << 10, 0),
    ("iterate", "300"): (32 * 200 + 300 * 16, 32 * 200 + 300 * 16),
    ("random", "64"): (64 * 16, 64 * 16),
}

FORKS = """
import os
for round in range(40):
    blocks = []
    for size in range(100_000, 400_000, 5000):
        blocks.append(bytearray(size))
        del blocks[:-9]
        if round > 1 and size % 20_000 == 0:
            if os.fork() == 0:
                os._exit(0)
            os.wait()
"""


# How many threads allocate at once, and so what both allocators keep for them, differs from run to run.
MEMORY_TRIES = 3


class Program(NamedTuple):
    """A program, and how often to run it for its time; `prints`: whether its output is the same each time.

    `plans`: the KiB of its plans at most and in the end, if it says what memory it has.
    """

    name: str
    words: list
    needs: str
    times: int = 1
    prints: bool = True
    stdin: str = ""
    env: dict = {}
    plans: tuple = ()


def programs(folder: Path) -> list:
    """The programs; those that need building are built in a folder."""
    threads, source, object_ = folder / "threads", folder / "long.c", folder / "long.o"
    memory = folder / "memory"
    if shutil.which("cc"):
        subprocess.run(["cc", "-O1", "-fno-builtin", "-pthread", MEMORY, "-o", memory], check=True)
    if shutil.which("c++"):
        build = ["c++", "-O1", "-pthread", HERE / "threads.cpp", "-o", threads]
        subprocess.run(build, check=True)
    functions = (
        f"int f{n}(int *x, int y) {{ int s = {n}; for (int i = 0; i < y; i++) s += x[i] * (i ^ {n}) + (s >> 3);"
        f" switch (s & 7) {{ case 1: return s * 3; case 4: return s - y; default: return s; }} }}\n"
        for n in range(1500)
    )
    source.write_text("".join(functions), encoding="utf-8")
    tests = f"import runpy, sys; sys.argv = ['test', '-q'] + '{CPYTHON}'.split(); runpy.run_module('test', run_name='__main__')"
    return [
        Program("64 threads of C++", [threads], "c++", times=3),
        *(
            Program(f"memory: {' '.join(words)}", [memory, *words], "cc", plans=plans)
            for words, plans in MEMORY_PROGRAMS.items()
        ),
        Program("SQLite", ["sqlite3", ":memory:"], "sqlite3", times=5, stdin=SQL),
        Program("loops of Python", [PYTHON, HERE / "loops.py"], PYTHON, times=5),
        Program("compiler", ["cc", "-O2", "-c", source, "-o", object_], "cc", times=5),
        Program("forks of a shell", ["sh", "-c", SHELL], "sh", times=3),
        Program("stress-ng --malloc", "stress-ng --malloc 4 --malloc-ops 400000 --verify -q".split(), "stress-ng"),
        Program("tests of CPython", [PYTHON, "-c", tests], PYTHON, prints=False),
    ]


def noticing(folder: Path) -> list:
    """Programs that notice what else is in their process."""
    aside = folder / "aside"
    build = ["-O1", "-pthread", HERE.parents[1] / "interpose/tests/programs/aside.c", "-o"]
    subprocess.run(["cc", *build, aside], check=True)
    pages = "dont-fork wipe-on-fork guard read-only lock hole file move".split()
    found = [
        Program("small stack for signals", [aside, "stack", 8192, 3], "cc"),
        Program("count of threads", [aside, "threads"], "cc"),
        *(Program(f"unshare after {at} requests", [aside, "unshares", at], "cc") for at in range(6000, 9001, 500)),
        *(Program(f"seccomp ({how})", [aside, "forbids", how, 12], "cc") for how in ("strict", "prctl", "syscall")),
        *(Program(f"pages of blocks: {how}", [aside, "treats", how], "cc") for how in pages),
    ]
    for sanitizer, name in ("thread", "tsan"), ("address", "asan"):
        built = folder / name
        made = subprocess.run(["cc", f"-fsanitize={sanitizer}", *build, built], capture_output=True, check=False)
        runtime = Path(subprocess.getoutput(f"cc -print-file-name=lib{name}.so"))
        if made.returncode or not runtime.is_file():
            print(f"lib{name}: not tried, the compiler has none")
            continue
        found.append(Program(f"built with lib{name}", [built, "threads"], "cc"))
        # AddressSanitizer wants to be the first library, and here the script's comes first.
        script, order = ["sh", "-c", f"'{built}' threads; true"], {"ASAN_OPTIONS": "verify_asan_link_order=0"}
        found.append(Program(f"a script of one with lib{name}", script, "cc", env=order))
        found.append(Program(f"preloaded lib{name}", [aside, "threads"], "cc", env={"LD_PRELOAD": str(runtime.resolve())}))
    if shutil.which("musl-gcc"):
        musl = folder / "musl"
        source = HERE.parents[1] / "interpose/tests/programs/rough.c"
        subprocess.run(["musl-gcc", "-O1", "-pthread", source, "-o", musl], check=True)
        found.append(Program("C library musl", [musl, "strays"], "musl-gcc"))
        found.append(Program("a script of one with musl", ["sh", "-c", f"'{musl}' generations"], "musl-gcc"))
    else:
        print("C library musl: not tried, there is no musl-gcc")
    python = next(filter(None, map(shutil.which, ("python3.14", "python3.13", "python3.12"))), None)
    if python:
        found.append(Program("warnings of Python at forks", [python, "-W", "error", "-c", FORKS], python))
    else:
        print("warnings of Python at forks: not tried, there is no Python from 3.12 on")
    return found


def exceeded(program: Program, plain: str, under: str) -> str:
    """Whether a program has too much memory; both texts hold its line."""
    lines = [re.search(r"^memory: (\d+) (\d+)$", text, re.MULTILINE) for text in (plain, under)]
    if not all(lines):
        return f"it does not say what memory it has: {under.strip()[-500:]}"
    for name, plans, *kib in zip(["at most", "in the end"], program.plans, *(line.groups() for line in lines)):
        without, under_kib = map(int, kib)
        print(f"{program.name}: {under_kib} KiB {name}, {without} without")
        if under_kib > MOST_MEMORY * without + plans + LIBRARY_KIB:
            return f"{under_kib} KiB {name} under planlab, {without} without, with plans of {plans} KiB"
    return ""


def run(words: list, stdin: str, env: dict, prefix: list) -> tuple:
    """Exit code, output, CPU seconds of the process and its children, and what it says on stderr."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = subprocess.run(
        [str(word) for word in prefix + words],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=PROCESS_SECONDS,
        check=False,
        env={**os.environ, "LC_ALL": "C", "PYTHONHASHSEED": "0", **env},
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return ended.returncode, ended.stdout, seconds, ended.stderr


def check(program: Program, under: list) -> str:
    """The fault of a program, if any; prints the program's line."""
    plain_seconds, under_seconds = [], []
    wrong = ""
    for _ in range(MEMORY_TRIES if program.plans else program.times):
        code, output, seconds, plain_errors = run(program.words, program.stdin, program.env, [])
        plain_seconds.append(seconds)
        code_under, output_under, seconds, errors = run(program.words, program.stdin, program.env, under)
        under_seconds.append(seconds)
        if code != code_under:
            return f"exit code {code_under} under planlab, {code} without: {errors.strip()[-2000:]}"
        if program.prints and output != output_under:
            return f"the output differs:\n{output[:1000]}\nunder planlab:\n{output_under[:1000]}"
        wrong = exceeded(program, plain_errors, errors) if program.plans else ""
        if program.plans and not wrong:
            break
    if wrong:
        return wrong
    ratio = statistics.median(under_seconds) / max(statistics.median(plain_seconds), 0.001)
    times = "once" if len(under_seconds) == 1 else f"median of {len(under_seconds)}"
    print(f"{program.name}: same; {ratio:.3f} times the CPU time ({statistics.median(plain_seconds):.2f} s, {times})")
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--planlab", required=True, metavar="FILE", help="the binary, with libplanlab.so beside it")
    parser.add_argument("--only", action="append", metavar="NAME", help="only programs whose name holds this")
    parser.add_argument("--check", action="store_true", help="run them with --check too, and slower")
    arguments = parser.parse_args()
    code = 0
    with tempfile.TemporaryDirectory() as folder:
        under = [Path(arguments.planlab).resolve(), "run", *(["--check"] if arguments.check else []), "--"]
        for program in programs(Path(folder)) + noticing(Path(folder)):
            if arguments.only and not any(name in program.name for name in arguments.only):
                continue
            if not shutil.which(program.needs):
                print(f"{program.name}: not tried, there is no {program.needs}")
                code = code or 3
                continue
            wrong = check(program, under)
            if wrong:
                print(f"{program.name}: {wrong}")
                code = 1
            sys.stdout.flush()
    return code


if __name__ == "__main__":
    sys.exit(main())
