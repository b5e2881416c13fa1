"""Event copies on their way to rendezvous nodes, acknowledged hop by hop, and sent again.

Vinifera, Sec. IV-B4. What is done with a copy at its rendezvous node and below is in `delivery`.
"""

from __future__ import annotations

from gossamer.protocol.kernel.records import (
    BODY,
    FROM,
    LENGTH,
    Outbox,
    Words,
    close_record,
    open_record,
)
from gossamer.protocol.kernel.rows.row_search import position_in_column
from gossamer.protocol.kernel.rules import rule
from gossamer.protocol.peer.record_table.records import (
    EVENT_ATTRIBUTE,
    EVENT_HOPS,
    EVENT_ID,
    EVENT_MODE,
    EVENT_ORIGIN,
    EVENT_PROGRESS,
    EVENT_TAKEN,
    EVENT_TREE_HOPS,
    EVENT_VALUES,
    FINAL,
    GREEDY,
    INSTALL_NEWS,
    REPLICA,
    TREE,
)
from gossamer.protocol.peer.rendezvous.delivery import (
    act_as_rendezvous,
    disseminate,
    event_is_well_formed,
    note_ours,
    send_event,
    send_replica,
    take_to_hold,
)
from gossamer.protocol.peer.rendezvous.installation import mend_view
from gossamer.protocol.peer.rendezvous.publication import (
    NOBODY,
    PENDING_EVENT,
    PENDING_VALUES,
    UNANSWERED,
    all_copies,
    await_answers,
    is_due_again,
    note_try,
)
from gossamer.protocol.peer.rendezvous.questions import send_boxes
from gossamer.protocol.peer.state.links import note_asked, note_heard, slot_of
from gossamer.protocol.peer.state.lookup import (
    ANSWERS,
    IS_FINAL,
    MOST_STRAYS,
    RESTS,
    handle_of_slot,
    has_moved,
    is_stray,
    next_hop,
    next_hop_on,
    progress_on,
    rendezvous_value,
)
from gossamer.protocol.peer.state.resting import may_rest
from gossamer.protocol.peer.state.state import (
    COPY,
    HOPS_EXCEEDED,
    MALFORMED,
    OLD_PREDECESSOR,
    OLD_SUCCESSOR,
    RECORD,
    SENT_IN,
    SENT_TO,
    TO_HAND_ON,
    UNDER_WAY,
    State,
)

# Event copies that are acknowledged hop by hop on their way to the rendezvous node.
#
# Goes beyond the paper. Where nobody learns that a peer is gone, a copy sent to one that is gone is
# lost, with all that would have followed from it. With `acknowledged_hops` whoever takes such a
# copy says so to whom it came from, which remembers it until then. In its next turn a peer sends
# what was not acknowledged by another way (`event_routing.send_again`), and asks the neighbour
# whether it lives. A copy goes on its way a second time once; what arrives twice is dropped as
# always.
#
# Copies in a tree are not acknowledged: neighbours offer each other what they took (`ring_offers`),
# which mends a tree and its last hop alike.


NOTHING = -1
# The mode of a remembered copy that only the next hop lacks: all others that should have it do.
NO_OTHER_WAY = TREE


@rule
def await_next_hop(s: State, p: int, to: int, mode: int, words: Words, body: int) -> bool:
    """Remember the copy at ``words[body:]``, sent to ``to`` in a mode, until it is acknowledged.

    One that finds no room is not remembered: as without acknowledgements, it arrives or does not.
    Returns whether there was no need of room, or some.
    """
    if s.under_way.shape[1] == 0:
        return True
    copy = words[body + EVENT_ID] * s.params.attributes + words[body + EVENT_ATTRIBUTE]
    i = position_in_column(s.under_way, p, COPY, copy)
    if i < 0:
        i = position_in_column(s.under_way, p, COPY, NOTHING)
        if i < 0:
            return False
        s.alarm[p, UNDER_WAY] += 1
    s.under_way[p, i, COPY] = copy
    s.under_way[p, i, SENT_TO] = to
    s.under_way[p, i, SENT_IN] = s.round[p]
    for w in range(EVENT_VALUES + s.params.attributes):
        s.under_way[p, i, RECORD + w] = words[body + w]
    s.under_way[p, i, RECORD + EVENT_MODE] = mode
    return True


@rule
def acknowledge_hop(s: State, p: int, to: int, words: Words, body: int, out: Outbox) -> None:
    """Tell ``to`` that its copy at ``words[body:]`` is here."""
    if s.under_way.shape[1] == 0:
        return
    at = open_record(out, EVENT_TAKEN, to, s.sampler.handle[p], 1)
    if at >= 0:
        copy = words[body + EVENT_ID] * s.params.attributes + words[body + EVENT_ATTRIBUTE]
        out.words[at + BODY] = copy
        close_record(out, at, 1)


@rule
def on_event_taken(s: State, p: int, _now: int, words: Words, at: int, _out: Outbox) -> None:
    """The next hop has a copy: forget it, unless it went to somebody else since."""
    if words[at + LENGTH] != BODY + 1 or words[at + BODY] < 0:
        s.counters[p, MALFORMED] += 1
        return
    note_heard(s, p, words[at + FROM])
    if s.under_way.shape[1] == 0:
        return
    i = position_in_column(s.under_way, p, COPY, words[at + BODY])
    if i >= 0 and s.under_way[p, i, SENT_TO] == words[at + FROM]:
        s.under_way[p, i, COPY] = NOTHING
        s.alarm[p, UNDER_WAY] -= 1


@rule
def take_unacknowledged(s: State, p: int, i: int) -> int:
    """Take copy ``i`` out, if it was sent before this turn; the event goes to ``work.event``.

    Returns who it was sent to, -1 where there is nothing to take.
    """
    if s.under_way[p, i, COPY] < 0 or s.under_way[p, i, SENT_IN] >= s.round[p]:
        return NOTHING
    s.under_way[p, i, COPY] = NOTHING
    s.alarm[p, UNDER_WAY] -= 1
    for w in range(s.work.event.shape[0]):
        s.work.event[w] = s.under_way[p, i, RECORD + w]
    return s.under_way[p, i, SENT_TO]


@rule
def route(s: State, p: int, source: int, words: Words, body: int, out: Outbox) -> None:
    """Bring an event copy, which came from ``source``, one hop closer to its rendezvous node.

    With `enter_on_the_way` it goes down our own branch of the tree at once: requests for its value
    take the same next hop as it does, so that the branch is ours alone.

    A copy that was sent as to its rendezvous node, and finds that a peer in between has taken the
    value over, goes back, to whom ``p`` knows closest behind the value, until it is there. With
    replicas, those it passes disseminate it too: one of them was its rendezvous node until a moment
    ago. One that should not have come here is routed from here, and comes to rest if that goes on
    (see `routing.progress`).
    """
    attribute = words[body + EVENT_ATTRIBUTE]
    value = rendezvous_value(s, attribute, words[body + EVENT_VALUES + attribute])
    word = words[body + EVENT_PROGRESS]
    if words[body + EVENT_MODE] == FINAL:
        word |= IS_FINAL
    strayed = is_stray(s, p, value, word)
    hop = next_hop_on(s, p, value, word, strayed)
    if hop == ANSWERS:
        act_as_rendezvous(s, p, source, words, body, out)
        return
    mend_view(s, p, source, strayed, out)
    goes_back = word & IS_FINAL != 0 and not strayed and s.params.replicas > 0
    if s.params.enter_on_the_way == 1:
        disseminate(s, p, source, words, body, 0, out)
    elif goes_back or hop == RESTS:
        disseminate(s, p, NOBODY, words, body, 0, out)
    if hop == RESTS:
        hand_on_later(s, p, words, body)
    else:
        send_on(s, p, hop, progress_on(s, p, hop, value, word, strayed), words, body, out)


@rule
def hand_on_later(s: State, p: int, words: Words, body: int) -> None:
    """Let a copy rest until it is handed on to its rendezvous node (see `arc_return`)."""
    if s.params.hand_on == 1:
        note_ours(s, p, words, body)
        s.alarm[p, TO_HAND_ON] = 1


@rule
def send_on(s: State, p: int, hop: int, word: int, words: Words, body: int, out: Outbox) -> None:
    """Send a copy one hop on its way to the rendezvous node, and wait for its acknowledgement."""
    to = handle_of_slot(s, p, hop >> 1)
    mode = FINAL if hop & 1 == 1 else GREEDY
    send_event(s, p, to, mode, word & ~IS_FINAL, words, body, out)
    await_next_hop(s, p, to, mode, words, body)


@rule
def on_event(s: State, p: int, _now: int, words: Words, at: int, out: Outbox) -> None:
    """Take an event copy from another peer."""
    if not event_is_well_formed(s, p, words, at):
        return
    if may_rest(s):
        note_heard(s, p, words[at + FROM])
    body = at + BODY
    mode = words[body + EVENT_MODE]
    if mode < TREE:
        acknowledge_hop(s, p, words[at + FROM], words, body, out)
    if words[body + EVENT_HOPS] >= s.params.hop_limit:
        s.counters[p, HOPS_EXCEEDED] += 1
    elif mode == TREE:
        disseminate(s, p, words[at + FROM], words, body, words[body + EVENT_TREE_HOPS], out)
    elif mode < TREE:
        route(s, p, words[at + FROM], words, body, out)
    elif is_for_old_successor(s, p, words, at):
        strays = words[body + EVENT_PROGRESS] + 1
        send_event(s, p, s.seat[p, OLD_SUCCESSOR], mode, strays, words, body, out)
    else:
        take_to_hold(s, p, words[at + FROM], words, body, out)
        send_replica(s, p, mode - REPLICA, words, body, out)


@rule
def is_for_old_successor(s: State, p: int, words: Words, at: int) -> bool:
    """Whether a replica is for who came after ``p`` at a place that it has left.

    Its predecessor there does not know yet that another comes after it.
    """
    comes_from_there = has_moved(s, p) and words[at + FROM] == s.seat[p, OLD_PREDECESSOR]
    return bool(comes_from_there and words[at + BODY + EVENT_PROGRESS] < MOST_STRAYS)


@rule
def on_publish(s: State, p: int, _now: int, words: Words, at: int, out: Outbox) -> None:
    """Publish: one copy to the rendezvous node of each attribute's value.

    The command's body is that of an event; attribute, mode, hops and origin in it are not read. A
    publisher that is itself a rendezvous node begins the tree at once.
    """
    if words[at + LENGTH] != BODY + EVENT_VALUES + s.params.attributes:
        s.counters[p, MALFORMED] += 1
        return
    body = at + BODY
    if await_answers(s, p, words, body, out):
        send_copies(s, p, all_copies(s), words, body, out)


@rule
def send_copies(s: State, p: int, wanted: int, words: Words, body: int, out: Outbox) -> None:
    """Send an event to the rendezvous nodes of the attributes whose bits ``wanted`` has set."""
    for a in range(s.params.attributes):
        if (wanted >> a) & 1 == 1:
            words[body + EVENT_HOPS] = 0
            words[body + EVENT_PROGRESS] = 0
            words[body + EVENT_ATTRIBUTE] = a
            words[body + EVENT_MODE] = GREEDY
            route(s, p, NOBODY, words, body, out)


@rule
def publish_again(s: State, p: int, out: Outbox) -> None:
    """Send what has gone unanswered for too long once more."""
    for i in range(s.pending.shape[1]):
        if is_due_again(s, p, i):
            note_try(s, p, i)
            event = s.work.event
            event[EVENT_ID] = s.pending[p, i, PENDING_EVENT]
            event[EVENT_ORIGIN] = s.sampler.handle[p]
            for a in range(s.params.attributes):
                event[EVENT_VALUES + a] = s.pending[p, i, PENDING_VALUES + a]
            send_copies(s, p, s.pending[p, i, UNANSWERED], event, 0, out)


@rule
def send_again(s: State, p: int, out: Outbox) -> None:
    """Send by another way what a next hop has not acknowledged, and ask it whether it lives.

    Who comes next in place of a rendezvous node that is silent is to take the event as one. It
    answers nobody: the silent one may live, and a publisher that hears nothing tries again. What no
    publisher tries again is brought to the rendezvous node later (`arc_return.hand_on`).
    """
    if s.under_way.shape[1] == 0 or s.alarm[p, UNDER_WAY] < 0:
        return
    for i in range(s.under_way.shape[1]):
        silent = take_unacknowledged(s, p, i)
        if silent < 0:
            continue
        event = s.work.event
        attribute = event[EVENT_ATTRIBUTE]
        is_tried_again = event[EVENT_ORIGIN] >= 0
        event[EVENT_ORIGIN] = NOBODY
        k = slot_of(s, p, silent)
        link = s.links[p, k] if k >= 0 else -1
        if k >= 0:
            send_boxes(s, p, INSTALL_NEWS, silent, 0, 0, 1, out)
            note_asked(s, p, k)
            s.links[p, k] = -1
        hop = next_hop(s, p, rendezvous_value(s, attribute, event[EVENT_VALUES + attribute]))
        if k >= 0:
            s.links[p, k] = link
        if event[EVENT_MODE] == NO_OTHER_WAY:
            is_tried_again = False
        elif hop < 0:
            act_as_rendezvous(s, p, NOBODY, event, 0, out)
        else:
            mode = GREEDY
            if event[EVENT_MODE] == FINAL:
                mode = REPLICA + max(s.params.replicas - 1, 0)
            send_event(s, p, handle_of_slot(s, p, hop >> 1), mode, 0, event, 0, out)
        if s.params.hand_on == 1 and not is_tried_again:
            note_ours(s, p, event, 0)
            s.alarm[p, TO_HAND_ON] = 1


@rule
def reroute_event(s: State, p: int, _now: int, words: Words, at: int, out: Outbox) -> None:
    """Find another way for an event copy whose next hop cannot be reached.

    Only copies on their way to a rendezvous node, and replicas, have one: the part of a tree below
    a peer that failed installs itself elsewhere and catches up there.
    """
    if s.params.reroute == 0:
        return
    body = at + BODY
    mode = words[body + EVENT_MODE]
    words[body + EVENT_HOPS] -= 1
    if mode < TREE:
        words[body + EVENT_MODE] = GREEDY
        words[body + EVENT_PROGRESS] = 0
        route(s, p, NOBODY, words, body, out)
    elif mode >= REPLICA:
        send_replica(s, p, mode - REPLICA + 1, words, body, out)
