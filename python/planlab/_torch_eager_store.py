"""Copies of saved values in memory of the host, made by threads of their own."""

from __future__ import annotations

import threading
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

    def close(self) -> None:
        """Ends what runs beside the program; copies that exist stay valid."""


def open_store(rate: float, device: str) -> HostStore:
    """A store for values of a type of device."""
    if device != "cuda":
        return ThreadStore(rate)
    from ._torch_eager_cuda import StreamStore

    return StreamStore(rate)


class BufferPool:
    """Buffers of the host that copies use again; free or not, they take no more bytes than were in use at once."""

    def __init__(self) -> None:
        self._returned: list[Any] = []
        """What any thread has given back."""
        self._free: list[Any] = []
        """Buffers that no copy uses, the oldest first."""
        self._used_bytes = self._most_bytes = 0

    def take_buffer(self, size: int) -> Any:
        """A buffer of a number of bytes; one thread alone may ask."""
        self._sort_returned()
        self._used_bytes += size
        self._most_bytes = max(self._most_bytes, self._used_bytes)
        place = next((place for place, buffer in enumerate(self._free) if buffer.numel() == size), None)
        if place is not None:
            return self._free.pop(place)
        while self._free and self._used_bytes + sum(buffer.numel() for buffer in self._free) > self._most_bytes:
            self._free.pop(0)
        return torch.empty(size, dtype=torch.uint8)

    def give_back(self, buffer: Any) -> None:
        """Takes back the buffer of a copy that nobody needs any longer."""
        # Garbage collection calls this in any thread at any time, so it does no more than append.
        self._returned.append(buffer)

    def _sort_returned(self) -> None:
        while self._returned:
            self._free.append(self._returned.pop())
            self._used_bytes -= self._free[-1].numel()


class ThreadStore:
    """Copies storages to buffers of the host and back, in each direction one after the other.

    `rate` is the most bytes a second in each direction.
    """

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self.copied_bytes = 0
        self.pool = BufferPool()
        self._closed = threading.Event()
        self._outward, self._inward = (ThreadPoolExecutor(1, f"planlab-{way}") for way in ("out", "in"))

    def begin_copy(self, tensor: Any) -> ThreadCopy:
        return ThreadCopy(self, bytes_of(tensor))

    def submit_outward(self, source: list[Any]) -> Future[Any]:
        """Has a thread copy what a list holds; its result is the copy."""
        self.copied_bytes += source[0].numel()
        return self._outward.submit(self._copy_out, source)

    def submit_inward(self, source: Any, target: Any) -> Future[Any]:
        """Has a thread copy bytes to a tensor on the device; a closed store copies at once."""
        self.copied_bytes += source.numel()
        if not self._closed.is_set():
            return self._inward.submit(self._copy, source, target)
        copied: Future[Any] = Future()
        copied.set_result(self._copy(source, target))
        return copied

    def close(self) -> None:
        # Copies under way wait for no link any longer.
        self._closed.set()
        self._outward.shutdown()
        self._inward.shutdown()
        self.pool = BufferPool()

    def _copy_out(self, source: list[Any]) -> Any:
        # Allocated here, because modes that count what the step allocates belong to the thread of the step.
        tensor = source.pop()
        target = self.pool.take_buffer(tensor.numel())
        self._copy(tensor, target)
        return target

    def _copy(self, source: Any, target: Any) -> None:
        began, size = time.perf_counter(), source.numel()
        for start in range(0, size, _CHUNK):
            stop = min(start + _CHUNK, size)
            target[start:stop].copy_(source[start:stop])
            if (pause := began + stop / self.rate - time.perf_counter()) > 0.0:
                self._closed.wait(pause)


class ThreadCopy:
    """A copy that threads make."""

    def __init__(self, store: ThreadStore, source: Any) -> None:
        self._size = int(source.numel())
        self._store = store
        self._pool = store.pool
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
        give_back = self._pool.give_back
        if self._inward is None:
            self._outward.add_done_callback(lambda copied: give_back(copied.result()))
        else:
            buffer = self._outward.result()
            self._inward.add_done_callback(lambda _: give_back(buffer))


def bytes_of(tensor: Any) -> Any:
    """The storage of a tensor as bytes."""
    return torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage())
