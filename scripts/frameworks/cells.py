"""What `just bench-frameworks` measures: the cells in order, and the contenders that take turns on each."""

import platform
from pathlib import Path
from typing import NamedTuple

LIBRARIES = Path(f"/usr/lib/{platform.machine()}-linux-gnu")
KEEP = 1 << 40
GLIBC_KEEPS = f"glibc.malloc.mmap_threshold={KEEP}:glibc.malloc.trim_threshold={KEEP}"
# Approximate seconds of CPU time for a propagation with batch 16 on one core of a machine like ours. They decide the
# number of timed propagations, so that it is the same for all contenders of a cell.
SECONDS_OF_16 = {
    "mobilenet-v2": 0.4,
    "squeezenet1-1": 0.3,
    "resnet18": 0.6,
    "googlenet": 1.0,
    "alexnet": 0.2,
    "seq2seq": 0.15,
    "densenet121": 1.7,
    "bert": 1.5,
    "resnet50": 1.9,
    "inception-v3": 2.6,
}
# A net that takes longer is heavy: except for the first figures it comes last.
HEAVY_SECONDS = 1.2
# seq2seq goes through this many sentence lengths; one turn through all of them is one sample.
LENGTHS = 8
WARM_UP = 6
# The approximate total time of the timed propagations, and the limits of their number.
TIMED_SECONDS, TIMED_LEAST, TIMED_MOST = 2.5, 3, 16


class Cell(NamedTuple):
    """A net in one configuration on one framework."""

    stage: str
    framework: str  # torch, torch2 or onnxruntime
    net: str
    mode: str
    batch: int
    threads: int

    def warm_up(self) -> int:
        """Propagations before the timed ones: every length three times, or as many as a plan needs to take effect."""
        return 3 * LENGTHS if self.net == "seq2seq" else WARM_UP

    def timed(self) -> int:
        # A backward pass takes about twice as long as a forward pass.
        seconds = SECONDS_OF_16[self.net] * self.batch / 16 * (3 if self.mode == "train" else 1)
        if self.net == "seq2seq":
            return TIMED_LEAST * LENGTHS
        return max(TIMED_LEAST, min(TIMED_MOST, round(TIMED_SECONDS / seconds)))

    def __str__(self) -> str:
        return f"{self.framework} {self.net} {self.mode} b{self.batch} {self.threads} threads"


class Contender(NamedTuple):
    """The allocator that serves the requests, with its settings."""

    name: str
    library: str = ""  # the library to preload
    settings: dict = {}  # environment variables
    arena: bool = False  # the framework's own arena is on

    def is_there(self) -> bool:
        return not self.library or (LIBRARIES / self.library).exists()

    def environment(self) -> dict:
        preload = {"LD_PRELOAD": str(LIBRARIES / self.library)} if self.library else {}
        return preload | self.settings

    def told(self) -> str:
        """The settings in one line."""
        return " ".join(f"{name}={value}" for name, value in self.settings.items())


JEMALLOC = "libjemalloc.so.2"
PLANLAB = "planlab"
CONTENDERS = (
    Contender("glibc"),
    Contender("glibc/keep", settings={"GLIBC_TUNABLES": GLIBC_KEEPS}),
    Contender("glibc/keep-huge", settings={"GLIBC_TUNABLES": f"{GLIBC_KEEPS}:glibc.malloc.hugetlb=1"}),
    Contender("jemalloc", JEMALLOC),
    Contender("jemalloc/keep", JEMALLOC, {"MALLOC_CONF": "dirty_decay_ms:-1,muzzy_decay_ms:-1"}),
    Contender("mimalloc", "libmimalloc.so.2.0"),
    Contender("tcmalloc", "libtcmalloc_minimal.so.4"),
    Contender(PLANLAB),
)
# The default of onnxruntime: an arena of its own and memory patterns.
ARENA = Contender("onnxruntime-arena", arena=True)


def contenders(framework: str) -> tuple:
    return (*CONTENDERS, ARENA) if framework == "onnxruntime" else CONTENDERS


def stage(name: str, framework: str, mode: str, batch: int, threads: int = 1) -> list:
    return [Cell(name, framework, net, mode, batch, threads) for net in SECONDS_OF_16]


def all_cells() -> list:
    """Every cell, in order: the first figures of all nets, then all stages of the light nets, then the rest."""
    every = [
        *stage("infer-b16", "torch", "infer", 16),
        *stage("infer-b32", "torch", "infer", 32),
        *stage("train-b8", "torch", "train", 8),
        *stage("infer-b1", "torch", "infer", 1),
        *stage("onnxruntime", "onnxruntime", "infer", 16),
        *stage("threads", "torch", "infer", 16, 2),
        *stage("threads", "torch", "train", 8, 2),
        *stage("torch2", "torch2", "infer", 16),
    ]
    is_later = lambda cell: SECONDS_OF_16[cell.net] > HEAVY_SECONDS and cell.stage not in ("infer-b16", "infer-b1")
    return sorted(every, key=is_later)


def quick_cells() -> list:
    """Cells for a minute or two, to check that everything works and get rough figures."""
    return [
        Cell("infer-b16", "torch", "squeezenet1-1", "infer", 16, 1),
        Cell("train-b8", "torch", "squeezenet1-1", "train", 8, 1),
        Cell("onnxruntime", "onnxruntime", "squeezenet1-1", "infer", 16, 1),
    ]
