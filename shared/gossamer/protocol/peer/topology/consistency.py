"""Whether two peers that trade links agree on the ring: Trickle's test of consistency (RFC 6206).

Who has heard of a change on the ring and who has not find out by each other's links, and stir (see
`resting`): one to tell of it, the other to ask.
"""

from __future__ import annotations

from gossamer.protocol.kernel.records import BODY, FROM, Words
from gossamer.protocol.kernel.rules import rule
from gossamer.protocol.peer.settings.profile import IDENTIFIER, OFF_THE_RING
from gossamer.protocol.peer.space.ring import clockwise
from gossamer.protocol.peer.state.links import descriptor_words, handle_in
from gossamer.protocol.peer.state.resting import may_rest, stir
from gossamer.protocol.peer.state.state import State


@rule
def stir_if_inconsistent(s: State, p: int, words: Words, at: int) -> None:
    """Stir ``p`` if the sender of the links at ``words[at:]`` lacks one that it should have."""
    if may_rest(s) and words[at + BODY + 2 + IDENTIFIER] < OFF_THE_RING:
        for k in range(2 * s.params.ring_links):
            if s.links[p, k] >= 0 and is_lacking(s, p, k, words, at):
                stir(s, p)
                return


@rule
def is_lacking(s: State, p: int, k: int, words: Words, at: int) -> bool:
    """Whether the sender should have, and has not, our ring neighbour in slot ``k`` for its own.

    It should if on one side fewer of its links are nearer to it than it has neighbours there.
    """
    size = descriptor_words(s)
    handle, identifier = handle_in(s.links[p, k]), s.link_profile[p, k, IDENTIFIER]
    sender = words[at + BODY + 2 + IDENTIFIER]
    after, before = clockwise(sender, identifier), clockwise(identifier, sender)
    if handle == words[at + FROM]:
        return False
    nearer_after = 0
    nearer_before = 0
    for i in range(1, words[at + BODY]):
        link = at + BODY + 1 + i * size
        if handle_in(words[link]) == handle:
            return False
        other = words[link + 1 + IDENTIFIER]
        nearer_after += clockwise(sender, other) < after
        nearer_before += clockwise(other, sender) < before
    return bool(min(nearer_after, nearer_before) < s.params.ring_links)
