"""Finding what was missed by comparing: who holds what with whom, and who got what.

Goes beyond the paper: anti-entropy (Demers et al., 1987), by ranges of hashes (Meyer, 2023). Two
promises are kept so, whatever broke them:

- what is held is held by the rendezvous node of now and its successors. A peer compares its own arc
  with each of them, and offers what it holds for nobody any more to whom that belongs to;
- who wants an event that is held has it. A peer compares what its application got, subscription by
  subscription, with the rendezvous nodes along the arc of the subscription.

These are the tasks of a pass. It is made soon after anything near the peer changed, and again after
pauses that double, up to `LONGEST_REST`; where something was missing, soon again. Nobody remembers
who was away, for how long, or why.

A question is about a part of the ring, and is answered by one peer: by `event_log.sum_up` of it.
Where that differs, the sums of its sixteenths are asked for, and so on, until a range has so few
copies that they are listed. What a subscriber or holder lacks of these it is given, then it asks
on: nobody gets more at a time than it asks for. Answers need no memory, and a question that is not
answered is asked again.

A part is compared for the rounds for which both logs are whole. Where that is less than is wanted,
it is compared once more, all of these rounds of the classes of publishers that are whole in both.
"""

from __future__ import annotations

from typing import Any

from gossamer.protocol.kernel.draws import mix
from gossamer.protocol.kernel.records import BODY, Outbox, close_record, open_record
from gossamer.protocol.kernel.rules import inline_rule, rule
from gossamer.protocol.peer.record_table.records import (
    ALL_CLASSES,
    ASKER,
    BY_CLASS,
    COMPARE,
    COMPARE_PROGRESS,
    COMPARED_BOX,
    COMPARED_CLASSES,
    COMPARED_FROM,
    COMPARED_LEVEL,
    COMPARED_PART,
    COMPARED_PREFIX,
    COMPARED_ROUNDS,
    COMPARED_SALT,
    COMPARED_TO,
    IS_FOUND,
    LEVELS,
    PARTS,
    QUESTION_ASKED,
)
from gossamer.protocol.peer.recovery.held_copies import deliver_own, next_stray
from gossamer.protocol.peer.recovery.occasions import SOON
from gossamer.protocol.peer.rendezvous.event_log import whole_classes, whole_rounds
from gossamer.protocol.peer.rendezvous.installation_boxes import take_own_box
from gossamer.protocol.peer.rendezvous.publication import NOBODY
from gossamer.protocol.peer.settings.profile import IDENTIFIER
from gossamer.protocol.peer.space.ring import RING_MASK, clockwise
from gossamer.protocol.peer.state.event_logs import (
    ANSWERER,
    ASKED_IN,
    CLASSES,
    DIFFERING,
    ENDS_AT,
    IS_WHOLE,
    LACKED,
    LEVEL,
    NEXT_AT,
    PART_FROM,
    PART_TO,
    PREFIX,
    QUESTION,
    QUESTIONS,
    REST,
    SALT,
    SINCE,
    TASK,
    TRIES,
    UNANSWERED,
    WANTED_SINCE,
)
from gossamer.protocol.peer.state.links import is_off_ring
from gossamer.protocol.peer.state.lookup import (
    end_of_arc,
    handle_of_slot,
    next_hop,
    own_arc_begins,
    rendezvous_value,
)
from gossamer.protocol.peer.state.state import State

# The longest pause between two passes, in rounds.
LONGEST_REST = 1024
# Rounds without an answer after which a question is asked again, how often that is done until the
# first of a pass is left without an answer, and how many a peer asks in a round.
ASK_AGAIN_ROUNDS, MOST_TRIES, MOST_QUESTIONS = 2, 3, 32
# A pause after which who has not answered is not waited for any more.
PATIENT_ROUNDS = 8 * SOON
# Questions beside the number of sums asked for: which copies there are; and what is waited for
# after that: those that were lacking, or which of those offered are.
WHICH, WAITS_FOR_LACKING, WAITS_FOR_WANTED = 0, -1, -2
NEVER = 1 << 62
HELD_BACK = -1


# When


@rule
def compare_on(s: State, p: int, out: Outbox) -> None:
    """Once a round: begin a pass that is due, or ask again what was not answered."""
    c = s.comparison
    if c.shape[1] == 0:
        return
    c[p, QUESTIONS] = 0
    if c[p, TASK] >= 0:
        if c[p, ASKED_IN] + ASK_AGAIN_ROUNDS <= s.round[p]:
            ask_again(s, p, out)
    elif c[p, NEXT_AT] <= s.round[p]:
        c[p, NEXT_AT] = NEVER
        c[p, LACKED] = 0
        c[p, UNANSWERED] = 0
        c[p, SALT] = mix(s.sampler.key[p], s.round[p], 0)
        begin_task(s, p, 0)
        ask_on(s, p, out)


@rule
def end_pass(s: State, p: int) -> None:
    """Rest, for longer and longer while nothing is missing."""
    c = s.comparison
    c[p, TASK] = -1
    if c[p, LACKED] > 0:
        c[p, IS_WHOLE] = 0
        c[p, REST] = SOON
    elif has_asked(s, p):
        c[p, IS_WHOLE] = 1
    if c[p, NEXT_AT] == NEVER:
        c[p, NEXT_AT] = s.round[p] + c[p, REST]
        c[p, REST] = min(2 * c[p, REST], LONGEST_REST)


@rule
def has_asked(s: State, p: int) -> bool:
    """Whether ``p`` has asked all whom it could: nothing more that can be had is missing."""
    knows_others = s.successor[p] >= 0 or is_off_ring(s, p)
    is_answered = s.comparison[p, UNANSWERED] == 0 or s.comparison[p, REST] >= PATIENT_ROUNDS
    return bool(knows_others and is_answered)


# What with whom: tasks number the successors first, then what has strayed, then subscriptions.


@rule
def begin_task(s: State, p: int, task: int) -> None:
    """Begin the first task from this one on for which there is something to compare, or rest."""
    last = s.params.replicas + s.constrained.shape[1]
    while task <= last and not find_part(s, p, task):
        task += 1
    if task > last:
        end_pass(s, p)
    else:
        s.comparison[p, TASK] = task


@rule
def find_part(s: State, p: int, task: int) -> bool:
    """Write down which part of the ring a task is about; False if there is none."""
    c = s.comparison
    c[p, WANTED_SINCE] = s.round[p] - s.params.retention_rounds
    if task > s.params.replicas:
        return find_subscription(s, p, task - s.params.replicas - 1)
    if s.held.copies.shape[1] == 0:
        return False
    begin_part(s, p, whole_rounds(s, s.held, p, s.params.retention_rounds))
    me = s.sampler.profile[p, IDENTIFIER] & RING_MASK
    if task == s.params.replicas:
        if c[p, TASK] != task:
            c[p, PART_FROM] = (me + 1) & RING_MASK
            c[p, PART_TO] = me
        return find_stray(s, p)
    k = nth_successor(s, p, task)
    if k < 0 or s.predecessor[p] < 0 or is_off_ring(s, p):
        return False
    c[p, PART_FROM] = (me + own_arc_begins(s, p) + 1) & RING_MASK
    c[p, PART_TO] = me
    c[p, ENDS_AT] = me
    c[p, ANSWERER] = handle_of_slot(s, p, k)
    return True


@rule
def begin_part(s: State, p: int, whole: int) -> None:
    """Let whoever answers for the rest of a part be found anew.

    What made room is not asked for again: the log that is compared is ``whole`` for so many rounds.
    """
    c = s.comparison
    c[p, ANSWERER] = NOBODY
    c[p, ENDS_AT] = NOBODY
    c[p, TRIES] = 0
    c[p, CLASSES] = ALL_CLASSES
    c[p, SINCE] = s.round[p] - whole
    begin_ranges(s, p)


@rule
def begin_by_class(s: State, p: int) -> bool:
    """Compare a part once more, by class, if not all that is wanted was compared."""
    c = s.comparison
    if c[p, CLASSES] & BY_CLASS != 0 or c[p, SINCE] <= c[p, WANTED_SINCE]:
        return False
    rounds = s.round[p] - c[p, WANTED_SINCE]
    if c[p, TASK] > s.params.replicas:
        c[p, CLASSES] = BY_CLASS | whole_classes(s, s.got, p, rounds)
    else:
        c[p, CLASSES] = BY_CLASS | whole_classes(s, s.held, p, rounds)
    c[p, SINCE] = c[p, WANTED_SINCE]
    begin_ranges(s, p)
    return bool(c[p, CLASSES] != BY_CLASS)


@rule
def begin_ranges(s: State, p: int) -> None:
    """Let all hashes be compared."""
    c = s.comparison
    c[p, LEVEL] = 0
    c[p, PREFIX] = 0
    c[p, QUESTION] = 1


@rule
def find_subscription(s: State, p: int, k: int) -> bool:
    """Let the part be the arc of subscription ``k``, since it is in force."""
    if s.constrained[p, k] < 0:
        return False
    c = s.comparison
    take_own_box(s, p, k)
    attribute = s.work.box[0]
    c[p, PART_FROM] = rendezvous_value(s, attribute, s.work.box[1 + 2 * attribute])
    c[p, PART_TO] = rendezvous_value(s, attribute, s.work.box[2 + 2 * attribute])
    c[p, WANTED_SINCE] = max(c[p, WANTED_SINCE], s.wanted_since[p, k] - 1)
    begin_part(s, p, whole_rounds(s, s.got, p, s.round[p] - c[p, WANTED_SINCE]))
    return True


@rule
def find_stray(s: State, p: int) -> bool:
    """Let what is left of the ring begin at a copy that ``p`` does not hold for anybody."""
    c = s.comparison
    value = next_stray(s, p, c[p, PART_FROM], c[p, PART_TO])
    if value >= 0:
        c[p, PART_FROM] = value
    return bool(value >= 0)


@rule
def nth_successor(s: State, p: int, n: int) -> int:
    """The link slot of the first peer after ``p`` that ``n`` others stand before, or -1."""
    me = s.sampler.profile[p, IDENTIFIER]
    for k in range(s.links.shape[1]):
        if s.links[p, k] >= 0:
            nearer = 0
            away = clockwise(me, s.link_profile[p, k, IDENTIFIER])
            for other in range(s.links.shape[1]):
                distance = clockwise(me, s.link_profile[p, other, IDENTIFIER])
                nearer += s.links[p, other] >= 0 and distance < away
            if nearer == n:
                return k
    return -1


@rule
def end_part(s: State, p: int, end: int) -> None:
    """All up to ``end`` is compared, but perhaps by class: go on after it."""
    if s.comparison[p, TASK] == s.params.replicas or not begin_by_class(s, p):
        go_on_after(s, p, end)


@rule
def go_on_after(s: State, p: int, end: int) -> None:
    """Turn to what is left of the part after ``end``, or to the next task."""
    c = s.comparison
    start = c[p, PART_FROM]
    if clockwise(start, end) >= clockwise(start, c[p, PART_TO]):
        begin_task(s, p, c[p, TASK] + 1)
        return
    c[p, PART_FROM] = (end + 1) & RING_MASK
    if c[p, TASK] == s.params.replicas:
        begin_task(s, p, c[p, TASK])
    else:
        begin_part(s, p, whole_rounds(s, s.got, p, s.round[p] - c[p, WANTED_SINCE]))


# Asking


@rule
def ask_on(s: State, p: int, out: Outbox) -> None:
    """Ask what comes next, until there is somebody to ask; ``p`` itself answers for its own arc."""
    c = s.comparison
    while c[p, TASK] >= 0:
        if c[p, ANSWERER] >= 0:
            send_question(s, p, c[p, ANSWERER], 1, out)
            return
        hop = next_hop(s, p, c[p, PART_FROM])
        if hop >= 0:
            send_question(s, p, handle_of_slot(s, p, hop >> 1), 0, out)
            return
        if c[p, TASK] > s.params.replicas:
            write_own_part(s, p)
            if not deliver_own(s, p, s.work.part, out):
                c[p, ASKED_IN] = HELD_BACK
                return
        if s.successor[p] < 0:
            begin_task(s, p, c[p, TASK] + 1)
        else:
            end_part(s, p, s.sampler.profile[p, IDENTIFIER] & RING_MASK)


@rule
def ask_again(s: State, p: int, out: Outbox) -> None:
    """Ask what was held back; find anew who has not answered, and leave its arc out in the end."""
    c = s.comparison
    if c[p, ASKED_IN] != HELD_BACK:
        c[p, TRIES] += 1
        if c[p, TRIES] > MOST_TRIES or c[p, UNANSWERED] == 1:
            c[p, UNANSWERED] = 1
            arc_ends = c[p, ENDS_AT] if c[p, ENDS_AT] >= 0 else end_of_arc(s, p, c[p, PART_FROM])
            go_on_after(s, p, arc_ends)
        else:
            begin_ranges(s, p)
            if c[p, TASK] >= s.params.replicas:
                c[p, ANSWERER] = NOBODY
                c[p, ENDS_AT] = NOBODY
    ask_on(s, p, out)


@rule
def write_part(s: State, p: int) -> None:
    """Write to ``work.part`` what is asked about, as a question has it."""
    c = s.comparison
    part = s.work.part
    part[COMPARED_FROM] = c[p, PART_FROM]
    part[COMPARED_TO] = c[p, PART_TO] if c[p, ENDS_AT] < 0 else c[p, ENDS_AT]
    part[COMPARED_ROUNDS] = max(0, s.round[p] - c[p, SINCE])
    part[COMPARED_CLASSES] = c[p, CLASSES]
    part[COMPARED_LEVEL] = c[p, LEVEL]
    part[COMPARED_PREFIX] = c[p, PREFIX]
    part[COMPARED_SALT] = c[p, SALT]
    box = COMPARED_BOX
    if c[p, TASK] > s.params.replicas:
        take_own_box(s, p, c[p, TASK] - s.params.replicas - 1)
        for w in range(s.work.box.shape[0]):
            part[box + w] = s.work.box[w]
        return
    part[box] = -1
    for a in range(s.params.attributes):
        part[box + 1 + 2 * a] = 0
        part[box + 2 + 2 * a] = RING_MASK


@rule
def write_own_part(s: State, p: int) -> None:
    """Write what is left of a part to ``work.part``, as far as ``p`` answers for it."""
    write_part(s, p)
    part = s.work.part
    me = s.sampler.profile[p, IDENTIFIER]
    start = part[COMPARED_FROM]
    if s.successor[p] >= 0 and clockwise(start, me) < clockwise(start, part[COMPARED_TO]):
        part[COMPARED_TO] = me


@inline_rule
def part_words(s: State) -> Any:
    """How many words say what is asked about."""
    return COMPARED_BOX + s.work.box.shape[0]


@rule
def send_question(s: State, p: int, to: int, is_found: int, out: Outbox) -> None:
    """Ask a peer, or somebody on the way to it; in the next round if it was enough for this."""
    c = s.comparison
    if c[p, QUESTIONS] >= MOST_QUESTIONS:
        c[p, ASKED_IN] = HELD_BACK
        return
    c[p, QUESTIONS] += 1
    c[p, ASKED_IN] = s.round[p]
    write_part(s, p)
    size = COMPARED_PART + part_words(s)
    at = open_record(out, COMPARE, to, s.sampler.handle[p], size)
    if at < 0:
        return
    body = at + BODY
    out.words[body + ASKER] = s.sampler.handle[p]
    out.words[body + COMPARE_PROGRESS] = 0
    out.words[body + IS_FOUND] = is_found
    out.words[body + QUESTION_ASKED] = c[p, QUESTION]
    for w in range(part_words(s)):
        out.words[body + COMPARED_PART + w] = s.work.part[w]
    close_record(out, at, size)


# Ranges of hashes


@rule
def note_differing(s: State, p: int, level: int, theirs: Any, at: int) -> None:
    """Note which sixteenths differ: those of ``work.sums`` and those at ``theirs[at:]``."""
    differing = 0
    for part in range(PARTS if level < LEVELS else 0):
        same = (
            s.work.sums[2 * part] == theirs[at + 2 * part]
            and s.work.sums[2 * part + 1] == theirs[at + 2 * part + 1]
        )
        differing |= (not same) << part
    if level < LEVELS:
        s.comparison[p, DIFFERING + level] = differing


@rule
def take_range(s: State, p: int, level: int, prefix: int) -> bool:
    """Let the first sixteenth that differs of this range be the next; False if there is none."""
    c = s.comparison
    differing = c[p, DIFFERING + level] if level < LEVELS else 0
    if differing == 0:
        return False
    part = 0
    while (differing >> part) & 1 == 0:
        part += 1
    c[p, DIFFERING + level] = differing & ~(1 << part)
    c[p, LEVEL] = level + 1
    c[p, PREFIX] = prefix << 4 | part
    c[p, QUESTION] = WHICH
    c[p, TRIES] = 0
    return True


@rule
def end_range(s: State, p: int) -> None:
    """The range in hand is the same on both sides: take the next that differs, or end the part."""
    c = s.comparison
    level = c[p, LEVEL]
    prefix = c[p, PREFIX]
    while level > 0:
        level -= 1
        prefix >>= 4
        if take_range(s, p, level, prefix):
            return
    end_part(s, p, c[p, ENDS_AT])
