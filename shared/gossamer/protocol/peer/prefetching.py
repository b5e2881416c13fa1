"""Which memory of which rows is brought near before records reach them, for loops over many rows.

It changes nothing but the time that a run takes; interpreted it does nothing at all. What is asked
for too early is pushed out again, and what asks for too much at a time waits.
"""

from __future__ import annotations

from typing import Any

from gossamer.protocol.kernel.prefetch import prefetch
from gossamer.protocol.kernel.rules import inline_rule, rule
from gossamer.protocol.kernel.struct import CACHE_LINE_WORDS
from gossamer.protocol.peer.record_table.records import (
    ACKNOWLEDGE,
    FINGER_REPLY,
    FINGER_REQUEST,
    INSTALL,
    INSTALL_NEWS,
    INSTALL_TIMER,
    SAMPLE_REPLY,
    SAMPLE_REQUEST,
    TMAN_REPLY,
    TMAN_REQUEST,
)
from gossamer.protocol.peer.rendezvous.installation_boxes import is_turn_in
from gossamer.protocol.peer.state.state import State
from gossamer.protocol.peer.topology.tman import (
    WORDS_BEFORE_LINKS,
    approach_rest,
    overlay_hint,
)

# How many cache lines of a routing table are brought near, and of who its entries are from: most
# tables are short.
TABLE_LINES, OWNER_LINES = 4, 3


@rule
def hint(s: State, kind: int, soon: int, later: int) -> None:
    """While a record of a kind is taken, bring near what two other rows will read in their turns.

    A part with each of the records that a turn consists of.
    """
    overlay_hint(s, kind, soon, later)
    if kind == INSTALL_TIMER:
        approach_rest(s, later)
        approach_table(s, later)
    elif kind == TMAN_REPLY:
        approach_rarely_read(s, soon)
    elif kind == TMAN_REQUEST and is_turn_in(s, soon, s.round[soon] + 1):
        approach_installed(s, soon)


@inline_rule
def approach_rarely_read(s: State, p: int) -> None:
    """Bring near what row ``p`` reads in its own turn alone, and what lies apart from the rest."""
    prefetch(s.constrained, p, 0)
    prefetch(s.subscriptions, p, 0)
    prefetch(s.seat, p, 0)
    prefetch(s.installed_digest, p, 0)
    memory = s.event_copies.shape[1]
    newest = (s.event_next[p] - 1) % memory
    prefetch(s.event_copies, p, newest)
    prefetch(s.event_rounds, p, newest)


@inline_rule
def approach_installed(s: State, p: int) -> None:
    """Bring near what row ``p`` has installed, for a round in which it installs everything."""
    for at in range(0, s.installed_at.shape[1], CACHE_LINE_WORDS):
        prefetch(s.installed_at, p, at)
    for at in range(0, s.installed_digest.shape[1], CACHE_LINE_WORDS):
        prefetch(s.installed_digest, p, at)


@rule
def approach(s: State, p: int, kind: int) -> None:
    """Bring near what a record of a kind makes row ``p`` read: its links, and what else it needs.

    Of its neighbours' profiles most records read one; all of them are more than memory brings while
    another record is taken.
    """
    prefetch(s.sampler.key, p, 0)
    for at in range(0, WORDS_BEFORE_LINKS + s.links.shape[1], CACHE_LINE_WORDS):
        prefetch(s.round, p, at)
    prefetch(s.successor, p, 0)
    if s.asked.shape[1] > 0:
        prefetch(s.asked, p, 0)
    if not is_about_installing(kind):
        # Who is told of may have failed, or have moved.
        prefetch(s.failed, p, 0)
        prefetch(s.departed, p, 0)
    if not is_about_links(kind):
        approach_table(s, p)


@inline_rule
def is_about_installing(kind: int) -> Any:
    """Whether a record says nothing of peers but its sender, or of nobody who is new."""
    return (kind == INSTALL) | (kind == INSTALL_NEWS) | (kind == ACKNOWLEDGE)


@inline_rule
def is_about_links(kind: int) -> Any:
    """Whether a record leaves the routing table alone."""
    is_gossip = (kind == TMAN_REQUEST) | (kind == TMAN_REPLY)
    is_gossip |= (kind == SAMPLE_REQUEST) | (kind == SAMPLE_REPLY)
    return is_gossip | (kind == FINGER_REQUEST) | (kind == FINGER_REPLY) | (kind == ACKNOWLEDGE)


@rule
def approach_table(s: State, p: int) -> None:
    """Bring near the beginning of row ``p``'s routing table: most are short."""
    for at in range(0, min(OWNER_LINES * CACHE_LINE_WORDS, s.owner.shape[1]), CACHE_LINE_WORDS):
        prefetch(s.owner, p, at)
    words = s.table.shape[1] * s.table.shape[2]
    for at in range(0, min(TABLE_LINES * CACHE_LINE_WORDS, words), CACHE_LINE_WORDS):
        prefetch(s.table, p, at)
