"""The page docs/records.md, as the table of records makes it; ``python -m`` prints it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from itertools import chain

from gossamer.protocol.peer.record_table.fields import Field, Kind, List, Sort
from gossamer.protocol.peer.record_table.records import TABLE

_HEAD = """\
<!-- Made from shared/gossamer/protocol/peer/record_table/records.py. To write it anew:
python -m gossamer.protocol.peer.record_table.page > docs/records.md -->

# Records of the peer protocol

For those who read traces, write a host, or add a message: everything that reaches a peer, and
everything that leaves it, is a record.

- A record is a row of 64-bit words with signs: its length in words, its kind, the handles of its
  sender and of its receiver, and the body. The words of a body come in the order that its kind
  lists; a field is one word unless its bounds say otherwise.
- A *handle* is a number below 2^32 that means something to one peer only. A *descriptor* is an age,
  times 2^32, plus a handle, and the words of a profile behind that. There are as many *coordinates*
  as attributes, and one more for a routing key.
- Bounds in `such letters` are settings. From other peers a record is refused where a word is out of
  bounds, and where the setting beside its kind is 0.
- A record that comes back because its receiver cannot be reached has 2^20 added to its kind. Kinds
  from 128 on are the user's own. The messages of samplers are in [Samplers](samplers.md#messages).
"""


def records_of(kinds: Iterable[Kind]) -> str:
    """Kinds and their fields as two tables, for a section of a page."""
    kinds = tuple(kinds)
    return "\n".join([*_kinds(kinds), "", *_fields(kinds), ""])


def records_page() -> str:
    """The whole page."""
    return "\n".join(chain([_HEAD], *map(_section, Sort), ["## Fields", ""], _fields(TABLE), [""]))


def _section(sort: Sort) -> Iterator[str]:
    yield f"## {sort.value}"
    yield ""
    yield from _kinds(kind for kind in TABLE if kind.sort is sort)
    yield ""


def _kinds(kinds: Iterable[Kind]) -> Iterator[str]:
    yield "| Number | Kind | What it says | Body |"
    yield "|---|---|---|---|"
    for kind in kinds:
        only = "" if kind.only_with is None else f" (`{kind.only_with}`)"
        body = ", ".join(field.name for field in kind.fields)
        yield f"| {kind.number} | {kind.name} | {kind.meaning}{only} | {body} |"


def _fields(kinds: Iterable[Kind]) -> Iterator[str]:
    """Every field once; one that differs between kinds with the kinds that it is of."""
    forms: dict[str, dict[tuple[str, str], list[str]]] = {}
    for kind in kinds:
        for field in _all_of(kind.fields):
            alike = forms.setdefault(field.name, {}).setdefault((field.bounds(), field.meaning), [])
            if kind.name not in alike:
                alike.append(kind.name)
    yield "| Field | Bounds | Meaning |"
    yield "|---|---|---|"
    for name, alternatives in sorted(forms.items()):
        for (bounds, meaning), names in alternatives.items():
            of = f" ({', '.join(names)})" if len(alternatives) > 1 else ""
            yield f"| {name}{of} | {bounds} | {meaning} |"


def _all_of(fields: Iterable[Field]) -> Iterator[Field]:
    """Fields, and those of the entries of lists."""
    for field in fields:
        yield field
        if isinstance(field, List):
            yield from _all_of((*field.first, *field.others))


if __name__ == "__main__":
    sys.stdout.write(records_page())
