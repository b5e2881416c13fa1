"""When the periodic installation goes out. Goes beyond the paper, which has it in every round.

With ``refresh_rounds`` above 1 a peer installs everything once in so many rounds. In each round
before which anything changed that its installations follow from (its place, its neighbours and
theirs, its subscriptions, what others asked for here) it installs anew where that makes a
difference. So a change travels as it does in the paper, and only repetitions are rarer. Peers take
turns by their keys.
"""

from __future__ import annotations

from typing import Any

from gossamer.protocol.kernel.rows.row_compare import digest_row, digest_rows
from gossamer.protocol.kernel.rules import inline_rule, rule
from gossamer.protocol.peer.routing.lookup import handle_of_slot
from gossamer.protocol.peer.settings.profile import ARC_START, IDENTIFIER
from gossamer.protocol.peer.state.links import handle_in
from gossamer.protocol.peer.state.state import State

# Of a digest: nothing is installed, so that everything is to be.
NOTHING_INSTALLED = 0
# What is installed in a round.
HEARTBEATS, CHANGES, EVERYTHING = 0, 1, 2


@rule
def what_to_install(s: State, p: int) -> int:
    """Whether this round is one for all installations, for those that changed, or for none."""
    if s.params.refresh_rounds == 1:
        return EVERYTHING
    digest = digest_sources(s, p)
    before = s.installed_digest[p, 0]
    s.installed_digest[p, 0] = digest
    if is_turn_in(s, p, s.round[p]) or before == NOTHING_INSTALLED:
        return EVERYTHING
    return CHANGES if digest != before else HEARTBEATS


@inline_rule
def is_turn_in(s: State, p: int, number: int) -> Any:
    """Whether ``p`` installs everything in its round of this number."""
    return (number + s.sampler.key[p]) % s.params.refresh_rounds == 0


@rule
def install_anew(s: State, p: int) -> None:
    """Let the next round be one in which everything is installed."""
    if s.params.refresh_rounds > 1:
        s.installed_digest[p, 0] = NOTHING_INSTALLED


@rule
def is_installed(s: State, p: int, to: int, digest: int) -> bool:
    """Whether the boxes with this digest are what was last installed at ``to``."""
    for i in range(s.installed_at.shape[1]):
        if s.installed_at[p, i] == to:
            return bool(s.installed_digest[p, 1 + i] == digest)
    return False


@rule
def digest_boxes(s: State, p: int, first: int, count: int) -> int:
    """A word for the boxes ``work.lists[first:first + count]``, asked for from this place."""
    digest = s.sampler.profile[p, IDENTIFIER]
    for i in range(count):
        digest = digest_row(digest, s.work.lists, first + i)
    return int(digest)


@rule
def note_installed(s: State, p: int, arcs: int) -> None:
    """Remember at whom something is installed now, and what where that matters."""
    for i in range(s.installed_at.shape[1]):
        is_asked = i < arcs and s.work.counts[i] > 0
        s.installed_at[p, i] = handle_of_slot(s, p, s.work.hops[i]) if is_asked else -1
        if is_asked and s.params.refresh_rounds > 1:
            first = i * s.params.boxes
            s.installed_digest[p, 1 + i] = digest_boxes(s, p, first, s.work.counts[i])


@rule
def digest_sources(s: State, p: int) -> int:
    """A word for all that installations follow from; two states share one by rare chance only.

    What changed unnoticed is installed with the next repetition.
    """
    write_places(s, p)
    digest = digest_row(1, s.work.places, 0)
    digest = digest_row(digest, s.constrained, p)
    digest = digest_rows(digest, s.subscriptions, p, s.subscriptions.shape[1])
    return digest_rows(digest, s.table, p, s.table_count[p])


@rule
def write_places(s: State, p: int) -> None:
    """Write to ``work.places`` all that routing reads of ``p`` and of its neighbours."""
    places = s.work.places
    places[0, 0] = s.sampler.profile[p, IDENTIFIER]
    places[0, 1] = s.primary[p]
    places[0, 2] = s.predecessor[p]
    for k in range(s.links.shape[1]):
        at = 3 + 3 * k
        word = s.links[p, k]
        if word < 0:
            places[0, at] = -1
            places[0, at + 1] = -1
            places[0, at + 2] = -1
            continue
        places[0, at] = handle_in(word)
        places[0, at + 1] = s.link_profile[p, k, IDENTIFIER]
        places[0, at + 2] = s.link_profile[p, k, ARC_START] if s.params.ring_links > 0 else -1
