"""Event delivery down the delivery trees, and handing over a part of the routing table.

Vinifera, Sec. IV-B4. The rendezvous node of a copy, and every peer below it, matches the event
against the whole subscriptions in its content routing table and forwards it to the neighbours that
asked for it. A subscriber is registered by its primary attribute only; should it hold an event
already, for instance as a relay in another attribute's tree, it is not served again.
"""

from __future__ import annotations

from typing import Any

from gossamer.protocol.kernel.records import (
    BODY,
    FROM,
    LENGTH,
    Outbox,
    Words,
    close_record,
    open_record,
)
from gossamer.protocol.kernel.rows.hash_chains import chain, place_in_ring
from gossamer.protocol.kernel.rows.row_search import (
    copy_row,
    copy_words,
    find_labelled_boxes,
)
from gossamer.protocol.kernel.rules import inline_rule, rule
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
    HANDOVER,
    REPLICA,
    TREE,
)
from gossamer.protocol.peer.rendezvous.event_log import hold, note_got
from gossamer.protocol.peer.rendezvous.installation_boxes import take_own_box
from gossamer.protocol.peer.rendezvous.publication import (
    NOBODY,
    answer_publisher,
)
from gossamer.protocol.peer.rendezvous.replay import (
    TAKEN_AS_OURS,
    has_seen,
    place_of,
    remember,
)
from gossamer.protocol.peer.rendezvous.ring_offers import offer_at_once
from gossamer.protocol.peer.settings.config import LOAD_UNIT
from gossamer.protocol.peer.settings.profile import IDENTIFIER
from gossamer.protocol.peer.space.ring import RING_MASK, clockwise
from gossamer.protocol.peer.state.links import HANDLE_MASK, note_sent
from gossamer.protocol.peer.state.lookup import (
    IS_FINAL,
    anchor,
    handle_of_slot,
    own_arc_begins,
)
from gossamer.protocol.peer.state.resting import install_soon
from gossamer.protocol.peer.state.routing_table import (
    fresh_owner,
    is_covered_by,
    is_interested,
    source_of,
)
from gossamer.protocol.peer.state.state import (
    BOX,
    FALSE_POSITIVES,
    HANDED_OVER,
    MALFORMED,
    REFUSED_ENTRIES,
    REPEATED,
    SOURCE_IDENTIFIER,
    State,
)


@rule
def matching_entries(s: State, p: int, words: Words, body: int) -> int:
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
    s: State, p: int, to: int, mode: int, tree_hops: int, words: Words, body: int, out: Outbox
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
    note_sent(s, p, to)


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
def deliver(
    s: State, p: int, words: Words, body: int, tree_hops: int, age: int, out: Outbox
) -> None:
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
def find_askers(s: State, p: int, source: int, words: Words, body: int) -> int:
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
    s: State, p: int, source: int, words: Words, body: int, tree_hops: int, out: Outbox
) -> int:
    """Send the event to every neighbour that asked for it; return to how many."""
    told = find_askers(s, p, source, words, body)
    for t in range(told):
        send_event(s, p, s.work.told[t], TREE, tree_hops + 1, words, body, out)
    return told


@rule
def is_false_positive(s: State, p: int, words: Words, at: int) -> bool:
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
    s: State, p: int, source: int, words: Words, body: int, tree_hops: int, out: Outbox
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
def take_to_hold(s: State, p: int, source: int, words: Words, body: int, out: Outbox) -> int:
    """Take an event copy as one of those who answer for it; returns what `disseminate` does."""
    taken = disseminate(s, p, source, words, body, 0, out)
    hold(s, p, words, body, 0, out)
    return taken


@rule
def note_ours(s: State, p: int, words: Words, body: int) -> None:
    """Remember that ``p`` took an event copy as its rendezvous node (see `arc_return`)."""
    copy = words[body + EVENT_ID] * s.params.attributes + words[body + EVENT_ATTRIBUTE]
    m = place_of(s, p, copy)
    if m >= 0:
        s.event_hops[p, m] |= TAKEN_AS_OURS


@rule
def send_replica(s: State, p: int, left: int, words: Words, body: int, out: Outbox) -> None:
    """Let the successor disseminate the event too, and ``left - 1`` successors of its own.

    The last of them answers the publisher.
    """
    if left > 0 and s.successor[p] >= 0:
        to = handle_of_slot(s, p, s.successor[p])
        send_event(s, p, to, REPLICA + left - 1, 0, words, body, out)
    else:
        answer_publisher(s, p, words, body, out)


@rule
def act_as_rendezvous(s: State, p: int, source: int, words: Words, body: int, out: Outbox) -> None:
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


@inline_rule
def most_tree_hops(s: State, mode: int) -> Any:
    """The largest word of hops in the tree; before it, it holds how near a copy has come."""
    return s.params.hop_limit if mode == TREE else ~IS_FINAL


@rule
def event_is_well_formed(s: State, p: int, words: Words, at: int) -> bool:
    """Whether an event record has the schema's number of values and a possible head."""
    body = at + BODY
    if (
        words[at + LENGTH] == BODY + EVENT_VALUES + s.params.attributes
        and 0 <= words[body + EVENT_ATTRIBUTE] < s.params.attributes
        and 0 <= words[body + EVENT_MODE] < REPLICA + s.params.replicas
        and words[body + EVENT_ID] >= 0
        and words[body + EVENT_HOPS] >= 0
        and 0 <= words[body + EVENT_TREE_HOPS] <= most_tree_hops(s, words[body + EVENT_MODE])
        and -1 <= words[body + EVENT_ORIGIN] <= HANDLE_MASK
    ):
        return True
    s.counters[p, MALFORMED] += 1
    return False


# Handing over the part of the routing table that goes with a part of the ring.
#
# Goes beyond the paper: there a peer that takes over part of an arc, as a newcomer or to relieve
# its successor of load, knows no subscriber until they install themselves anew, and loses the
# events published until then.


@rule
def box_meets_arc(s: State, box: Any, at: int, start: int, end: int) -> bool:
    """Whether the box at ``box[at:]`` asks for values of the arc (start, end]."""
    attribute = box[at]
    if s.params.by_value == 0:
        low = anchor(attribute)
        high = low
    else:
        low = box[at + 1 + 2 * attribute]
        high = box[at + 2 + 2 * attribute]
    first = (start + 1) & RING_MASK
    length = clockwise(first, end)
    return clockwise(first, low) <= length or clockwise(low, first) <= high - low


@rule
def write_entry(
    s: State, source: int, identifier: int, box: Any, at: int, out: Outbox, place: int
) -> None:
    """Write an entry to ``out.words`` from ``place`` on: source, its identifier, box."""
    out.words[place] = source
    out.words[place + 1] = identifier
    for w in range(s.work.box.shape[0]):
        out.words[place + 2 + w] = box[at + w]


@rule
def hand_over(s: State, p: int, newcomer: int, identifier: int, out: Outbox) -> None:
    """Send our new predecessor the entries for the part of our arc up to ``identifier``.

    Our own subscriptions are among them, as entries that we asked for.

    The body is a count, then per entry its source, the source's identifier and the box.
    """
    me = s.sampler.profile[p, IDENTIFIER]
    start = (me + own_arc_begins(s, p)) & RING_MASK
    size = 2 + s.work.box.shape[0]
    most = s.table_count[p] + s.constrained.shape[1]
    at = open_record(out, HANDOVER, newcomer, s.sampler.handle[p], 1 + most * size)
    if at < 0:
        return
    count = 0
    for e in range(s.table_count[p]):
        source = source_of(s, p, e)
        copy_row(s.table, p, e, s.work.entry)
        if source != newcomer and box_meets_arc(s, s.work.entry, BOX, start, identifier):
            place = at + BODY + 1 + count * size
            where = s.table[p, e, SOURCE_IDENTIFIER] & RING_MASK
            write_entry(s, source, where, s.work.entry, BOX, out, place)
            count += 1
    for k in range(s.constrained.shape[1]):
        if s.constrained[p, k] < 0 or count == s.table.shape[1]:
            continue
        take_own_box(s, p, k)
        if box_meets_arc(s, s.work.box, 0, start, identifier):
            place = at + BODY + 1 + count * size
            write_entry(s, s.sampler.handle[p], me, s.work.box, 0, out, place)
            count += 1
    out.words[at + BODY] = count
    close_record(out, at, 1 + count * size)


@rule
def is_predecessor(s: State, p: int, handle: int) -> bool:
    """Whether ``handle`` is our predecessor, and may leave."""
    k = s.predecessor[p]
    return s.params.move_rounds > 0 and k >= 0 and handle_of_slot(s, p, k) == handle


@rule
def is_successor(s: State, p: int, handle: int) -> bool:
    """Whether ``handle`` is our successor."""
    k = s.successor[p]
    return k >= 0 and handle_of_slot(s, p, k) == handle


@rule
def on_handover(s: State, p: int, _now: int, words: Words, at: int, _out: Outbox) -> None:
    """Take over entries, as a newcomer who has none, or from who stands next to us.

    That is the successor, where we relieve it of load or move in before it, or a predecessor that
    is about to leave.
    """
    size = 2 + s.work.box.shape[0]
    count = -1
    if words[at + LENGTH] > BODY:
        count = words[at + BODY]
    if (
        count < 0
        or count > s.table.shape[1]
        or words[at + LENGTH] != BODY + 1 + count * size
        or words[at + FROM] == s.sampler.handle[p]
    ):
        s.counters[p, MALFORMED] += 1
        return
    giver = words[at + FROM]
    is_beside = is_successor(s, p, giver) or is_predecessor(s, p, giver)
    if s.table_count[p] > 0 and not is_beside:
        return
    for i in range(count):
        place = at + BODY + 1 + i * size
        attribute = words[place + 2]
        if attribute < 0 or attribute >= s.params.attributes:
            s.counters[p, MALFORMED] += 1
            continue
        source = words[place] & HANDLE_MASK
        if source == s.sampler.handle[p] or is_covered_by(s, p, words, place + 2, source):
            continue
        if s.table_count[p] == s.table.shape[1]:
            s.counters[p, REFUSED_ENTRIES] += 1
            continue
        e = s.table_count[p]
        s.owner[p, e] = fresh_owner(s, p, source, s.params.entry_lifetime)
        s.table[p, e, SOURCE_IDENTIFIER] = words[place + 1] & RING_MASK
        if s.params.replay_rounds > 0:
            s.table[p, e, SOURCE_IDENTIFIER] |= HANDED_OVER
        for w in range(s.work.box.shape[0]):
            s.table[p, e, BOX + w] = words[place + 2 + w]
        s.table_count[p] = e + 1
        install_soon(s, p)
