"""Parquet files with a fixed schema; the one module that imports pyarrow (extra `hf`)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson

from engine.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

_GROUP: Final = 512
"""Rows written, and read back, at a time."""


def require_pyarrow() -> None:
    """Raise UsageError where pyarrow is not installed."""
    try:
        import pyarrow.parquet  # noqa: F401 - only whether it is there
    except ImportError:
        raise UsageError(
            "parquet needs pyarrow, which is not installed",
            hint="pip install 'eaglegen-tui[hf]', or export --to automodel, which is JSON lines.",
        ) from None


class ColumnsFile:
    """A Parquet file that is being written."""

    def __init__(self, path: Path) -> None:
        import pyarrow.parquet as pq

        self._schema = _schema()
        self._writer = pq.ParquetWriter(path, self._schema, compression="zstd")
        self._rows: list[Any] = []

    def write(self, line: bytes) -> None:
        """Append one record, given as JSON."""
        self._rows.append(orjson.loads(line))
        if len(self._rows) >= _GROUP:
            self._flush()

    def close(self) -> None:
        """End the file."""
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        import pyarrow as pa

        if self._rows:
            self._writer.write_table(pa.Table.from_pylist(self._rows, schema=self._schema))
            self._rows = []


def read_columns(path: Path) -> Iterator[dict[str, Any]]:
    """The records of a Parquet file."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=_GROUP):
            yield from batch.to_pylist()


def _schema() -> pa.Schema:
    import pyarrow as pa

    text = pa.string()
    call = pa.struct(
        {"id": text, "type": text, "function": pa.struct({"name": text, "arguments": text})}
    )
    message = pa.struct(
        {
            "role": text,
            "content": text,
            "name": text,
            "reasoning_content": text,
            "tool_calls": pa.list_(call),
            "tool_call_id": text,
        }
    )
    return pa.schema(
        {
            "id": text,
            "messages": pa.list_(message),
            "tools": text,
            "input_ids": pa.list_(pa.int32()),
            "loss_mask": pa.list_(pa.int8()),
            "dataset": text,
            "index": pa.int64(),
            "turn": pa.int32(),
            "provider": text,
            "finish_reason": text,
            "exactness": text,
            "flags": pa.list_(text),
        }
    )
