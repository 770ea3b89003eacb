"""Searches files for any of many values, also inside compressed Parquet files."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq


def values_in(values: Iterable[str], contents: Iterable[bytes]) -> set[str]:
    """Return the values of which the UTF-8 bytes are somewhere in the contents."""
    # Latin-1 has a character for every byte, so that texts can be searched in bytes of any kind.
    by_text = {value.encode().decode("latin-1"): value for value in values}
    # Joined, because each search first builds an automaton of all values.
    text = pl.Series([b"\n".join(contents).decode("latin-1")])
    return {by_text[match] for match in text.str.extract_many(list(by_text)).explode().drop_nulls()}


def contents_of(*paths: Path) -> Iterator[bytes]:
    """Yield the bytes of each file, and of each file below a folder; for a Parquet file, also those of its values, decompressed.

    Fails if a path does not exist.
    """
    for path in paths:
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in filter(Path.is_file, files):
            yield file.read_bytes()
            if file.suffix == ".parquet":
                for column in pq.ParquetFile(file).read().columns:
                    yield "\n".join(map(str, column.to_pylist())).encode()
        assert files, path
