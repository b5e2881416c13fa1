"""What reaches a broker of a SCOT from neighbours and from its host.

Clients send what they send to any broker (`gossamer.protocol.broker.messages`). Links are first in,
first out, and lose nothing while they are up.
"""

from __future__ import annotations

from attrs import frozen

from gossamer.protocol.broker.identifiers import Id
from gossamer.protocol.broker.messages import (
    Advertise,
    Attach,
    Detach,
    Move,
    Publish,
    Subscribe,
    Unadvertise,
    Unsubscribe,
)
from gossamer.protocol.content.filters import Filter
from gossamer.protocol.content.filters import Publication as Values
from gossamer.protocol.scot.labels import NO_CLUSTERS, BrokerLabel, ClusterBitVector

# Between brokers of a clustered SCOT.


@frozen
class Subscription:
    """A subscription on its way; `host` has the bit of the cluster of its host broker (Sec. 5).

    Departs from the paper: the attribute *state* is not sent, because it follows from `host`; the
    identifier is for taking the subscription back, not for finding loops.
    """

    id: Id
    filter: Filter
    host: ClusterBitVector


@frozen
class Unsubscription:
    """Takes a subscription back, on the way that it came."""

    id: Id


@frozen
class Notification:
    """A publication on its way.

    Attributes:
        id: its host broker and a counter; no broker routes by it.
        values: what was published.
        targets: clusters that the receiver is to see to (CBV in the header, Sec. 6.3); none under
            static routing.
    """

    id: Id
    values: Values
    targets: ClusterBitVector = NO_CLUSTERS


@frozen
class Detour:
    """A notification for another cluster, which the receiver is to send there (beyond the paper).

    Attributes:
        cluster: the cluster.
    """

    notification: Notification
    cluster: int


@frozen
class Bypass:
    """A notification on its way around a link within a cluster (beyond the paper).

    Attributes:
        cluster: the cluster.
        region: where it is to come into the cluster again.
        past: the region beside that from where it comes, and where it does not go back.
    """

    notification: Notification
    cluster: int
    region: str
    past: str


# Between brokers of an unclustered SCOT.


@frozen
class BidSubscription:
    """A subscription that floods; its identifier's broker is the BID (Sec. 2, I1)."""

    id: Id
    filter: Filter


@frozen
class BidUnsubscription:
    """Takes a subscription back; floods as it did."""

    id: Id


@frozen
class BidNotification:
    """A publication with the BIDs of the brokers that it still has to reach (Algorithm 2)."""

    id: Id
    values: Values
    bids: tuple[str, ...]


Clustered = Subscription | Unsubscription | Notification | Detour | Bypass
Unclustered = BidSubscription | BidUnsubscription | BidNotification
BetweenBrokers = Clustered | Unclustered
Carrying = Publish | Notification | Detour | Bypass | BidNotification
"""Messages with a publication, which change nothing at a broker but its counters."""

# From the host; their source is None.


@frozen
class NeighbourUp:
    """The link to a broker works, which says to be at `label`."""

    name: str
    label: BrokerLabel


@frozen
class NeighbourDown:
    """The link to a neighbour does not work; routes stay as they are."""

    name: str


@frozen
class QueueReport:
    """An output queue over the window that just ended.

    Attributes:
        neighbour: whom the queue leads to.
        length: notifications in it now.
        entered, left: notifications that entered and left it in the window.
    """

    neighbour: str
    length: int
    entered: int
    left: int


@frozen
class WindowEnded:
    """Output queues as they are at the end of a window (`ScotSettings.window`).

    A queue that is not named is as it was; one that was never named is empty.
    """

    queues: tuple[QueueReport, ...]


FromClient = Attach | Detach | Move | Advertise | Unadvertise | Subscribe | Unsubscribe | Publish
FromHost = NeighbourUp | NeighbourDown | WindowEnded
Message = FromClient | BetweenBrokers | FromHost
