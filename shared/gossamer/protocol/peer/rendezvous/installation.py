"""Subscription installation along the path to the rendezvous nodes (Vinifera, Sec. IV-B3).

Every round a peer sends each neighbour one aggregated message: all boxes, its own and those that
others installed here, whose next hop that neighbour is. The message replaces what the neighbour
held for us, so that what is no longer asked for vanishes by itself (de-aggregation). It is a
heartbeat too, which ring neighbours, and others that were not heard of for a while, answer with
their profile; a neighbour that has nothing to hold for us gets an empty one only then. Where rounds
are left out in which nothing changed (`installation_boxes`), who was not heard of is asked all the
same.

A box that was not covered before is news: it is forwarded at once (the paper's lookups are
recursive), but only if no other entry covers it, since then the path onward exists. State and
traffic are bounded by B boxes a neighbour and round, whatever the number of subscriptions.

A value is *final* at a peer if it lies between the sender and the peer: the sender takes the peer
for its rendezvous node. Where that is wrong, because the peer knows somebody in between, the
request goes back to the predecessor it belongs to (the paper leaves this open); it is never sent on
around the ring. Every other request only travels on through the arc from the peer to the
sender. Either way it cannot come back to where it was.
"""

from __future__ import annotations

from gossamer.protocol.kernel.records import (
    BODY,
    FROM,
    KIND,
    LENGTH,
    TO,
    Outbox,
    Words,
    close_record,
    open_record,
)
from gossamer.protocol.kernel.rows.row_search import copy_row
from gossamer.protocol.kernel.rules import rule
from gossamer.protocol.peer.record_table.records import ACKNOWLEDGE, INSTALL, INSTALL_NEWS
from gossamer.protocol.peer.rendezvous.installation_boxes import (
    CHANGES,
    EVERYTHING,
    HEARTBEATS,
    NEW,
    NOTHING,
    begin_lists,
    boxes_are_well_formed,
    classify_boxes,
    digest_boxes,
    forwarding_limit,
    head_words,
    is_installed,
    limit_of_own,
    note_installed,
    spread,
    take_own_box,
    what_to_install,
)
from gossamer.protocol.peer.rendezvous.questions import (
    ask,
    ask_everybody,
    ask_the_silent,
    is_long_silent,
    needs_answer,
    send_boxes,
)
from gossamer.protocol.peer.rendezvous.replay import offer_events
from gossamer.protocol.peer.settings.profile import IDENTIFIER
from gossamer.protocol.peer.state.links import (
    descriptor_words,
    note_asked,
    refresh_link,
    write_link,
    write_own_descriptor,
)
from gossamer.protocol.peer.state.lookup import handle_of_slot
from gossamer.protocol.peer.state.resting import (
    installed_rounds,
    is_turn,
    may_rest,
)
from gossamer.protocol.peer.state.routing_table import (
    aggregate,
    fresh_owner,
    is_handed_over,
    remove_expired,
    replace_source,
    source_of,
)
from gossamer.protocol.peer.state.state import (
    BOX,
    INSTALLS_SOON,
    MALFORMED,
    SILENCE_IN,
    SOURCE_IDENTIFIER,
    State,
)


@rule
def list_everything(s: State, p: int) -> int:
    """List all boxes, own and others', by next hop; return the number of arcs."""
    arcs = begin_lists(s, p)
    limit = limit_of_own(s, p)
    for k in range(s.constrained.shape[1]):
        if s.constrained[p, k] >= 0:
            take_own_box(s, p, k)
            # Spreading overwrites the box in hand.
            for w in range(s.work.box.shape[0]):
                s.work.entry[BOX + w] = s.work.box[w]
            spread(s, p, arcs, limit, s.work.entry, BOX)
    for e in range(s.table_count[p]):
        limit = forwarding_limit(s, p, s.table[p, e, SOURCE_IDENTIFIER])
        copy_row(s.table, p, e, s.work.entry)
        spread(s, p, arcs, limit, s.work.entry, BOX)
    return arcs


@rule
def on_install_timer(s: State, p: int, out: Outbox) -> None:
    """The periodic installation, where this round is one for it, and else heartbeats alone.

    Between turns what others ask for is passed on.
    """
    remove_expired(s, p)
    due = NOTHING
    if is_turn(s, p, s.round[p]) or s.rest[p, INSTALLS_SOON] == 1:
        due = what_to_install(s, p)
        if may_rest(s):
            s.rest[p, INSTALLS_SOON] = 0
    if due == EVERYTHING:
        install_everything(s, p, out)
    elif due == CHANGES:
        install_changes(s, p, out)
    elif due == HEARTBEATS:
        ask_the_silent(s, p, out)
    if s.alarm.shape[1] > 0 and s.alarm[p, SILENCE_IN] == s.round[p]:
        ask_everybody(s, p, out)


@rule
def install_everything(s: State, p: int, out: Outbox) -> None:
    """One aggregated message to every neighbour that is to have one.

    A neighbour that nothing is installed at hears from us where its answer is needed.
    """
    arcs = list_everything(s, p)
    for i in range(arcs):
        k = s.work.hops[i]
        to = handle_of_slot(s, p, k)
        answer = needs_answer(s, p, k)
        if s.work.counts[i] > 0 or answer:
            send_boxes(s, p, INSTALL, to, i * s.params.boxes, s.work.counts[i], answer, out)
        if answer:
            note_asked(s, p, k)
    clear_abandoned(s, p, arcs, out)
    note_installed(s, p, arcs)


@rule
def install_changes(s: State, p: int, out: Outbox) -> None:
    """A message to those neighbours at which something else is to be installed than last time.

    Of the others those are asked that have been silent for long.
    """
    arcs = list_everything(s, p)
    for i in range(arcs):
        k = s.work.hops[i]
        to = handle_of_slot(s, p, k)
        count = s.work.counts[i]
        first = i * s.params.boxes
        if count > 0 and not is_installed(s, p, to, digest_boxes(s, p, first, count)):
            answer = needs_answer(s, p, k)
            send_boxes(s, p, INSTALL, to, first, count, answer, out)
            if answer:
                note_asked(s, p, k)
        elif is_long_silent(s, p, k):
            ask(s, p, k, out)
    clear_abandoned(s, p, arcs, out)
    note_installed(s, p, arcs)


@rule
def greet_successor(s: State, p: int, out: Outbox) -> None:
    """Install at a new successor at once what belongs there.

    Goes beyond the paper. Its acknowledgement tells of anybody still in between, so that a peer
    whose successors all failed finds the next one alive within the round, as Chord stabilises.
    """
    arcs = list_everything(s, p)
    for i in range(arcs):
        if s.work.hops[i] == s.successor[p]:
            to = handle_of_slot(s, p, s.successor[p])
            send_boxes(s, p, INSTALL_NEWS, to, i * s.params.boxes, s.work.counts[i], 1, out)


@rule
def clear_abandoned(s: State, p: int, arcs: int, out: Outbox) -> None:
    """Tell peers at which nothing is installed any more to drop what was last round."""
    for i in range(s.installed_at.shape[1]):
        handle = s.installed_at[p, i]
        if handle < 0:
            continue
        if not is_served(s, p, arcs, handle):
            send_boxes(s, p, INSTALL, handle, 0, 0, 0, out)


@rule
def is_served(s: State, p: int, arcs: int, handle: int) -> bool:
    """Whether the lists hold a box for a neighbour."""
    for i in range(arcs):
        if s.work.counts[i] > 0 and handle_of_slot(s, p, s.work.hops[i]) == handle:
            return True
    return False


@rule
def forward_news(
    s: State, p: int, words: Words, first: int, count: int, source: int, limit: int, out: Outbox
) -> None:
    """Send on, at once, the boxes classified NEW."""
    size = s.work.box.shape[0]
    arcs = begin_lists(s, p)
    for i in range(count):
        if s.work.news[i] == NEW:
            spread(s, p, arcs, limit, words, first + i * size)
    for i in range(arcs):
        to = handle_of_slot(s, p, s.work.hops[i])
        if s.work.counts[i] > 0 and to != source:
            send_boxes(s, p, INSTALL_NEWS, to, i * s.params.boxes, s.work.counts[i], 0, out)


@rule
def collect_entries(s: State, p: int, source: int, own: int) -> int:
    """List the boxes of ``source`` in ``work.lists`` from ``own`` on; return their number.

    They are aggregated again: a handover may have brought more than a list holds.
    """
    count = 0
    for e in range(s.table_count[p]):
        if source_of(s, p, e) == source:
            for w in range(s.work.box.shape[0]):
                s.work.box[w] = s.table[p, e, BOX + w]
            count = aggregate(s, p, own, count)
    return count


@rule
def renew_entries(
    s: State,
    p: int,
    source: int,
    source_identifier: int,
    words: Words,
    first: int,
    count: int,
    rounds: int,
) -> bool:
    """Let the entries of ``source`` live on if they are just what it asks for again.

    The common case of a steady overlay, and a short cut of what `on_install` would do anyway.
    """
    size = s.work.box.shape[0]
    held = 0
    for e in range(s.table_count[p]):
        if source_of(s, p, e) != source:
            continue
        if held == count or is_handed_over(s, p, e):
            return False
        for w in range(size):
            if s.table[p, e, BOX + w] != words[first + held * size + w]:
                return False
        held += 1
    if held != count:
        return False
    for e in range(s.table_count[p]):
        if source_of(s, p, e) == source:
            s.owner[p, e] = fresh_owner(s, p, source, rounds)
            s.table[p, e, SOURCE_IDENTIFIER] = source_identifier
    return True


@rule
def on_install(s: State, p: int, _now: int, words: Words, at: int, out: Outbox) -> None:
    """Take in what a neighbour asks for: all of it (INSTALL), or more of it (INSTALL_NEWS)."""
    replaces = words[at + KIND] == INSTALL
    if not boxes_are_well_formed(s, p, words, at):
        return
    source = words[at + FROM]
    source_identifier = words[at + BODY + 1 + IDENTIFIER]
    refresh_link(s, p, words, at + BODY)
    head = head_words(s)
    size = s.work.box.shape[0]
    wants_answer = words[at + BODY + head - 2] & 1 != 0
    rounds = installed_rounds(s, words[at + BODY + head - 2] >> 1)
    count = words[at + BODY + head - 1]
    first = at + BODY + head
    if not replaces and count == 0:
        # A question whether we live.
        changes_nothing = True
    else:
        changes_nothing = replaces and renew_entries(
            s, p, source, source_identifier, words, first, count, rounds
        )
    if changes_nothing:
        if wants_answer:
            acknowledge(s, p, source, out)
        return
    unknown = classify_boxes(s, p, words, first, count, source)
    own = s.links.shape[1] * s.params.boxes
    held = 0
    if not replaces:
        held = collect_entries(s, p, source, own)
    for i in range(count):
        for w in range(size):
            s.work.box[w] = words[first + i * size + w]
        held = aggregate(s, p, own, held)
    if replaces or unknown > 0:
        replace_source(s, p, source, source_identifier, s.work.lists, own, held, rounds)
    if wants_answer:
        acknowledge(s, p, source, out)
    if unknown > 0:
        if s.params.cascade == 1:
            limit = forwarding_limit(s, p, source_identifier)
            forward_news(s, p, words, first, count, source, limit, out)
        offer_events(s, p, words, first, count, source, out)


@rule
def acknowledge(s: State, p: int, to: int, out: Outbox) -> None:
    """Answer a heartbeat with the own descriptor and that of the predecessor, if there is one.

    The predecessor lets a peer that took us for its successor see who is in between.
    """
    size = descriptor_words(s)
    at = open_record(out, ACKNOWLEDGE, to, s.sampler.handle[p], 2 * size)
    if at < 0:
        return
    write_own_descriptor(s, p, out.words, at + BODY)
    length = size
    k = s.predecessor[p]
    if k >= 0 and handle_of_slot(s, p, k) != to:
        write_link(s, p, k, out.words, at + BODY + size)
        length = 2 * size
    close_record(out, at, length)


@rule
def mend_view(s: State, p: int, source: int, strayed: bool, out: Outbox) -> None:
    """Tell ``source``, if there is one, where ``p`` stands, if it sent here what is a stray."""
    if source >= 0 and strayed:
        acknowledge(s, p, source, out)


@rule
def on_acknowledge(s: State, p: int, _now: int, words: Words, at: int, _out: Outbox) -> None:
    """A neighbour lives; take in its profile, and its predecessor as a candidate for the ring."""
    size = descriptor_words(s)
    length = words[at + LENGTH]
    if length != BODY + size and length != BODY + 2 * size:
        s.counters[p, MALFORMED] += 1
        return
    refresh_link(s, p, words, at + BODY)
    if length == BODY + 2 * size:
        refresh_link(s, p, words, at + BODY + size)


@rule
def reinstall_elsewhere(s: State, p: int, _now: int, words: Words, at: int, out: Outbox) -> None:
    """Send the boxes of an undeliverable record through the neighbours that are left."""
    if s.params.reroute == 0:
        return
    head = head_words(s)
    count = words[at + BODY + head - 1]
    first = at + BODY + head
    for i in range(count):
        s.work.news[i] = NEW
    forward_news(s, p, words, first, count, words[at + TO], limit_of_own(s, p), out)
