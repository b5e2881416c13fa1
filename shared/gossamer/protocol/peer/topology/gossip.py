"""Which rule takes which record of peer sampling and topology management."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Final

from gossamer.protocol.kernel.records import Outbox
from gossamer.protocol.kernel.rules import rule
from gossamer.protocol.peer.record_table.records import (
    OVERLAY_TIMER,
    SAMPLE_REPLY,
    SAMPLE_REQUEST,
    SAMPLE_TIMER,
    TMAN_REPLY,
    TMAN_REQUEST,
)
from gossamer.protocol.peer.sampling.sampler import (
    sample_on_reply,
    sample_on_request,
    sample_on_timer,
)
from gossamer.protocol.peer.state.state import State
from gossamer.protocol.peer.topology.tman import (
    on_overlay_timer,
    on_tman_reply,
    on_tman_request,
)


@rule
def on_sample_timer(s: State, p: int, now: int, _words: Any, _at: int, out: Outbox) -> None:
    """Let the sampler begin an exchange."""
    sample_on_timer(s.sampler, p, now, out)


@rule
def on_sample_request(s: State, p: int, now: int, words: Any, at: int, out: Outbox) -> None:
    """Let the sampler answer."""
    sample_on_request(s.sampler, p, now, words, at, out)


@rule
def on_sample_reply(s: State, p: int, now: int, words: Any, at: int, out: Outbox) -> None:
    """Let the sampler take an answer."""
    sample_on_reply(s.sampler, p, now, words, at, out)


GOSSIP: Final = MappingProxyType(
    {
        SAMPLE_TIMER: on_sample_timer,
        OVERLAY_TIMER: on_overlay_timer,
        SAMPLE_REQUEST: on_sample_request,
        SAMPLE_REPLY: on_sample_reply,
        TMAN_REQUEST: on_tman_request,
        TMAN_REPLY: on_tman_reply,
    }
)
