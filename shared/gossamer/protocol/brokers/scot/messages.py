"""What reaches a broker of a SCOT from neighbours and from its host.

Clients send what they send to any broker (`brokers.core.messages`). Links are first in,
first out, and lose nothing while they are up.
"""

from __future__ import annotations

from attrs import frozen

from gossamer.protocol.brokers.core import messages as core
from gossamer.protocol.brokers.core.messages import Id
from gossamer.protocol.brokers.scot.topology import NO_CLUSTERS, BrokerLabel, ClusterBitVector
from gossamer.protocol.content.filters import Filter
from gossamer.protocol.content.filters import Publication as Values

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


@frozen
class Synchronise:
    """Every subscription that stands on a link that came up; all others that came over it do not.

    Beyond the paper.

    Attributes:
        anew: the sender remembers nothing of this link, so that only subscriptions of its own
            clients may be taken back because of it.
        complete: all neighbours of the sender had told it what stands.
    """

    subscriptions: tuple[Subscription, ...]
    anew: bool
    complete: bool = False


# Between brokers that take over each other's clients, beyond the paper (`take_over`).


@frozen
class ProxyNotification:
    """A notification for the clients of a dead broker of this region, or of one that was.

    Attributes:
        cluster: of that broker, which is the receiver if it is back.
    """

    notification: Notification
    cluster: int


@frozen
class Relay:
    """What is on its way around a link that does not work: a subscription, its end, or what another
    backup is to keep.

    Attributes:
        origin: from where it is to be taken to come.
        path: where it still goes from its receiver, the last being who is to take it.
    """

    message: Subscription | Unsubscription | ProxyNotification
    origin: BrokerLabel
    path: tuple[BrokerLabel, ...]


@frozen
class Promised:
    """A subscription of a client of the sender, which the receiver is to remember."""

    client: str
    label: str
    id: Id
    filter: Filter


@frozen
class TakenBack:
    """A client of the sender has taken a subscription back."""

    client: str
    label: str


@frozen
class UnacknowledgedDelivery:
    """A notification that a client of the sender has not taken yet."""

    client: str
    notification: Notification
    labels: tuple[str, ...]


@frozen
class Taken:
    """A client of the sender has taken notifications."""

    client: str
    ids: tuple[Id, ...]


@frozen
class ClientLeft:
    """A client of the sender has left."""

    client: str


@frozen
class Replica:
    """All that the sender has promised; whatever the receiver remembered of it before is void."""

    promised: tuple[Promised, ...]
    unacknowledged: tuple[UnacknowledgedDelivery, ...]


@frozen
class NoBackup:
    """The receiver is no backup of the sender; what it remembered of it is void."""


@frozen
class HandBack:
    """What became of a client of the receiver while that was away.

    Attributes:
        taken: what it has taken at the sender, and the receiver may still keep for it.
        promised: its subscriptions, in case the receiver has lost its memory.
        unacknowledged: what it has not taken, and the receiver is to give it.
    """

    client: str
    taken: tuple[Id, ...]
    promised: tuple[Promised, ...]
    unacknowledged: tuple[UnacknowledgedDelivery, ...]


ForBackup = Promised | TakenBack | UnacknowledgedDelivery | Taken | ClientLeft
Routed = Subscription | Unsubscription | Notification | Detour | Bypass
Tracked = Routed | Relay | ProxyNotification | ForBackup | HandBack


@frozen
class Numbered:
    """A message that its sender wants to know safe, and everything that follows from it.

    Attributes:
        number: of the sender's.
    """

    number: int
    message: Tracked


@frozen
class Acknowledge:
    """What followed from a numbered message of the receiver's has come to an end.

    Attributes:
        safe: whether it reached everybody that it was for.
    """

    number: int
    safe: bool


@frozen
class InputQueue:
    """The sender's input queue over the window that just ended; beyond the paper.

    Attributes:
        length: messages in it now.
        entered, left: messages that entered and left it in the window.
    """

    length: int
    entered: int
    left: int


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


Labels = tuple[str, ...]
Handed = Notification | BidNotification
"""What clients are handed."""
Clustered = Routed | Synchronise | InputQueue
TakingOver = (
    Numbered | Acknowledge | Relay | ProxyNotification | ForBackup | Replica | NoBackup | HandBack
)
Unclustered = BidSubscription | BidUnsubscription | BidNotification
BetweenBrokers = Clustered | TakingOver | Unclustered
Carrying = core.Publish | Notification | Detour | Bypass | BidNotification
"""Messages with a publication, which change nothing at a broker but its counters."""

# From the host; their source is None.


@frozen
class NeighbourUp:
    """The link to a broker works, which says to be at `label`.

    Attributes:
        synchronise: whether either may have missed what the other told, so that all that stands is
            told in one message.
    """

    name: str
    label: BrokerLabel
    synchronise: bool = False


@frozen
class NeighbourAnnounced(NeighbourUp):
    """The same, of a neighbour that has said how it is set.

    Attributes:
        takes_over: whether it takes over clients; of who has not said so, that is as it is here.
    """

    takes_over: bool = False


@frozen
class OverlayGrown:
    """The overlay has another cluster, or a region beside this broker's; nothing has gone.

    Every broker with a new neighbour is told before any of those has clients, while none is dead.

    Attributes:
        clusters: how many there are now.
        primary: the regions beside this broker's now.
    """

    clusters: int
    primary: tuple[str, ...]


@frozen
class WaitedEnough:
    """Neighbours that have not come since the broker was started are taken for dead."""


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
    """Queues as they are at the end of a window (`ScotSettings.window`).

    Attributes:
        queues: output queues. One that is not named is as it was; one that was never named is
            empty.
        waiting: the broker's own input queue, if its neighbours are to know of it.
    """

    queues: tuple[QueueReport, ...]
    waiting: InputQueue | None = None


OfLinks = NeighbourUp | NeighbourAnnounced | core.NeighbourDown | core.NeighbourGone
FromHost = OfLinks | OverlayGrown | core.Restarted | WaitedEnough | WindowEnded
Message = core.FromClient | BetweenBrokers | FromHost
