"""Copies of saved values in memory of the host, made by threads of their own."""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol

from ._torch_joint import require_torch

torch: Any = require_torch("planlab.torch.fit")
_CHUNK = 1 << 18


class HostCopy(Protocol):
    """The copy of a storage on the host."""

    def wait(self) -> None:
        """Returns when the storage of the device may be freed."""

    def begin_fetch(self) -> None:
        """Begins to copy the bytes back to the device, into a new storage."""

    def fetch(self) -> Any:
        """Returns a tensor on the device with the bytes, and forgets it."""


class HostStore(Protocol):
    """Where saved values go."""

    rate: float
    """The bytes a second of the link, in each direction."""
    copied_bytes: int
    """What was copied so far, in both directions."""

    def begin_copy(self, tensor: Any) -> HostCopy:
        """Begins to copy the storage of a tensor."""
        ...


def open_store(rate: float, device: str) -> HostStore:
    """A store for values of a type of device."""
    if device != "cuda":
        return ThreadStore(rate)
    from ._torch_eager_cuda import StreamStore

    return StreamStore(rate)


class ThreadStore:
    """Copies storages to buffers of the host and back, in each direction one after the other.

    `rate` is the most bytes a second in each direction.
    """

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self.copied_bytes = 0
        self._buffers: dict[int, list[Any]] = {}
        """Buffers of the host that no copy uses, by size."""
        self._outward, self._inward = (ThreadPoolExecutor(1, f"planlab-{way}") for way in ("out", "in"))

    def begin_copy(self, tensor: Any) -> ThreadCopy:
        return ThreadCopy(self, bytes_of(tensor))

    def submit_outward(self, source: list[Any]) -> Future[Any]:
        """Has a thread copy what a list holds; its result is the copy."""
        self.copied_bytes += source[0].numel()
        return self._outward.submit(self._copy_out, source)

    def submit_inward(self, source: Any, target: Any) -> Future[Any]:
        """Has a thread copy bytes to a tensor on the device."""
        self.copied_bytes += source.numel()
        return self._inward.submit(self._copy, source, target)

    def _copy_out(self, source: list[Any]) -> Any:
        # Allocated here, because modes that count what the step allocates belong to the thread of the step.
        tensor = source.pop()
        free = self._buffers.get(tensor.numel())
        target = free.pop() if free else torch.empty(tensor.shape, dtype=torch.uint8)
        self._copy(tensor, target)
        return target

    def recycle(self, buffer: Any) -> None:
        """Takes back the buffer of a copy that nobody needs any longer."""
        self._buffers.setdefault(buffer.numel(), []).append(buffer)

    def _copy(self, source: Any, target: Any) -> None:
        began, size = time.perf_counter(), source.numel()
        for start in range(0, size, _CHUNK):
            stop = min(start + _CHUNK, size)
            target[start:stop].copy_(source[start:stop])
            if (pause := began + stop / self.rate - time.perf_counter()) > 0.0:
                time.sleep(pause)


class ThreadCopy:
    """A copy that threads make."""

    def __init__(self, store: ThreadStore, source: Any) -> None:
        self._size = int(source.numel())
        self._store = store
        self._device = source.device
        # The thread takes the tensor out of the list, so that it holds none when the copy is complete.
        self._outward = store.submit_outward([source])
        self._target: Any = None
        self._inward: Future[Any] | None = None

    def wait(self) -> None:
        self._outward.result()

    def begin_fetch(self) -> None:
        if self._inward is None:
            host = self._outward.result()
            self._target = torch.empty(self._size, dtype=torch.uint8, device=self._device)
            self._inward = self._store.submit_inward(host, self._target)

    def fetch(self) -> Any:
        self.begin_fetch()
        assert self._inward is not None
        self._inward.result()
        target, self._target, self._inward = self._target, None, None
        return target

    def __del__(self) -> None:
        if self._inward is None and self._outward.done():
            self._store.recycle(self._outward.result())


def bytes_of(tensor: Any) -> Any:
    """The storage of a tensor as bytes."""
    return torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage())
