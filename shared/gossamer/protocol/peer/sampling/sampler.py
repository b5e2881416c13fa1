"""Peer sampling: Cyclon and Newscast behind one interface.

Layers above read row p's view and profiles (`SamplerState`), write their own profile into
``profile``, and hand the sampler its timer and its records through the rules below; which
protocol runs is the state's ``kind``. Every rule reads and writes row p only.
"""

from __future__ import annotations

from gossamer.protocol.kernel.records import Outbox, Words
from gossamer.protocol.kernel.rules import inline_rule, rule
from gossamer.protocol.peer.sampling.cyclon import (
    add_contact_to_cyclon,
    cyclon_hint,
    cyclon_on_reply,
    cyclon_on_request,
    cyclon_on_timer,
    cyclon_on_unreachable,
    cyclon_step,
)
from gossamer.protocol.peer.sampling.descriptors import (
    CYCLON,
    EMPTY,
    NEWSCAST,
    SamplerState,
    age_of,
    draw,
    forget,
    handle_of,
    make_sampler,
    pack,
    sampler_columns,
    view_length,
)
from gossamer.protocol.peer.sampling.newscast import (
    add_contact_to_newscast,
    newscast_hint,
    newscast_on_reply,
    newscast_on_request,
    newscast_on_timer,
    newscast_on_unreachable,
    newscast_step,
)

__all__ = [
    "CYCLON",
    "EMPTY",
    "NEWSCAST",
    "SamplerState",
    "add_contact",
    "age_of",
    "cyclon_hint",
    "cyclon_step",
    "draw",
    "forget",
    "handle_of",
    "make_sampler",
    "newscast_hint",
    "newscast_step",
    "pack",
    "sample_hint",
    "sample_on_reply",
    "sample_on_request",
    "sample_on_timer",
    "sample_on_unreachable",
    "sampler_columns",
    "view_length",
]


@rule
def sample_on_timer(v: SamplerState, p: int, now: int, out: Outbox) -> None:
    """Begin row p's exchange of this round, if it knows anybody."""
    if v.kind == CYCLON:
        cyclon_on_timer(v, p, out)
    else:
        newscast_on_timer(v, p, now, out)


@rule
def sample_on_request(
    v: SamplerState, p: int, now: int, words: Words, at: int, out: Outbox
) -> None:
    """Answer a SAMPLE_REQUEST and update row p's view; a malformed one is ignored."""
    if v.kind == CYCLON:
        cyclon_on_request(v, p, words, at, out)
    else:
        newscast_on_request(v, p, now, words, at, out)


@rule
def sample_on_reply(
    v: SamplerState,
    p: int,
    now: int,
    words: Words,
    at: int,
    out: Outbox,  # noqa: ARG001  (all handlers of messages take one)
) -> None:
    """Update row p's view from a SAMPLE_REPLY; a malformed one is ignored."""
    if v.kind == CYCLON:
        cyclon_on_reply(v, p, words, at)
    else:
        newscast_on_reply(v, p, now, words, at)


@rule
def sample_on_unreachable(
    v: SamplerState,
    p: int,
    now: int,  # noqa: ARG001  (as every handler)
    words: Words,
    at: int,
) -> None:
    """Forget the peer to which row p's SAMPLE_REQUEST at ``words[at]`` could not be carried."""
    if v.kind == CYCLON:
        cyclon_on_unreachable(v, p, words, at)
    else:
        newscast_on_unreachable(v, p, words, at)


@rule
def add_contact(v: SamplerState, p: int, now: int, handle: int, words: Words, at: int) -> None:
    """Seat a peer learnt from outside (a bootstrap server) as fresh in row p's view.

    Its profile is ``words[at:at + W]``. A full view gives up its oldest; row p's own handle is
    ignored.
    """
    if handle == v.handle[p]:
        return
    if v.kind == CYCLON:
        add_contact_to_cyclon(v, p, handle, words, at)
    else:
        add_contact_to_newscast(v, p, now, handle, words, at)


@inline_rule
def sample_hint(v: SamplerState, kind: int, soon: int, later: int) -> None:
    """While a record of a kind is taken, bring near what other rows' sampling will read soon."""
    if v.kind == CYCLON:
        cyclon_hint(v, kind, soon, later)
    else:
        newscast_hint(v, kind, soon, later)
