"""What an executor does to tell its versions; sent to it as it is, as it may lack the package."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any


def look(batches: Iterable[Any]) -> Iterator[Any]:
    """The host, and the versions of what is there; one row without a name where nothing is."""
    import socket

    import pyarrow as pa

    try:
        from gossamer.spark.shipping.versions import versions_here

        found = versions_here()
    except Exception as error:  # whatever keeps the package from being imported
        found = {"": str(error)}
    columns = [[socket.gethostname()] * len(found), list(found), list(found.values())]
    for batch in batches:
        if len(batch):
            yield pa.RecordBatch.from_arrays(
                [pa.array(column, pa.string()) for column in columns],
                names=["host", "name", "found"],
            )
