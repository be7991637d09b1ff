"""Copies of saved values between a CUDA device and pinned memory of the host, on streams of their own."""

from __future__ import annotations

from typing import Any

from ._torch_eager_store import bytes_of
from ._torch_joint import require_torch

torch: Any = require_torch("planlab.torch.fit")


class StreamStore:
    """A store on streams; copies run as fast as the device makes them, and `rate` is what plans count with."""

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self.copied_bytes = 0
        self.outward, self.inward = torch.cuda.Stream(), torch.cuda.Stream()

    def begin_copy(self, tensor: Any) -> StreamCopy:
        return StreamCopy(self, bytes_of(tensor))

    def close(self) -> None:
        """Leaves streams and pinned memory to PyTorch, which owns them."""


class StreamCopy:
    """A copy that streams make; the stream of the step waits for it, and the host does not."""

    def __init__(self, store: StreamStore, source: Any) -> None:
        self._store = store
        self._device = source.device
        self._target: Any = None
        self._arrived: Any = None
        from torch.utils._python_dispatch import _disable_current_modes

        # Memory of the host does not count for the step.
        with _disable_current_modes():
            self._host = torch.empty(source.numel(), dtype=torch.uint8, pin_memory=True)
        self._left = self._copy(store.outward, source, self._host)

    def _copy(self, stream: Any, source: Any, target: Any) -> Any:
        """Copies after all that the step has submitted so far; returns the event of its completion."""
        self._store.copied_bytes += source.numel()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            target.copy_(source, non_blocking=True)
            return stream.record_event()

    def wait(self) -> None:
        torch.cuda.current_stream().wait_event(self._left)

    def begin_fetch(self) -> None:
        if self._target is None:
            self._store.inward.wait_event(self._left)
            self._target = torch.empty(self._host.numel(), dtype=torch.uint8, device=self._device)
            self._arrived = self._copy(self._store.inward, self._host, self._target)

    def fetch(self) -> Any:
        self.begin_fetch()
        torch.cuda.current_stream().wait_event(self._arrived)
        target, self._target = self._target, None
        return target
