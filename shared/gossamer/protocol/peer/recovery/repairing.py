"""Answering comparisons, and giving what was lacking (see `comparing`)."""

from __future__ import annotations

from gossamer.protocol.kernel.records import (
    BODY,
    FROM,
    LENGTH,
    Outbox,
    Words,
    close_record,
    drop_record,
    open_record,
)
from gossamer.protocol.kernel.rows.hash_chains import place_in_ring
from gossamer.protocol.kernel.rows.row_search import copy_words, find_boxes
from gossamer.protocol.kernel.rules import rule
from gossamer.protocol.peer.record_table.records import (
    COMPARED_CLASSES,
    COMPARED_FROM,
    COMPARED_LEVEL,
    COMPARED_PREFIX,
    COMPARED_ROUNDS,
    COMPARED_SALT,
    COMPARED_TO,
    EVENT_AGE,
    EVENT_ATTRIBUTE,
    EVENT_HOPS,
    EVENT_ID,
    EVENT_MODE,
    EVENT_ORIGIN,
    EVENT_TREE_HOPS,
    EVENT_VALUES,
    FINAL,
    GREEDY,
    LACKING,
    LISTED,
    LISTED_AT_ONCE,
    LISTED_COPIES,
    LONGEST_PREFIX,
    PARTS,
    REPAIRED,
    SUMS,
    TREE,
)
from gossamer.protocol.peer.recovery.answering import (
    LISTED_AGE,
    LISTED_COPY,
    LISTED_VALUES,
    tell_sums,
    write_listed,
)
from gossamer.protocol.peer.recovery.comparing import (
    MOST_TRIES,
    WAITS_FOR_LACKING,
    WAITS_FOR_WANTED,
    WHICH,
    ask_on,
    begin_task,
    end_range,
    note_differing,
    take_range,
    write_part,
)
from gossamer.protocol.peer.recovery.held_copies import find_strays
from gossamer.protocol.peer.recovery.occasions import miss_something
from gossamer.protocol.peer.rendezvous.delivery import deliver, event_is_well_formed, find_askers
from gossamer.protocol.peer.rendezvous.event_log import (
    TAKEN_OUT,
    all_sums,
    find_compared,
    hash_of,
    hold,
    is_held_for,
    note_got,
    place_in_log,
    sum_up,
    take_out,
    was_delivered,
)
from gossamer.protocol.peer.rendezvous.publication import NOBODY
from gossamer.protocol.peer.rendezvous.replay import has_seen, remember
from gossamer.protocol.peer.space.ring import RING_MASK
from gossamer.protocol.peer.state.event_logs import (
    ANSWERER,
    ASKED_IN,
    CLASSES,
    ENDS_AT,
    LACKED,
    LEVEL,
    PART_FROM,
    PREFIX,
    QUESTION,
    SALT,
    SINCE,
    TASK,
    TRIES,
)
from gossamer.protocol.peer.state.lookup import rendezvous_value
from gossamer.protocol.peer.state.state import MALFORMED, REPAIRS_TAKEN, State

# Who asks


@rule
def is_awaited(s: State, p: int, words: Words, at: int, question: int) -> bool:
    """Whether the answer at ``words[at:]`` is to what ``p`` asked last, and that was this."""
    c = s.comparison
    if c.shape[1] == 0 or c[p, TASK] < 0 or c[p, QUESTION] != question:
        return False
    body = at + BODY
    return bool(
        words[body + COMPARED_FROM] == c[p, PART_FROM]
        and words[body + COMPARED_LEVEL] == c[p, LEVEL]
        and words[body + COMPARED_PREFIX] == c[p, PREFIX]
        and (c[p, ANSWERER] < 0 or c[p, ANSWERER] == words[at + FROM])
    )


@rule
def on_compared(s: State, p: int, _now: int, words: Words, at: int, out: Outbox) -> None:
    """Look closer where sums differ, and go on where they do not."""
    body = at + BODY
    parts = words[body + SUMS] if words[at + LENGTH] > BODY + SUMS else -1
    if (
        not (parts == 0 or parts == 1 or parts == PARTS)
        or words[at + LENGTH] != BODY + SUMS + 1 + 2 * parts
        or words[body + COMPARED_ROUNDS] < 0
        or words[body + COMPARED_CLASSES] < 0
    ):
        s.counters[p, MALFORMED] += 1
        return
    c = s.comparison
    if parts == 0:
        if is_awaited(s, p, words, at, WAITS_FOR_LACKING):
            end_range(s, p)
            ask_on(s, p, out)
        return
    if not is_awaited(s, p, words, at, parts) and not (
        parts == PARTS and is_awaited(s, p, words, at, WHICH)
    ):
        return
    c[p, ANSWERER] = words[at + FROM]
    c[p, ENDS_AT] = words[body + COMPARED_TO] & RING_MASK
    c[p, SINCE] = max(c[p, SINCE], s.round[p] - words[body + COMPARED_ROUNDS])
    c[p, CLASSES] &= words[body + COMPARED_CLASSES]
    c[p, TRIES] = 0
    if c[p, TASK] == s.params.replicas:
        offer_strays(s, p, out)
        return
    look_closer(s, p, parts, words, body + SUMS + 1)
    ask_on(s, p, out)


@rule
def look_closer(s: State, p: int, parts: int, words: Words, theirs: int) -> None:
    """Choose the next question: about a part of what differs, or about what comes after it."""
    c = s.comparison
    write_part(s, p)
    if c[p, TASK] > s.params.replicas:
        sum_up(s, s.got, p, True, s.work.part, 0)
    else:
        sum_up(s, s.held, p, False, s.work.part, 0)
    if parts == PARTS:
        note_differing(s, p, c[p, LEVEL], words, theirs)
        if not take_range(s, p, c[p, LEVEL], c[p, PREFIX]):
            end_range(s, p)
        return
    ours = all_sums(s, 0)
    if ours == words[theirs] and all_sums(s, 1) == words[theirs + 1]:
        end_range(s, p)
    elif max(ours, words[theirs]) <= LISTED_AT_ONCE:
        c[p, QUESTION] = WHICH
    else:
        c[p, QUESTION] = PARTS


@rule
def on_listed(s: State, p: int, _now: int, words: Words, at: int, out: Outbox) -> None:
    """Ask for those that are lacking here, and give those that are lacking there.

    A list that was not asked for is an offer of what has strayed.
    """
    size = LISTED_VALUES + s.params.attributes
    first = at + BODY + LISTED_COPIES + 1
    count = words[first - 1] if words[at + LENGTH] > BODY + LISTED_COPIES else -1
    if count < 0 or count > LISTED_AT_ONCE or words[at + LENGTH] != first - at + count * size:
        s.counters[p, MALFORMED] += 1
        return
    is_offer = not is_awaited(s, p, words, at, WHICH)
    if is_offer and s.held.copies.shape[1] == 0:
        return
    lacking = 0
    reply = open_lacking(s, p, words, at, count, out)
    if reply < 0:
        return
    for i in range(count):
        if is_lacking(s, p, is_offer, words, first + i * size):
            out.words[reply + BODY + LISTED_COPIES + 1 + lacking] = words[first + i * size]
            lacking += 1
    if is_offer or lacking > 0:
        close_lacking(out, reply, lacking)
    else:
        drop_record(out, reply)
    if is_offer:
        return
    c = s.comparison
    c[p, TRIES] = 0
    if c[p, TASK] < s.params.replicas:
        give_unlisted(s, p, words, at, first, count, out)
    if lacking > 0:
        c[p, QUESTION] = WAITS_FOR_LACKING
        c[p, ASKED_IN] = s.round[p]
    else:
        end_range(s, p)
        ask_on(s, p, out)


@rule
def open_lacking(s: State, p: int, words: Words, at: int, most: int, out: Outbox) -> int:
    """Begin to ask whose list stands at ``words[at:]`` for some of it; -1 without room."""
    size = LISTED_COPIES + 1 + most
    reply = open_record(out, LACKING, words[at + FROM], s.sampler.handle[p], size)
    if reply >= 0:
        copy_words(words, at + BODY, LISTED_COPIES, out.words, reply + BODY)
    return reply


@rule
def close_lacking(out: Outbox, at: int, count: int) -> None:
    """Finish a record that asks for so many copies."""
    out.words[at + BODY + LISTED_COPIES] = count
    close_record(out, at, LISTED_COPIES + 1 + count)


@rule
def is_lacking(s: State, p: int, to_hold: bool, words: Words, at: int) -> bool:
    """Whether a copy that is listed at ``words[at:]`` is lacking here.

    What an application is known to have got, by its number alone, is noted with its values.
    """
    copy = words[at + LISTED_COPY]
    if copy < 0 or words[at + LISTED_AGE] < 0:
        return False
    if to_hold or s.comparison[p, TASK] < s.params.replicas:
        return bool(place_in_log(s.held, p, copy) < 0)
    event = copy // s.params.attributes
    if place_in_log(s.got, p, event * s.params.attributes) >= 0:
        return False
    if was_delivered(s, p, event):
        note_got(s, p, event, words[at + LISTED_AGE], words, at + LISTED_VALUES)
        return False
    return True


@rule
def give_unlisted(
    s: State, p: int, words: Words, at: int, first: int, count: int, out: Outbox
) -> None:
    """Give the other side those of the range in hand that it has not listed."""
    size = LISTED_VALUES + s.params.attributes
    write_part(s, p)
    for found in range(find_compared(s, s.held, p, False, s.work.part, 0, LISTED_AT_ONCE)):
        place = s.work.compared[found]
        listed = False
        for i in range(count):
            listed |= words[first + i * size] == s.held.copies[p, place]
        if not listed:
            give(s, p, place, FINAL, words[at + FROM], out)


@rule
def give(s: State, p: int, place: int, mode: int, to: int, out: Outbox) -> None:
    """Send a copy that is held: for its receiver itself, or as `FINAL` for it to hold."""
    attributes = s.params.attributes
    at = open_record(out, REPAIRED, to, s.sampler.handle[p], EVENT_VALUES + attributes)
    if at < 0:
        return
    body = at + BODY
    out.words[body + EVENT_ID] = s.held.copies[p, place] // attributes
    out.words[body + EVENT_ATTRIBUTE] = s.held.copies[p, place] % attributes
    out.words[body + EVENT_MODE] = mode
    out.words[body + EVENT_AGE] = max(0, s.round[p] - s.held.rounds[p, place])
    out.words[body + EVENT_TREE_HOPS] = 1
    out.words[body + EVENT_ORIGIN] = NOBODY
    for a in range(attributes):
        out.words[body + EVENT_VALUES + a] = s.held.values[p, place, a]
    close_record(out, at, EVENT_VALUES + attributes)


@rule
def on_lacking(s: State, p: int, _now: int, words: Words, at: int, out: Outbox) -> None:
    """Give what is lacking; then whoever asked goes on, and so does ``p`` if it had offered it."""
    first = at + BODY + LISTED_COPIES + 1
    count = words[first - 1] if words[at + LENGTH] > BODY + LISTED_COPIES else -1
    if count < 0 or count > LISTED_AT_ONCE or words[at + LENGTH] != first - at + count:
        s.counters[p, MALFORMED] += 1
        return
    offered = is_awaited(s, p, words, at, WAITS_FOR_WANTED)
    for i in range(count):
        place = place_in_log(s.held, p, words[first + i])
        if place >= 0:
            give(s, p, place, FINAL if offered else GREEDY, words[at + FROM], out)
    if not offered:
        tell_sums(s, p, words[at + FROM], 0, words, at + BODY, out)
        return
    c = s.comparison
    strays = find_offered(s, p)
    if count == 0 and name_offer(s, p, strays) == c[p, PREFIX]:
        for i in range(strays):
            take_out(s, s.held, p, s.work.compared[i])
        begin_task(s, p, c[p, TASK])
        ask_on(s, p, out)
    elif c[p, TRIES] < MOST_TRIES:
        # Once more: what is not lacking then has arrived. What has strayed since is in it, too.
        c[p, TRIES] += 1
        offer_strays(s, p, out)


@rule
def offer_strays(s: State, p: int, out: Outbox) -> None:
    """List the first of what is held for nobody, to whom that belongs."""
    c = s.comparison
    size = LISTED_VALUES + s.params.attributes
    count = find_offered(s, p)
    if count == 0:
        begin_task(s, p, c[p, TASK])
        ask_on(s, p, out)
        return
    c[p, PREFIX] = name_offer(s, p, count)
    write_part(s, p)
    most = LISTED_COPIES + 1 + count * size
    at = open_record(out, LISTED, c[p, ANSWERER], s.sampler.handle[p], most)
    if at < 0:
        return
    copy_words(s.work.part, 0, COMPARED_SALT, out.words, at + BODY)
    first = at + BODY + LISTED_COPIES + 1
    for i in range(count):
        write_listed(s, p, s.work.compared[i], out, first + i * size)
    out.words[first - 1] = count
    close_record(out, at, most)
    c[p, QUESTION] = WAITS_FOR_WANTED
    c[p, ASKED_IN] = s.round[p]


@rule
def find_offered(s: State, p: int) -> int:
    """Write to ``work.compared`` the first strays of the part in hand; return how many."""
    c = s.comparison
    return find_strays(s, p, c[p, PART_FROM], c[p, ENDS_AT], LISTED_AT_ONCE)


@rule
def name_offer(s: State, p: int, count: int) -> int:
    """What an offer of so many copies in ``work.compared`` is called by, in place of a prefix.

    An answer brings it back. Copies may grow old enough meanwhile, or stray: these were not in it.
    """
    name = 0
    for i in range(count):
        copy = s.held.copies[p, s.work.compared[i]]
        name = (name + hash_of(copy, s.comparison[p, SALT])) & LONGEST_PREFIX
    return name


# Who lacked something


@rule
def lack(s: State, p: int, event: int) -> None:
    """The host could not hand an event to the application after all: it is to come again."""
    place = place_in_log(s.got, p, event * s.params.attributes)
    if place >= 0:
        take_out(s, s.got, p, place)
    ring = place_in_ring(
        s.delivered, s.delivered_heads, s.delivered_older, p, s.delivered_next[p], event
    )
    if ring >= 0:
        s.delivered[p, ring] = TAKEN_OUT
    miss_something(s, p)


@rule
def wanted_then(s: State, p: int, words: Words, at: int, age: int) -> bool:
    """Whether a subscription that was in force so many rounds ago asks for these values."""
    found = s.work.found
    count = s.constrained.shape[1]
    size = s.params.attributes
    for i in range(find_boxes(s, s.subscriptions, p, count, 0, words, at, size, found)):
        k = found[i]
        # Rounds of different peers begin at different moments.
        if s.constrained[p, k] >= 0 and s.wanted_since[p, k] <= s.round[p] - age + 1:
            return True
    return False


@rule
def on_repaired(s: State, p: int, _now: int, words: Words, at: int, out: Outbox) -> None:
    """Take a copy that was lacking here: to deliver, to hold, or both.

    What is held goes down the tree as well: those who asked here lack it, too, without knowing.
    """
    if not event_is_well_formed(s, p, words, at) or s.comparison.shape[1] == 0:
        return
    body = at + BODY
    age = words[body + EVENT_AGE]
    mode = words[body + EVENT_MODE]
    attribute = words[body + EVENT_ATTRIBUTE]
    value = rendezvous_value(s, attribute, words[body + EVENT_VALUES + attribute])
    to_hold = mode == FINAL or is_held_for(s, p, value)
    note_repair(s, p, words, body)
    if to_hold or mode == TREE:
        pass_down(s, p, words[at + FROM], words, body, out)
    if to_hold:
        hold(s, p, words, body, age, out)
    words[body + EVENT_HOPS] = 1
    if wanted_then(s, p, words, body + EVENT_VALUES, age):
        deliver(s, p, words, body, 0, age, out)


@rule
def note_repair(s: State, p: int, words: Words, body: int) -> None:
    """Count a copy that really was lacking: there may be more of them."""
    event = words[body + EVENT_ID]
    copy = event * s.params.attributes + words[body + EVENT_ATTRIBUTE]
    is_got = place_in_log(s.got, p, event * s.params.attributes) >= 0
    if not is_got and place_in_log(s.held, p, copy) < 0:
        s.counters[p, REPAIRS_TAKEN] += 1
        s.comparison[p, LACKED] += 1


@rule
def pass_down(s: State, p: int, source: int, words: Words, body: int, out: Outbox) -> None:
    """Send a copy that was lacking, unless it was here, to all who asked for it."""
    copy = words[body + EVENT_ID] * s.params.attributes + words[body + EVENT_ATTRIBUTE]
    if has_seen(s, p, copy):
        return
    remember(s, p, copy, 1 << 32 | 1, words, body + EVENT_VALUES)
    size = EVENT_VALUES + s.params.attributes
    for t in range(find_askers(s, p, source, words, body)):
        at = open_record(out, REPAIRED, s.work.told[t], s.sampler.handle[p], size)
        if at < 0:
            return
        copy_words(words, body, size, out.words, at + BODY)
        out.words[at + BODY + EVENT_MODE] = TREE
        close_record(out, at, size)
