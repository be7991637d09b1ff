"""Times of the operations of a joint graph, measured one by one."""

from __future__ import annotations

import operator
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ._torch_joint import JointGraph, is_placeholder, require_torch, tensors_of

_WHAT = "measuring a joint graph"


def measure_run(graph_module: Any, arguments: Sequence[Any], repetitions: int) -> dict[str, float]:
    """The seconds of each node while the graph runs from its inputs to its outputs: the median of the repetitions.

    A first run, which is not counted, warms caches up. Random numbers of the caller stay as they are.
    """
    torch = require_torch(_WHAT)
    times: dict[str, list[float]] = {}

    class Timer(torch.fx.Interpreter):  # type: ignore[misc]
        def run_node(self, node: Any) -> Any:
            wait_for_devices(torch)
            began = time.perf_counter()
            result = super().run_node(node)
            wait_for_devices(torch)
            times.setdefault(node.name, []).append(time.perf_counter() - began)
            return result

    with torch.random.fork_rng(), torch.no_grad():
        for _ in range(repetitions + 1):
            Timer(graph_module).run(*arguments)
    return {name: statistics.median(measured[1:]) for name, measured in times.items()}


def measure_steps(joint: JointGraph, repetitions: int = 3) -> None:
    """Measures the seconds of each step of a joint graph, which is run alone, on stand-ins for its inputs.

    Takes the memory of one operation at a time, and measures equal operations once. An operation that does not run on
    stand-ins takes the time of a copy of its results. Sizes of results are corrected: the compiler's guess of a type may
    differ from what a kernel returns.
    """
    torch = require_torch(_WHAT)
    known: dict[str, Measurement] = {}
    with real_tensors(torch):
        for step in joint.steps:
            node = step.node
            if is_placeholder(node) or node.target is operator.getitem or not step.fresh:
                continue
            key = repr(_described((node.target, node.args, node.kwargs)))
            if key not in known:
                known[key] = _measure_alone(torch, joint, step.number, repetitions)
            step.seconds = known[key].seconds
            for storage, size in zip(step.fresh, known[key].sizes, strict=False):
                joint.bytes[storage] = size


@dataclass(frozen=True)
class Measurement:
    """What a step takes."""

    seconds: float
    sizes: list[int]
    """The bytes of the storages that it allocates, in the order of `Step.fresh`; empty if it did not run."""


@contextmanager
def real_tensors(torch: Any) -> Iterator[None]:
    """Operations compute, although the compiler that calls has them only guess shapes."""
    from torch.utils._python_dispatch import _disable_current_modes

    with _disable_current_modes(), torch.no_grad(), torch.random.fork_rng():
        yield


def wait_for_devices(torch: Any) -> None:
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.synchronize()


def _measure_alone(torch: Any, joint: JointGraph, number: int, repetitions: int) -> Measurement:
    node = joint.steps[number].node
    try:
        args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), lambda read: _stand_in(torch, read))
        sizes = _fresh_sizes((args, kwargs), node.target(*args, **kwargs))
        fits = len(sizes) == len(joint.steps[number].fresh)
        return Measurement(
            _median_seconds(torch, lambda: node.target(*args, **kwargs), repetitions), sizes if fits else []
        )
    except Exception:  # Operations of extensions may raise anything.
        size = sum(joint.bytes[storage] for storage in joint.steps[number].fresh)
        source = torch.zeros(max(size, 1), dtype=torch.uint8)
        return Measurement(_median_seconds(torch, source.clone, repetitions), [])


def _fresh_sizes(arguments: Any, result: Any) -> list[int]:
    """The bytes of the storages of a result that no argument has, each once."""
    storages = [tensor.untyped_storage() for tensor in tensors_of(result)]
    known = {tensor.untyped_storage()._cdata for tensor in tensors_of(list(arguments[0]) + list(arguments[1].values()))}
    sizes = {storage._cdata: int(storage.nbytes()) for storage in storages if storage._cdata not in known}
    return list(sizes.values())


def _median_seconds(torch: Any, call: Callable[[], Any], repetitions: int) -> float:
    measured = []
    for _ in range(repetitions + 1):
        wait_for_devices(torch)
        began = time.perf_counter()
        call()
        wait_for_devices(torch)
        measured.append(time.perf_counter() - began)
    return statistics.median(measured[1:])


def _stand_in(torch: Any, node: Any) -> Any:
    """A value like that of a node: zeros as numbers of rows and classes, so that every index is inside its table."""
    value = node.meta.get("val")
    if isinstance(value, (tuple, list)):
        return type(value)(_tensor_like(torch, element) for element in value)
    return _tensor_like(torch, value)


def _tensor_like(torch: Any, value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    shape, strides = [int(length) for length in value.shape], [int(stride) for stride in value.stride()]
    extent = 1 + sum((length - 1) * stride for length, stride in zip(shape, strides, strict=True)) if all(shape) else 0
    fill = 0.5 if value.dtype.is_floating_point else 0
    return torch.full((extent,), fill, dtype=value.dtype, device=value.device).as_strided(shape, strides)


def _described(value: Any) -> Any:
    """What an argument is for the time of an operation: the form of a tensor, any other value itself."""
    if isinstance(value, (tuple, list)):
        return tuple(_described(element) for element in value)
    if isinstance(value, dict):
        return tuple((key, _described(element)) for key, element in value.items())
    if hasattr(value, "meta"):
        return _described(value.meta.get("val"))
    if hasattr(value, "untyped_storage"):
        return (tuple(value.shape), tuple(value.stride()), str(value.dtype), str(value.device))
    return str(value)
