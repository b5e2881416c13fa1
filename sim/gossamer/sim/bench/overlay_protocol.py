"""Peer sampling and topology management alone: Vinifera without its content layer."""

from __future__ import annotations

from typing import Any

from gossamer.protocol.kernel.dispatch import dispatch
from gossamer.protocol.kernel.records import KIND, TO, UNREACHABLE, Outbox
from gossamer.protocol.kernel.rules import rule
from gossamer.protocol.peer.sampling.sampler import sample_unreachable
from gossamer.protocol.peer.state.links import drop_link
from gossamer.protocol.peer.state.state import State
from gossamer.protocol.peer.topology.gossip import GOSSIP

take_gossip = dispatch(GOSSIP)


@rule
def overlay_step(s: State, p: int, now: int, words: Any, at: int, out: Outbox) -> None:
    """The one door of a peer that only keeps neighbours; the rules are those of `peer.step`."""
    kind = words[at + KIND]
    if not take_gossip(kind, s, p, now, words, at, out) and kind >= UNREACHABLE:
        sample_unreachable(s.sampler, p, now, words, at, out)
        drop_link(s, p, words[at + TO])
