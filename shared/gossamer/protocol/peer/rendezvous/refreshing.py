"""When the periodic installation goes out. Goes beyond the paper, which has it in every round.

With ``refresh_rounds`` above 1 a peer installs everything once in so many rounds, and in each round
before which anything changed that its installations follow from: its place, its neighbours
and theirs, its subscriptions, what others asked for here. So a change travels as it does in the
paper, and only repetitions are rarer. Peers take turns by their keys.
"""

from __future__ import annotations

from gossamer.protocol.kernel.rows.row_compare import digest_row, digest_rows
from gossamer.protocol.kernel.rules import rule
from gossamer.protocol.peer.settings.profile import ARC_START, IDENTIFIER
from gossamer.protocol.peer.state.links import handle_in
from gossamer.protocol.peer.state.state import State

# Of a digest: nothing is installed, so that everything is to be.
NOTHING_INSTALLED = 0


@rule
def is_to_install(s: State, p: int) -> bool:
    """Whether this round is one in which everything is installed."""
    if s.params.refresh_rounds == 1:
        return True
    digest = digest_sources(s, p)
    changed = digest != s.installed_digest[p, 0]
    s.installed_digest[p, 0] = digest
    return changed or (s.round[p] + s.sampler.key[p]) % s.params.refresh_rounds == 0


@rule
def install_anew(s: State, p: int) -> None:
    """Let the next round be one in which everything is installed."""
    if s.params.refresh_rounds > 1:
        s.installed_digest[p, 0] = NOTHING_INSTALLED


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
