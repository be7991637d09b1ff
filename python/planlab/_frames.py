"""Frames of polars and pandas, and plain columns, as a CSV that the reader of traces knows."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from typing import Any


def is_frame(source: object) -> bool:
    """Whether `content` takes it."""
    return isinstance(source, Mapping) or hasattr(source, "write_csv") or hasattr(source, "to_csv")


def content(source: Any) -> bytes:
    """The CSV of a frame of polars or pandas, or of a dict of columns. Rows are numbered if they have no `id`.

    Raises ValueError if columns are of different lengths.
    """
    if hasattr(source, "write_csv"):
        if "id" not in source.columns:
            source = source.with_row_index("id")
        return bytes(source.write_csv(quote_style="non_numeric").encode())
    if hasattr(source, "to_csv"):
        if "id" not in source.columns:
            source = source.assign(id=range(len(source)))
        # Whole numbers with holes are floats to pandas, unless it is asked to look.
        return bytes(source.convert_dtypes().to_csv(index=False, quoting=csv.QUOTE_NONNUMERIC).encode())
    return _columns(source).encode()


def _columns(columns: Mapping[str, Any]) -> str:
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        each = ", ".join(f"`{name}` has {length}" for name, length in lengths.items())
        raise ValueError(f"the columns have different lengths: {each}")
    if "id" not in columns:
        columns = {"id": range(next(iter(lengths.values()), 0)), **columns}
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerow(columns)
    lists = [values.tolist() if hasattr(values, "tolist") else values for values in columns.values()]
    writer.writerows(["" if value is None else value for value in row] for row in zip(*lists))
    return text.getvalue()
