"""Which rule takes which record of peer sampling and topology management."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Final

from gossamer.protocol.kernel.records import Outbox
from gossamer.protocol.kernel.rules import Rule, rule
from gossamer.protocol.peer.record_table.records import (
    OVERLAY_TIMER,
    TMAN_REPLY,
    TMAN_REQUEST,
)
from gossamer.protocol.peer.sampling.sampler import RULES
from gossamer.protocol.peer.state.state import State
from gossamer.protocol.peer.topology.tman import (
    on_overlay_timer,
    on_tman_reply,
    on_tman_request,
)


def _in_sampler(take: Rule) -> Rule:
    """Hands a record to a rule of the sampler."""

    @rule
    def on_sample_record(s: State, p: int, now: int, words: Any, at: int, out: Outbox) -> None:
        take(s.sampler, p, now, words, at, out)

    return on_sample_record


SAMPLING: Final = {kind: _in_sampler(take) for kind, take in RULES.items()}

GOSSIP: Final = MappingProxyType(
    {
        **SAMPLING,
        OVERLAY_TIMER: on_overlay_timer,
        TMAN_REQUEST: on_tman_request,
        TMAN_REPLY: on_tman_reply,
    }
)
