"""The base class of publish/subscribe overlays of one's own, and what their rules call.

An overlay is a `Protocol` of rules. It is given who wants what as columns and every event as a
record, and says by `deliver` whom an event has reached. A message with a field ``event``, a whole
number, carries the event of that number: each one that a node takes from another is a copy.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gossamer.protocol.kernel.records import BODY
from gossamer.protocol.kernel.rules import rule
from gossamer.sim.custom.language.declarations import Declarations
from gossamer.sim.custom.language.members import column
from gossamer.sim.custom.language.messages import KINDS, MessageClass, message
from gossamer.sim.custom.language.record_rules import Items
from gossamer.sim.custom.loading import ProtocolClass
from gossamer.sim.custom.protocol import Protocol, parts_of
from gossamer.sim.engine.latency import Int64s
from gossamer.sim.errors import ScenarioError

MOST_ATTRIBUTES: Final = 16

# What a node is given: an event to publish; that what it wants has changed.
Publish = message("Publish", event=int, values=Items(MOST_ATTRIBUTES))
Resubscribe = message("Resubscribe")
Delivered = message("Delivered", event=int, hops=int, tree_hops=int)

_EVENT: Final = "event"
# By a function ``table_entries(self, run)`` a class says how many entries tables of nodes have.
TABLE_ENTRIES: Final = "table_entries"


class PubSub(Protocol):
    """Base class of overlays that scenarios of peers compare with the shipped ones.

    A class that derives from it handles ``on_publish(self, me, net, sender, event, values)``, and
    where interests drift ``on_resubscribe(self, me, net, sender)``. A node's subscriptions are
    boxes: of box k and attribute a the least value is ``low[me, k * attributes + a]`` and the
    greatest ``high[...]``, whole numbers from 0 to 2^62 - 1 as are ``values`` of events; boxes that
    it has not are empty, from 0 to -1. Both columns are there before any node comes up, rules
    only read them.

    Attributes:
        attributes, subscriptions: of an event and of a node at most, by the scenario.
        low, high: int64[n, subscriptions * attributes].
    """

    attributes: int = 1
    subscriptions: int = 1

    low = column(int, lambda own: own.subscriptions * own.attributes)
    high = column(int, lambda own: own.subscriptions * own.attributes, initial=-1)


@rule
def in_some_box(low: Any, high: Any, values: Any) -> Any:
    """Whether one of the boxes between ``low`` and ``high`` has the point ``values``."""
    size = len(values)
    for first in range(0, len(low), size):
        inside = True
        for a in range(size):
            inside = inside and low[first + a] <= values[a] <= high[first + a]
        if inside:
            return True
    return False


@rule
def wants(self: Any, me: int, values: Any) -> Any:
    """Whether node ``me`` of a `PubSub` has a subscription that matches the values of an event."""
    return in_some_box(self.low[me], self.high[me], values)


@rule
def deliver(net: Any, event: int, hops: int, tree_hops: int) -> None:
    """Hand an event to the application of the node; call it once for each event that it wants.

    Args:
        net: as of handlers.
        event: its number.
        hops: messages that it took from its publisher.
        tree_hops: those of them since it began to spread: from a rendezvous node, or all of them.
    """
    Delivered.log(net, event, hops, tree_hops)


def columns_of(boxes: Int64s, constrained: Int64s) -> tuple[Int64s, Int64s]:
    """The columns ``low`` and ``high`` of subscriptions.

    Args:
        boxes: int64[n, S, 2A], least and greatest value of every attribute.
        constrained: int64[n, S], -1 of no subscription.
    """
    low, high = boxes[:, :, 0::2].copy(), boxes[:, :, 1::2].copy()
    low[constrained < 0], high[constrained < 0] = 0, -1
    return low.reshape(len(boxes), -1), high.reshape(len(boxes), -1)


def matching(low: Int64s, high: Int64s, values: Int64s) -> npt.NDArray[np.bool_]:
    """bool[n]: the rows of which a box has the point ``values``, int64[A]."""
    shape = (len(low), -1, len(values))
    inside = (low.reshape(shape) <= values) & (values <= high.reshape(shape))
    return np.asarray(np.any(np.all(inside, axis=2), axis=1))


def event_words(declared: Declarations) -> Int64s:
    """int64[KINDS]: the word of a record of each kind that is its event's number; -1 of none."""
    found = np.full(KINDS, -1, np.int64)
    for part in parts_of(declared):
        for one in part.declared.messages.values():
            word = _event_word(one)
            found[one.kind] = -1 if word is None else BODY + word
    return found


def _event_word(one: MessageClass) -> int | None:
    """Which word of the body is the event's number; lists before it would move it."""
    for word, field in enumerate(one.fields):
        if isinstance(field.kind, Items):
            return None
        if field.name == _EVENT and field.kind is int:
            return word
    return None


def table_entries(declared: Declarations, state: Any, run: Any, nodes: int) -> Int64s:
    """int64[n]: how many entries the tables of nodes have, 0 where the class does not say."""
    function = inspect.getattr_static(declared.owner, TABLE_ENTRIES, None)
    found = np.zeros(nodes, np.int64) if function is None else np.asarray(function(state, run))
    if found.shape != (nodes,) or not np.issubdtype(found.dtype, np.integer):
        raise declared.error(TABLE_ENTRIES, None, "a whole number for each node")
    return found.astype(np.int64)


def check_overlay(protocol: ProtocolClass, field: str, *, drifts: bool) -> None:
    """Refuse a class that cannot stand beside the shipped overlays.

    Args:
        protocol: the class.
        field: of the scenario that names it.
        drifts: whether interests change in the course of the run.

    Raises:
        ScenarioError: it is of another kind, or lacks a handler or a message that it needs.
    """
    declared = protocol.declared
    controls = [name for name, one in declared.controls.items() if one.begin >= 0]
    needed: Mapping[str, bool] = {
        "a class derived from PubSub": issubclass(declared.owner, PubSub),
        "a class with on_publish(self, me, net, sender, event, values)": Publish.name
        in declared.messages,
        "a class that handles a message with a field event: int, ahead of any items, by which "
        "copies are counted": bool((np.delete(event_words(declared), Publish.kind) >= 0).any()),
        "a class with on_resubscribe(self, me, net, sender), as [drift] changes interests": not (
            drifts and Resubscribe.name not in declared.messages
        ),
        "a class without controls and observers, as the scenario says who comes and goes "
        "(@initialiser is called)": not controls,
    }
    for expected, holds in needed.items():
        if not holds:
            raise ScenarioError(None, field, protocol.label, expected)
