"""What is counted by cause, and by kind: the labels of metrics."""

from __future__ import annotations

from typing import Final

from gossamer.protocol.peer.settings.profile import LINK_KINDS

RANDOM_VIEW: Final = "random view"
LINKS: Final = (*LINK_KINDS, RANDOM_VIEW)
# What a connected peer is that no link leads to: mostly one that has a link to us.
NO_LINK: Final = "none"

# Why something that came or was to go was dropped.
DROP_CAUSES: Final = (
    "hop limit",
    "bad frame",
    "too large",
    "flood",  # more frames a second than allowed
    "queue full",  # the addressee takes them too slowly
    "overload",  # new events of a publisher of whom too many wait to be passed on
    "unreachable",
    "forged",  # a descriptor that its owner did not sign
    "forged event",  # an event that is not its publisher's, see FORGERY_CAUSES
    "unproven",  # an event whose publisher is not known yet, while too many of these wait
    "stale",  # a descriptor or certificate that is not valid now, or contradicts another
    "expired",  # an event kept longer than the retention time
)
# What came and brought nothing new, as it does where an overlay repeats itself to lose nothing.
REDUNDANT_CAUSES: Final = (
    "duplicate",  # an event copy seen before
    "delivered before",  # an event that came anew, as what was asked for again does
    "older descriptor",  # a descriptor older than the one known
)
# Why an event is not believed to be its publisher's.
FORGERY_CAUSES: Final = (
    "changed",  # its identifier is not that of its content: the neighbour changed it
    "signature",  # nobody has signed it, or not all of it
    "name",  # another member has signed it
    "revoked",  # its publisher belongs to the cluster no more
    "unknown key",  # nobody knows whose key it was signed by
    "two contents",  # an identifier that is another event's
)
# Tables of the protocol that may be too small for what comes.
TABLES: Final = (
    "event memory",  # copies forgotten that may still come again or be asked for
    "held events",  # copies that made room before the retention time was over
    "giving back",  # copies that a predecessor was not given at once
    "routing table",  # subscriptions that found no room
    "boxes",  # subscriptions merged with a loss of precision
    "failures",  # failed peers forgotten whom others may still name
)
REFUSAL_CAUSES: Final = (
    "certificate",
    "revoked",
    "cluster",
    "version",
    "too many",
    "bad hello",
    "timeout",
)
# What members of the cluster are, and what happens to them; see `monitoring.members`.
MEMBER_STATES: Final = ("alive", "suspect", "gone", "revoked")
MEMBER_CHANGES: Final = ("joined", "left", "failed", "returned", "revoked")
# What may be wrong with a node, the worst first; what is the case is told as sentences, too.
TROUBLES: Final = (
    "revoked",
    "certificate",  # it expires soon, or is not valid yet
    "alone",  # others are known, and none is reached
    "clock",  # it differs from those of all neighbours
    "unreachable",  # pairs of members that do not reach each other
    "identity",  # another process runs under this node's key
    "disk",  # something could not be written
    "address",  # one that is advertised, the machine does not have
    "flood",  # somebody publishes more than is kept for all
    "overload",  # more comes than can be dealt with
)
CLOSE_CAUSES: Final = ("goodbye", "broken", "silent", "stalled", "bad frame", "flood", "unused")

# Seconds; from a hop on loopback to what nobody wants to wait for.
