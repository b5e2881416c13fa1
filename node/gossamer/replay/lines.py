"""What crew and workers tell each other: JSON, a line each, over the workers' pipes.

A worker's first line is its `Setup`; after that come commands, objects with a `do`:

    start    node, contacts      run the peer, which knows these addresses
    stop     node                let it say goodbye
    publish  node, event, values
    look     number              tell what the peers that run look like

and it answers by reports, objects with a `report`, a `node` and mostly the time (`at`):

    started, stopped             from when on, and until when, a peer takes part
    failed                       it could not start: `why`
    published, unpublished       an event, by number, is being published as `id`; or `why` not
    taken                        an event copy came in: `id`, `interested`, `dead_end`
    delivered                    an event reached the application: `id`, `hops`, `tree_hops`
    tally                        counts since the last tally, by `Tally`
    seen                         links, place and table of a peer, answering look `number`

Times are seconds of the system's monotonic clock, which all processes of a machine share.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

Line = dict[str, Any]


@attrs.frozen(kw_only=True)
class Setup:
    """What a worker has to know first.

    Attributes:
        folder: holds a membership for every peer, named by its node.
        settings: all fields of the protocol's settings.
        round_s: seconds of a gossip round.
        attributes: names of what events are made of.
        subscriptions: expressions, by node.
    """

    folder: str
    settings: Mapping[str, Any]
    round_s: float
    attributes: list[str]
    subscriptions: Mapping[str, list[str]]


def encode(line: Mapping[str, Any]) -> bytes:
    """A line with its end."""
    return json.dumps(line, separators=(",", ":")).encode() + b"\n"


class Lines:
    """Cuts a stream of bytes into lines."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[Line]:
        """The lines that end in ``data``."""
        *whole, self._rest = (self._rest + data).split(b"\n")
        for line in whole:
            yield json.loads(line)
