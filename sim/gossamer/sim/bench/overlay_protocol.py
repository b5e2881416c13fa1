"""Peer sampling and topology management alone: Vinifera without its content layer."""

from __future__ import annotations

from typing import Any

from gossamer.protocol.kernel.records import (
    KIND,
    OVERLAY_TIMER,
    SAMPLE_REPLY,
    SAMPLE_REQUEST,
    SAMPLE_TIMER,
    TMAN_REPLY,
    TMAN_REQUEST,
    TO,
    UNREACHABLE,
    Outbox,
)
from gossamer.protocol.kernel.rules import rule
from gossamer.protocol.peer.sampling.sampler import (
    forget,
    sample_on_reply,
    sample_on_request,
    sample_on_timer,
)
from gossamer.protocol.peer.state.links import drop_link
from gossamer.protocol.peer.topology.tman import (
    on_overlay_timer,
    on_tman_reply,
    on_tman_request,
)


@rule
def overlay_step(s: Any, p: int, now: int, words: Any, at: int, out: Outbox) -> None:
    """The one door of a peer that only keeps neighbours; the rules are those of `peer.step`."""
    kind = words[at + KIND]
    if kind == SAMPLE_TIMER:
        sample_on_timer(s.sampler, p, now, out)
    elif kind == OVERLAY_TIMER:
        on_overlay_timer(s, p, now, out)
    elif kind == SAMPLE_REQUEST:
        sample_on_request(s.sampler, p, now, words, at, out)
    elif kind == SAMPLE_REPLY:
        sample_on_reply(s.sampler, p, now, words, at, out)
    elif kind == TMAN_REQUEST:
        on_tman_request(s, p, now, words, at, out)
    elif kind == TMAN_REPLY:
        on_tman_reply(s, p, now, words, at)
    elif kind >= UNREACHABLE:
        forget(s.sampler, p, words[at + TO])
        drop_link(s, p, words[at + TO])
