"""What is wrong with a SCOT, with a broker's place in it, or with what a neighbour sent."""

from __future__ import annotations

from collections.abc import Iterable

from gossamer.protocol.kernel.errors import ConfigError, LocalProtocolError, RemoteProtocolError


class FactorError(ConfigError):
    """A factor is no simple graph; nothing was built from it."""


class AcyclicError(FactorError):
    """The acyclic factor is no tree (acyclic property, Sec. 3.2); nothing was built from it."""


class ConnectivityError(FactorError):
    """The connectivity factor is not complete (connectivity property); nothing was built."""


class ClusterIndexError(FactorError):
    """Clusters are not numbered from zero on (index property); nothing was built."""


class LabelOrderError(ConfigError):
    """A broker's label has its cluster first (label order property); nothing was built."""


class UnknownBrokerError(ConfigError):
    """A label names no broker of the SCOT: a cluster out of range, or no region of that name."""


class WrongNeighbourError(RemoteProtocolError):
    """A broker that is no direct neighbour came as one, or took the place of another.

    State is untouched.

    Attributes:
        name: the broker that came.
        label: where it says it is.
        reason: what is wrong with that.
    """

    def __init__(self, name: str, label: str, reason: str) -> None:
        self.name = name
        self.label = label
        self.reason = reason
        super().__init__(f"broker {name!r} at {label} {reason}")


class WrongClusterError(RemoteProtocolError):
    """A message carries clusters that it cannot carry on this link; state is untouched.

    Attributes:
        kind: name of the message's class.
        neighbour: who sent it.
        found: the clusters that it carries.
        expected: what would have been accepted, in words.
    """

    def __init__(self, kind: str, neighbour: str, found: Iterable[int], expected: str) -> None:
        self.kind = kind
        self.neighbour = neighbour
        self.found = tuple(found)
        self.expected = expected
        shown = ", ".join(map(str, self.found)) or "none"
        super().__init__(f"{kind} from broker {neighbour!r} names clusters {shown}, {expected}")


class WrongRegionError(RemoteProtocolError):
    """A message is to go to a region that is not beside its receiver's; state is untouched.

    Attributes:
        kind: name of the message's class.
        neighbour: who sent it.
        region: the region.
    """

    def __init__(self, kind: str, neighbour: str, region: str) -> None:
        self.kind = kind
        self.neighbour = neighbour
        self.region = region
        super().__init__(
            f"{kind} from broker {neighbour!r} is to go to region {region!r}, "
            "expected its receiver's or one beside that"
        )


class WrongRelayError(RemoteProtocolError):
    """A relayed subscription names a broker that is not beside its receiver; state is untouched.

    Attributes:
        neighbour: who sent it.
        label: the broker.
    """

    def __init__(self, neighbour: str, label: str) -> None:
        self.neighbour = neighbour
        self.label = label
        super().__init__(
            f"Relay from broker {neighbour!r} names {label}, expected a neighbour of its receiver"
        )


class WrongRoutingError(RemoteProtocolError):
    """A neighbour speaks the other routing: with BIDs on a clustered SCOT, or without on another.

    State is untouched.

    Attributes:
        kind: name of the message's class.
        neighbour: who sent it.
    """

    def __init__(self, kind: str, neighbour: str, routing: str) -> None:
        self.kind = kind
        self.neighbour = neighbour
        super().__init__(
            f"{kind} from broker {neighbour!r} has no place in {routing} routing, "
            "expected the brokers of an overlay to route in the same way"
        )


class ElsewhereError(LocalProtocolError):
    """A client came to a broker that keeps what another of the region has promised it.

    State is untouched.

    Attributes:
        client: name of the client.
        home: where its own broker is.
    """

    def __init__(self, client: str, home: str) -> None:
        self.client = client
        self.home = home
        super().__init__(
            f"client {client!r} is a client of broker {home}, which is there: expected it to go "
            "there, or another name"
        )


class ShrunkOverlayError(LocalProtocolError):
    """A broker is told of an overlay without some of its neighbours, or with too many clusters.

    State is untouched.

    Attributes:
        field: "clusters" or "primary".
    """

    def __init__(self, field: str, value: object, expected: str) -> None:
        self.field = field
        super().__init__(f"OverlayGrown: {field} is {value}, expected {expected}")


class GuestError(LocalProtocolError):
    """A client whose broker is dead asks a broker that stands in for what only its own can do.

    State is untouched.

    Attributes:
        client: name of the client.
        home: where its own broker is.
    """

    def __init__(self, client: str, home: str) -> None:
        self.client = client
        self.home = home
        super().__init__(
            f"client {client!r} is here as long as its broker {home} is not there, and cannot "
            "change what it has asked for until that is back"
        )
