"""The messages of HyParView."""

from __future__ import annotations

from typing import Any, Final

from gossamer.protocol.peer.record_table.fields import Descriptor, Limit, List, Word
from gossamer.protocol.peer.record_table.table import Sort, Table
from gossamer.protocol.peer.settings.descriptor_words import MAX_AGE

# Steps of the walk that a newcomer's descriptor takes until it is a neighbour, and how many are
# left where it becomes a passive member (Sec. 5.1). That shuffles walk as far is a guess.
ARWL, PRWL = 6, 3
LOW, HIGH = 0, 1
REFUSED, ACCEPTED = 0, 1

_sender = Descriptor("the sender's descriptor", 0, of_sender=True)
_member = Descriptor("a view's descriptor", MAX_AGE)
_newcomer = Descriptor("the newcomer's descriptor", 0)
_origin = Descriptor("the first sender's descriptor", 0)
_shuffled = Limit("shuffle_length")

RECORDS: Final = Table()


def _message(number: int, name: str, meaning: str, *fields: Any) -> int:
    return RECORDS.declare(Sort.MESSAGE, number, name, meaning, fields)


JOIN_THROUGH: Final = _message(34, "JOIN_THROUGH", "A newcomer to its contact.", _sender)
FORWARD_JOIN: Final = _message(
    35, "FORWARD_JOIN", "A newcomer on a walk.", Word("steps", 0, ARWL, "that are left"), _newcomer
)
NEIGHBOUR: Final = _message(
    36,
    "NEIGHBOUR",
    "Asks to be a neighbour.",
    Word("priority", LOW, HIGH, "1 if it is not to be refused"),
    _sender,
)
NEIGHBOUR_REPLY: Final = _message(
    37, "NEIGHBOUR_REPLY", "Whether it is one.", Word("accepted", REFUSED, ACCEPTED), _sender
)
DISCONNECT: Final = _message(38, "DISCONNECT", "The sender is a neighbour no longer.")
SHUFFLE: Final = _message(
    39,
    "SHUFFLE",
    "Members of both views, on a walk.",
    Word("steps", 0, ARWL, "that are left"),
    List("descriptors", (_member,), _shuffled, first=(_origin,)),
)
SHUFFLE_REPLY: Final = _message(
    40, "SHUFFLE_REPLY", "Passive members for them.", List("descriptors", (_member,), _shuffled)
)
KEEP_ALIVE: Final = _message(41, "KEEP_ALIVE", "The sender is a neighbour.", _sender)
