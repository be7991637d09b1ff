"""Turns what callers have (lists, NumPy arrays, columns of frames) into arrays of one type, or says why it cannot.

NumPy is imported by what needs it: `import planlab` does not wait for it.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray


def signed(name: str, values: ArrayLike) -> NDArray[np.int64]:
    """A contiguous array of 63 bits and a sign, with one dimension.

    Raises ValueError if the values are no whole numbers, are out of range, or have another number of dimensions.
    """
    import numpy as np

    return _integers(name, values, np.dtype(np.int64))


def unsigned(name: str, values: ArrayLike) -> NDArray[np.uint64]:
    """The same of 64 bits without a sign."""
    import numpy as np

    return _integers(name, values, np.dtype(np.uint64))


def _integers(name: str, values: ArrayLike, kind: np.dtype[Any]) -> NDArray[Any]:
    import numpy as np

    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"`{name}` has {array.ndim} dimensions; it has to have one")
    if array.size == 0:
        return np.empty(0, dtype=kind)
    if array.dtype.kind not in "iu":
        # As objects, since NumPy makes floats of integers if some do not fit 63 bits.
        array = _whole(name, np.asarray(values, dtype=object))
    limits = np.iinfo(kind)
    low, high = int(array.min()), int(array.max())
    if low < limits.min or high > limits.max:
        wrong = low if low < limits.min else high
        at = int(np.flatnonzero(array == wrong)[0])
        raise ValueError(f"`{name}` is {wrong} at buffer {at}; it has to be {limits.min} to {limits.max}")
    return np.ascontiguousarray(array, dtype=kind)


def _whole(name: str, array: NDArray[Any]) -> NDArray[Any]:
    """Python's own integers, which NumPy keeps as objects if they do not fit 64 bits."""
    import numpy as np

    for at, value in enumerate(array):
        # A truth value is an integer to Python, and a mistake here.
        if isinstance(value, (bool, np.bool_)) or not hasattr(value, "__index__"):
            raise ValueError(f"`{name}` is {value!r} at buffer {at}; it has to be a whole number")
    return np.array([operator.index(value) for value in array], dtype=object)


def alignments(values: ArrayLike, count: int) -> NDArray[np.uint64]:
    """One alignment for each buffer, from as many or from one for all."""
    import numpy as np

    array = np.asarray(values)
    if array.ndim == 0:
        return np.repeat(unsigned("alignment", array[np.newaxis]), count)
    return unsigned("alignment", values)


def pins(values: ArrayLike | Iterable[int | None]) -> NDArray[np.int64]:
    """One offset for each buffer, -1 without a pin; None stands for -1."""
    import numpy as np

    if isinstance(values, np.ndarray) or not isinstance(values, Iterable):
        return signed("pins", np.asarray(values))
    return signed("pins", np.array([-1 if value is None else value for value in values]))


def number(name: str, value: int | None, least: int = 0) -> int | None:
    """An integer of at most 64 bits, or None.

    Raises ValueError if it is out of range, TypeError if it is no whole number.
    """
    if value is None:
        return None
    whole = operator.index(value)
    if not least <= whole < 2**64:
        raise ValueError(f"`{name}` is {whole}; it has to be {least} to {2**64 - 1}")
    return whole
