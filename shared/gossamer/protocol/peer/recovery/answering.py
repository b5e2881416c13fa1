"""Answering what a peer has, which needs no memory of who asked what (see `comparing`)."""

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
from gossamer.protocol.kernel.rows.row_search import copy_words
from gossamer.protocol.kernel.rules import inline_rule, rule
from gossamer.protocol.peer.record_table.records import (
    ASKER,
    BY_CLASS,
    COMPARE,
    COMPARE_PROGRESS,
    COMPARED,
    COMPARED_BOX,
    COMPARED_CLASSES,
    COMPARED_FROM,
    COMPARED_LEVEL,
    COMPARED_PART,
    COMPARED_ROUNDS,
    COMPARED_SALT,
    COMPARED_TO,
    IS_FOUND,
    LEVELS,
    LISTED,
    LISTED_AT_ONCE,
    LISTED_COPIES,
    PARTS,
    QUESTION_ANSWERED,
    QUESTION_ASKED,
    SUMS,
)
from gossamer.protocol.peer.recovery.comparing import (
    WHICH,
    part_words,
)
from gossamer.protocol.peer.rendezvous.event_log import (
    all_sums,
    find_compared,
    sum_up,
    whole_classes,
    whole_rounds,
)
from gossamer.protocol.peer.rendezvous.installation import mend_view
from gossamer.protocol.peer.settings.profile import IDENTIFIER
from gossamer.protocol.peer.space.ring import clockwise
from gossamer.protocol.peer.state.links import HANDLE_MASK
from gossamer.protocol.peer.state.lookup import (
    ANSWERS,
    RESTS,
    handle_of_slot,
    is_stray,
    next_hop_on,
    progress_on,
)
from gossamer.protocol.peer.state.state import MALFORMED, State

# Words of a copy that is listed, before its values.
LISTED_COPY, LISTED_AGE, LISTED_VALUES = 0, 1, 2


@rule
def on_compare(s: State, p: int, _now: int, words: Words, at: int, out: Outbox) -> None:
    """Bring a question one hop closer to the peer it is for, or answer it.

    Whoever answers for the first value of a part does so for what of the part is its own.
    """
    if not question_is_well_formed(s, p, words, at):
        return
    body = at + BODY
    part = body + COMPARED_PART
    start = words[part + COMPARED_FROM]
    if words[body + IS_FOUND] == 0:
        word = words[body + COMPARE_PROGRESS]
        strayed = is_stray(s, p, start, word)
        hop = next_hop_on(s, p, start, word, strayed)
        if hop != ANSWERS:
            mend_view(s, p, words[at + FROM], strayed, out)
            if hop != RESTS:
                words[body + COMPARE_PROGRESS] = progress_on(s, p, hop, start, word, strayed)
                pass_question_on(s, p, handle_of_slot(s, p, hop >> 1), words, body, out)
            return
        me = s.sampler.profile[p, IDENTIFIER]
        if clockwise(start, me) < clockwise(start, words[part + COMPARED_TO]):
            words[part + COMPARED_TO] = me
    # A question that came back to its asker, whose ring has changed, is asked again in time.
    if words[body + ASKER] == s.sampler.handle[p]:
        return
    answer_for_what_is_whole(s, p, words, part)
    sum_up(s, s.held, p, False, words, part)
    question = words[body + QUESTION_ASKED]
    if question == WHICH and all_sums(s, 0) <= LISTED_AT_ONCE:
        list_compared(s, p, words[body + ASKER], words, part, out)
    else:
        parts = 1 if question == 1 else PARTS
        tell_sums(s, p, words[body + ASKER], parts, words, part, out)


@rule
def answer_for_what_is_whole(s: State, p: int, words: Words, part: int) -> None:
    """Leave out of a question the rounds, or the classes, of which something had to make room."""
    rounds = words[part + COMPARED_ROUNDS]
    if words[part + COMPARED_CLASSES] & BY_CLASS == 0:
        words[part + COMPARED_ROUNDS] = whole_rounds(s, s.held, p, rounds)
    else:
        rounds = min(rounds, s.params.retention_rounds)
        words[part + COMPARED_CLASSES] &= BY_CLASS | whole_classes(s, s.held, p, rounds)


@rule
def question_is_well_formed(s: State, p: int, words: Words, at: int) -> bool:
    """Whether a question has the schema's number of values and possible numbers."""
    body = at + BODY
    part = body + COMPARED_PART
    if (
        words[at + LENGTH] == BODY + COMPARED_PART + part_words(s)
        and 0 <= words[body + ASKER] <= HANDLE_MASK
        and 0 <= words[body + QUESTION_ASKED] <= PARTS
        and words[part + COMPARED_ROUNDS] >= 0
        and words[part + COMPARED_CLASSES] >= 0
        and range_is_possible(words, part)
        and -1 <= words[part + COMPARED_BOX] < s.params.attributes
    ):
        return True
    s.counters[p, MALFORMED] += 1
    return False


@inline_rule
def range_is_possible(words: Words, at: int) -> Any:
    """Whether a level is one that there is."""
    return 0 <= words[at + COMPARED_LEVEL] <= LEVELS


@rule
def pass_question_on(s: State, p: int, to: int, words: Words, body: int, out: Outbox) -> None:
    """Send a question one hop further."""
    size = COMPARED_PART + part_words(s)
    at = open_record(out, COMPARE, to, s.sampler.handle[p], size)
    if at >= 0:
        copy_words(words, body, size, out.words, at + BODY)
        close_record(out, at, size)


@rule
def compare_elsewhere(s: State, p: int, now: int, words: Words, at: int, out: Outbox) -> None:
    """Route a question around a peer that could not be reached."""
    if s.params.reroute == 1 and words[at + BODY + IS_FOUND] == 0:
        words[at + BODY + COMPARE_PROGRESS] = 0
        on_compare(s, p, now, words, at, out)


@rule
def tell_sums(s: State, p: int, to: int, parts: int, words: Words, part: int, out: Outbox) -> None:
    """Send the sums of a range, one or those of its sixteenths; none of them says only: go on."""
    at = open_record(out, COMPARED, to, s.sampler.handle[p], SUMS + 1 + 2 * PARTS)
    if at < 0:
        return
    body = at + BODY
    copy_words(words, part, COMPARED_SALT, out.words, body)
    out.words[body + QUESTION_ANSWERED] = parts
    out.words[body + SUMS] = parts
    for i in range(2 * parts):
        sums = s.work.sums[i] if parts == PARTS else all_sums(s, i)
        out.words[body + SUMS + 1 + i] = sums
    close_record(out, at, SUMS + 1 + 2 * parts)


@rule
def list_compared(s: State, p: int, to: int, words: Words, part: int, out: Outbox) -> None:
    """Send which copies a range has, with ages and values; there are few enough of them."""
    size = LISTED_VALUES + s.params.attributes
    count = find_compared(s, s.held, p, False, words, part, LISTED_AT_ONCE)
    at = open_record(out, LISTED, to, s.sampler.handle[p], LISTED_COPIES + 1 + count * size)
    if at < 0:
        return
    copy_words(words, part, COMPARED_SALT, out.words, at + BODY)
    first = at + BODY + LISTED_COPIES + 1
    for i in range(count):
        write_listed(s, p, s.work.compared[i], out, first + i * size)
    out.words[first - 1] = count
    close_record(out, at, LISTED_COPIES + 1 + count * size)


@rule
def write_listed(s: State, p: int, place: int, out: Outbox, to: int) -> None:
    """Write a copy that is held to a list: which, how old, and its values."""
    out.words[to + LISTED_COPY] = s.held.copies[p, place]
    out.words[to + LISTED_AGE] = max(0, s.round[p] - s.held.rounds[p, place])
    for a in range(s.params.attributes):
        out.words[to + LISTED_VALUES + a] = s.held.values[p, place, a]
