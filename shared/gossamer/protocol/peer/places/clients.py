"""Clients: peers without subscriptions, which do not stand on the ring.

Goes beyond the paper. Where peers stand where their interests lie, one that wants nothing would
only stand in the way of events. It keeps `entry_links` to peers of the ring, which it takes from
the random view, so that they lie evenly among them; they use the slots that are fingers' on the
ring. It publishes through the one that is nearest. Nobody links to it, and it answers for nothing.

With its first subscription it looks for a seat on the ring, and having dropped the last it leaves,
as a peer does that moves (`moving`).
"""

from __future__ import annotations

from gossamer.protocol.kernel.rules import rule
from gossamer.protocol.peer.sampling.descriptors import view_length
from gossamer.protocol.peer.settings.profile import IDENTIFIER
from gossamer.protocol.peer.state.links import age_links, handle_in, is_refused, slot_of
from gossamer.protocol.peer.state.state import State
from gossamer.protocol.peer.topology.selection import sampled_word


@rule
def keep_entries(s: State, p: int, now: int) -> None:
    """A round of a client: links age, and those that are missing are taken from the random view."""
    s.round[p] += 1
    age_links(s, p)
    candidate = 0
    known = view_length(s.sampler, p)
    first = s.params.chosen_links
    for k in range(first, first + s.params.entry_links):
        while s.links[p, k] < 0 and candidate < known:
            take_entry(s, p, k, candidate, now)
            candidate += 1


@rule
def take_entry(s: State, p: int, k: int, candidate: int, now: int) -> None:
    """Link to a peer of the random view, if it is on the ring and no neighbour yet."""
    word = sampled_word(s, p, candidate, now)
    identifier = s.sampler.view_profile[p, candidate, IDENTIFIER]
    if word < 0 or slot_of(s, p, handle_in(word)) >= 0 or is_refused(s, p, word, identifier):
        return
    s.links[p, k] = word
    for w in range(s.link_profile.shape[2]):
        s.link_profile[p, k, w] = s.sampler.view_profile[p, candidate, w]
