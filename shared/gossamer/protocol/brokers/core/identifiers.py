"""Names of whatever crosses a link, and of whoever is at its other end."""

from __future__ import annotations

from typing import Final, NamedTuple

_NEIGHBOUR: Final = "neighbour"
_CLIENT: Final = "client"

NAMELESS: Final = "~"
"""Begins the names of clients for which nothing is kept: they get what comes while connected."""
INCARNATION_BITS: Final = 32
"""Numbers of identifiers and sessions that one incarnation of a broker has."""


class Id(NamedTuple):
    """Names a subscription, an advertisement or a publication: its host broker and a counter."""

    broker: str
    number: int


class Hop(NamedTuple):
    """Whoever a message comes from or goes to: a neighbour or a client, by name."""

    kind: str
    name: str

    @property
    def is_client(self) -> bool:
        """Whether this is a client of the broker, not a neighbour."""
        return self.kind == _CLIENT


def neighbour(name: str) -> Hop:
    """The neighbouring broker of that name."""
    return Hop(_NEIGHBOUR, name)


def client(name: str) -> Hop:
    """The client of that name."""
    return Hop(_CLIENT, name)
