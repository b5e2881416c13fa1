"""Event delivery: n copies to n rendezvous nodes, then down the delivery trees.

Vinifera, Sec. IV-B4. The rendezvous node of a copy, and every peer below it, matches the event
against the whole subscriptions in its content routing table and forwards it to the neighbours that
asked for it. A subscriber is registered by its primary attribute only; should it hold an event
already, for instance as a relay in another attribute's tree, it is not served again.
"""

from __future__ import annotations

from typing import Any

from gossamer.protocol.kernel.records import BODY, FROM, LENGTH, Outbox, close_record, open_record
from gossamer.protocol.kernel.rows.hash_chains import chain, place_in_ring
from gossamer.protocol.kernel.rows.row_search import (
    copy_words,
    find_labelled_boxes,
)
from gossamer.protocol.kernel.rules import rule
from gossamer.protocol.peer.record_table.records import (
    DELIVER,
    EVENT,
    EVENT_ATTRIBUTE,
    EVENT_HOPS,
    EVENT_ID,
    EVENT_MODE,
    EVENT_ORIGIN,
    EVENT_TREE_HOPS,
    EVENT_VALUES,
    FINAL,
    GREEDY,
    INSTALL_NEWS,
    REPLICA,
    TREE,
)
from gossamer.protocol.peer.rendezvous.event_log import hold, note_got
from gossamer.protocol.peer.rendezvous.hop_acknowledgements import (
    NO_OTHER_WAY,
    acknowledge_hop,
    await_next_hop,
    take_unacknowledged,
)
from gossamer.protocol.peer.rendezvous.installation import send_boxes
from gossamer.protocol.peer.rendezvous.publication import (
    NOBODY,
    PENDING_EVENT,
    PENDING_VALUES,
    UNANSWERED,
    all_copies,
    answer_publisher,
    await_answers,
    is_due_again,
    note_try,
)
from gossamer.protocol.peer.rendezvous.replay import (
    TAKEN_AS_OURS,
    has_seen,
    place_of,
    remember,
)
from gossamer.protocol.peer.rendezvous.ring_offers import offer_at_once
from gossamer.protocol.peer.routing.lookup import (
    goes_back,
    handle_of_slot,
    has_moved,
    next_hop,
    rendezvous_value,
)
from gossamer.protocol.peer.routing.table import is_interested, source_of
from gossamer.protocol.peer.settings.config import LOAD_UNIT
from gossamer.protocol.peer.state.links import HANDLE_MASK, note_asked, slot_of
from gossamer.protocol.peer.state.state import (
    BOX,
    FALSE_POSITIVES,
    HOPS_EXCEEDED,
    MALFORMED,
    OLD_PREDECESSOR,
    OLD_SUCCESSOR,
    REPEATED,
    TO_HAND_ON,
    UNDER_WAY,
    State,
)


@rule
def matching_entries(s: State, p: int, words: Any, body: int) -> int:
    """Write to ``work.found`` the entries that ask for an event copy; return their number."""
    return find_labelled_boxes(
        s,
        s.table,
        p,
        s.table_count[p],
        BOX,
        words[body + EVENT_ATTRIBUTE],
        BOX + 1,
        words,
        body + EVENT_VALUES,
        s.params.attributes,
        s.work.found,
    )


@rule
def send_event(
    s: State, p: int, to: int, mode: int, tree_hops: int, words: Any, body: int, out: Outbox
) -> None:
    """Send the event whose body stands at ``words[body:]`` on, one hop further."""
    size = EVENT_VALUES + s.params.attributes
    at = open_record(out, EVENT, to, s.sampler.handle[p], size)
    if at < 0:
        return
    sent = at + BODY
    copy_words(words, body, size, out.words, sent)
    out.words[sent + EVENT_MODE] = mode
    if mode == TREE:
        # Nobody answers from here on.
        out.words[sent + EVENT_ORIGIN] = NOBODY
    out.words[sent + EVENT_HOPS] += 1
    out.words[sent + EVENT_TREE_HOPS] = tree_hops
    close_record(out, at, size)


@rule
def note_delivered(s: State, p: int, event: int) -> bool:
    """Note that the application has an event; return whether that is new."""
    place = s.delivered_next[p]
    if place_in_ring(s.delivered, s.delivered_heads, s.delivered_older, p, place, event) >= 0:
        return False
    s.delivered[p, place] = event
    chain(s.delivered_heads, s.delivered_older, p, place, event)
    s.delivered_next[p] = (place + 1) % s.delivered.shape[1]
    return True


@rule
def deliver(s: State, p: int, words: Any, body: int, tree_hops: int, age: int, out: Outbox) -> None:
    """Hand an event, published so many rounds ago, to the application, unless it has it."""
    event = words[body + EVENT_ID]
    if not note_delivered(s, p, event):
        return
    note_got(s, p, event, age, words, body + EVENT_VALUES)
    me = s.sampler.handle[p]
    at = open_record(out, DELIVER, me, me, 3)
    if at < 0:
        return
    out.words[at + BODY] = event
    out.words[at + BODY + 1] = words[body + EVENT_HOPS]
    out.words[at + BODY + 2] = tree_hops
    close_record(out, at, 3)


@rule
def find_askers(s: State, p: int, source: int, words: Any, body: int) -> int:
    """Write to ``work.told`` who, but for ``source``, asked here for an event; return how many."""
    told = 0
    found = s.work.found
    neighbours = s.work.told
    for i in range(matching_entries(s, p, words, body)):
        neighbour = source_of(s, p, found[i])
        if neighbour == source:
            continue
        known = False
        for t in range(told - 1, -1, -1):
            if neighbours[t] == neighbour:
                known = True
                break
        if not known:
            neighbours[told] = neighbour
            told += 1
    return told


@rule
def forward_down(
    s: State, p: int, source: int, words: Any, body: int, tree_hops: int, out: Outbox
) -> int:
    """Send the event to every neighbour that asked for it; return to how many."""
    told = find_askers(s, p, source, words, body)
    for t in range(told):
        send_event(s, p, s.work.told[t], TREE, tree_hops + 1, words, body, out)
    return told


@rule
def is_false_positive(s: State, p: int, words: Any, at: int) -> bool:
    """Whether ``p`` is about to take an event from a tree that it neither wants nor passes on.

    Only somebody's merged ranges brought it here. Copies that ``p`` has seen before are not false
    positives, but repeated. A host asks this before `step`, which then counts FALSE_POSITIVES.
    """
    body = at + BODY
    if words[body + EVENT_MODE] != TREE or words[body + EVENT_HOPS] >= s.params.hop_limit:
        return False
    if is_interested(s, p, words, body + EVENT_VALUES):
        return False
    for i in range(matching_entries(s, p, words, body)):
        if source_of(s, p, s.work.found[i]) != words[at + FROM]:
            return False
    return not has_seen(
        s, p, words[body + EVENT_ID] * s.params.attributes + words[body + EVENT_ATTRIBUTE]
    )


@rule
def disseminate(
    s: State, p: int, source: int, words: Any, body: int, tree_hops: int, out: Outbox
) -> int:
    """Take an event copy as part of its delivery tree: remember, deliver, forward.

    Returns 0 if the copy was here before, 1 if the peer wants the event itself, else 2.
    """
    copy = words[body + EVENT_ID] * s.params.attributes + words[body + EVENT_ATTRIBUTE]
    if has_seen(s, p, copy):
        s.counters[p, REPEATED] += 1
        return 0
    hops = words[body + EVENT_HOPS] << 32 | tree_hops
    remember(s, p, copy, hops, words, body + EVENT_VALUES)
    interested = is_interested(s, p, words, body + EVENT_VALUES)
    if interested:
        deliver(s, p, words, body, tree_hops, 0, out)
    told = forward_down(s, p, source, words, body, tree_hops, out)
    offer_at_once(s, p, source, words, body, out)
    if not interested and told == 0 and words[body + EVENT_MODE] == TREE:
        s.counters[p, FALSE_POSITIVES] += 1
    return 1 if interested else 2


@rule
def take_to_hold(s: State, p: int, source: int, words: Any, body: int, out: Outbox) -> int:
    """Take an event copy as one of those who answer for it; returns what `disseminate` does."""
    taken = disseminate(s, p, source, words, body, 0, out)
    hold(s, p, words, body, 0, out)
    return taken


@rule
def note_ours(s: State, p: int, words: Any, body: int) -> None:
    """Remember that ``p`` took an event copy as its rendezvous node (see `arc_return`)."""
    copy = words[body + EVENT_ID] * s.params.attributes + words[body + EVENT_ATTRIBUTE]
    m = place_of(s, p, copy)
    if m >= 0:
        s.event_hops[p, m] |= TAKEN_AS_OURS


@rule
def send_replica(s: State, p: int, left: int, words: Any, body: int, out: Outbox) -> None:
    """Let the successor disseminate the event too, and ``left - 1`` successors of its own.

    The last of them answers the publisher.
    """
    if left > 0 and s.successor[p] >= 0:
        to = handle_of_slot(s, p, s.successor[p])
        send_event(s, p, to, REPLICA + left - 1, 0, words, body, out)
    else:
        answer_publisher(s, p, words, body, out)


@rule
def act_as_rendezvous(s: State, p: int, source: int, words: Any, body: int, out: Outbox) -> None:
    """Begin the delivery tree of an event copy, and count the load (Sec. IV-B5).

    The neighbour that routed the copy here may well be a child in the tree: it is left out only
    where it has served its branch on the way.
    """
    served = source if s.params.enter_on_the_way == 1 else -1
    taken = take_to_hold(s, p, served, words, body, out)
    if taken == 2:
        s.load[p] += LOAD_UNIT
    if s.params.hand_on == 1:
        note_ours(s, p, words, body)
    if taken > 0 or words[body + EVENT_ORIGIN] >= 0:
        send_replica(s, p, s.params.replicas, words, body, out)


@rule
def route(s: State, p: int, source: int, words: Any, body: int, out: Outbox) -> None:
    """Bring an event copy, which came from ``source``, one hop closer to its rendezvous node.

    With `enter_on_the_way` it goes down our own branch of the tree at once: requests for its value
    take the same next hop as it does, so that the branch is ours alone.

    A copy that was sent as to its rendezvous node, and finds that a peer in between has taken the
    value over, goes back along predecessors until it is there. With replicas, those it passes
    disseminate it too: one of them was its rendezvous node until a moment ago.
    """
    attribute = words[body + EVENT_ATTRIBUTE]
    value = rendezvous_value(s, attribute, words[body + EVENT_VALUES + attribute])
    hop = next_hop(s, p, value)
    if hop < 0:
        act_as_rendezvous(s, p, source, words, body, out)
        return
    if s.params.enter_on_the_way == 1:
        disseminate(s, p, source, words, body, 0, out)
    if words[body + EVENT_MODE] == FINAL and goes_back(s, p, value):
        if s.params.replicas > 0 and s.params.enter_on_the_way == 0:
            disseminate(s, p, -1, words, body, 0, out)
        send_on(s, p, handle_of_slot(s, p, s.predecessor[p]), FINAL, words, body, out)
    else:
        mode = FINAL if hop & 1 == 1 else GREEDY
        send_on(s, p, handle_of_slot(s, p, hop >> 1), mode, words, body, out)


@rule
def send_on(s: State, p: int, to: int, mode: int, words: Any, body: int, out: Outbox) -> None:
    """Send a copy one hop on its way to the rendezvous node, and wait for its acknowledgement."""
    send_event(s, p, to, mode, 0, words, body, out)
    await_next_hop(s, p, to, mode, words, body)


@rule
def event_is_well_formed(s: State, p: int, words: Any, at: int) -> bool:
    """Whether an event record has the schema's number of values and a possible head."""
    body = at + BODY
    if (
        words[at + LENGTH] == BODY + EVENT_VALUES + s.params.attributes
        and 0 <= words[body + EVENT_ATTRIBUTE] < s.params.attributes
        and 0 <= words[body + EVENT_MODE] < REPLICA + s.params.replicas
        and words[body + EVENT_ID] >= 0
        and words[body + EVENT_HOPS] >= 0
        and -1 <= words[body + EVENT_ORIGIN] <= HANDLE_MASK
    ):
        return True
    s.counters[p, MALFORMED] += 1
    return False


@rule
def on_event(s: State, p: int, _now: int, words: Any, at: int, out: Outbox) -> None:
    """Take an event copy from another peer."""
    if not event_is_well_formed(s, p, words, at):
        return
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
    elif has_moved(s, p) and words[at + FROM] == s.seat[p, OLD_PREDECESSOR]:
        # It does not know yet that another comes after it.
        send_event(s, p, s.seat[p, OLD_SUCCESSOR], mode, 0, words, body, out)
    else:
        take_to_hold(s, p, words[at + FROM], words, body, out)
        send_replica(s, p, mode - REPLICA, words, body, out)


@rule
def on_publish(s: State, p: int, _now: int, words: Any, at: int, out: Outbox) -> None:
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
def send_copies(s: State, p: int, wanted: int, words: Any, body: int, out: Outbox) -> None:
    """Send an event to the rendezvous nodes of the attributes whose bits ``wanted`` has set."""
    for a in range(s.params.attributes):
        if (wanted >> a) & 1 == 1:
            words[body + EVENT_HOPS] = 0
            words[body + EVENT_TREE_HOPS] = 0
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
def reroute_event(s: State, p: int, _now: int, words: Any, at: int, out: Outbox) -> None:
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
        route(s, p, NOBODY, words, body, out)
    elif mode >= REPLICA:
        send_replica(s, p, mode - REPLICA + 1, words, body, out)
