"""The page docs/records.md, as the table of records makes it; ``python -m`` prints it."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from gossamer.protocol.peer.record_table.fields import Field
from gossamer.protocol.peer.record_table.records import TABLE
from gossamer.protocol.peer.record_table.table import Kind, Sort, Table

_HEAD = """\
<!-- Made from shared/gossamer/protocol/peer/record_table/records.py. To write it anew:
python -m gossamer.protocol.peer.record_table.page > docs/records.md -->

# Records of the peer protocol

Everything that reaches a peer, and everything that leaves it, is a record of 64-bit words with
signs: its length in words, its kind, the handles of whom it is to and from, and the body. Handles
are numbers below 2^32 that mean something to one peer only. A descriptor is an age, times 2^32,
plus a handle, and the words of a profile behind that. Bounds in `such letters` are settings; from
other peers a record is refused where a word is out of bounds. A place is counted in words from
the beginning of the body, as far as it is the same under all settings. A record that comes back,
because its addressee cannot be reached, has 2^20 added to its kind. Kinds from 128 on are the
user's own. The messages of samplers are in [Samplers](samplers.md).
"""


def records_of(table: Table) -> str:
    """The messages of a table, for a section of a page."""
    return "\n".join(line for kind in table for line in _kind(kind, "####"))


def records_page() -> str:
    """The whole page."""
    return "\n".join([_HEAD, *(line for sort in Sort for line in _section(sort))])


def _section(sort: Sort) -> Iterator[str]:
    yield f"## {sort.value}\n"
    for kind in TABLE:
        if kind.sort is sort:
            yield from _kind(kind)


def _kind(kind: Kind, heading: str = "###") -> Iterator[str]:
    yield f"{heading} {kind.name} ({kind.number})\n"
    yield f"{kind.meaning}\n"
    if kind.fields:
        yield "| Place | Field | Bounds | Meaning |"
        yield "|---|---|---|---|"
        yield from _rows(kind.fields)
        yield ""


def _rows(fields: tuple[Field, ...]) -> Iterator[str]:
    place: int | None = 0
    for field in fields:
        told = "" if place is None else str(place)
        yield f"| {told} | {field.name} | {field.bounds()} | {field.meaning} |"
        place = None if place is None or field.words is None else place + field.words


if __name__ == "__main__":
    sys.stdout.write(records_page())
