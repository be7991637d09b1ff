"""Records JAX: what XLA dumps when it compiles a program."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
import tempfile
from pathlib import Path

from ._native import NativeTrace
from ._recording import Recorded, Recorder
from ._traces import FileOptions

_FLAG = "--xla_dump_to"

# A module is named by its number and its function: module_0003.jit_step.cpu_after_optimizations.hlo.pb.
_LAST_PASS = re.compile(r"\.(sm_[0-9.]+_)?[a-z]+_after_optimizations\.hlo\.pb$")

# XLA reads its flags once, so that every recording of a process is written to one folder.
_dump: tempfile.TemporaryDirectory[str] | None = None


def recorder() -> Recorder:
    """Returns the recorder of the programs that XLA compiles.

    Raises ImportError without JAX, RuntimeError if XLA has read its flags already or somebody else wants a dump.
    """
    if importlib.util.find_spec("jax") is None:
        raise ImportError('planlab.record("jax") needs JAX, which is not installed')
    if _dump is None:
        flags = os.environ.get("XLA_FLAGS", "")
        if _FLAG in flags:
            raise RuntimeError(f"XLA_FLAGS has {_FLAG} already: planlab.read reads what is dumped there (*.hlo.pb)")
        if _has_run():
            raise RuntimeError(
                "JAX has run already, and reads XLA_FLAGS once: begin the first recording before its first computation"
            )
    return Dump()


def _has_run() -> bool:
    """Whether JAX has a backend, as far as it says so."""
    bridge = sys.modules.get("jax._src.xla_bridge")
    return bool(bridge and getattr(bridge, "backends_are_initialized", lambda: False)())


class Dump:
    """The modules that XLA writes before it runs them."""

    about = "JAX"

    def begin(self) -> None:
        global _dump
        if _dump is None:
            _dump = tempfile.TemporaryDirectory(prefix="planlab-xla-")
        self._flags = os.environ.get("XLA_FLAGS")
        os.environ["XLA_FLAGS"] = f"{self._flags or ''} {_FLAG}={_dump.name} --xla_dump_hlo_as_proto".strip()
        self._folder = Path(_dump.name)
        self._before = set(self._folder.iterdir())

    def end(self, folder: Path) -> list[Recorded]:
        # XLA has read them, and programs that this one starts have nothing to dump.
        if self._flags is None:
            del os.environ["XLA_FLAGS"]
        else:
            os.environ["XLA_FLAGS"] = self._flags
        written = sorted(set(self._folder.glob("*after_optimizations.hlo.pb")) - self._before)
        if not written:
            raise RuntimeError("XLA compiled nothing in the block: its programs were compiled before, or none ran")
        recorded = []
        for source in written:
            name = _LAST_PASS.sub("", source.name)
            path = folder / source.name
            path.write_bytes(source.read_bytes())
            if _has_buffers(path):
                recorded.append(Recorded(name, path))
        if not recorded:
            raise RuntimeError(f"none of the {len(written)} programs that XLA compiled needs temporary buffers")
        return recorded

    def times(self, recorded: Recorded) -> list[int]:
        return []


def _has_buffers(path: Path) -> bool:
    """Whether a module has a heap: small ones work in place."""
    try:
        return len(NativeTrace.read(path, path.name, FileOptions())) > 0
    except ValueError:
        return False
