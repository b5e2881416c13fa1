"""Peer sampling: every sampler behind one interface.

Layers above read row p's view and profiles (`SamplerState`), write their own profile into
``profile``, and hand the sampler its timer and its records through the rules below; which
protocol runs is the state's ``kind``. Every rule reads and writes row p only.
"""

from __future__ import annotations

from importlib import import_module
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from gossamer.protocol.kernel.errors import ConfigError
from gossamer.protocol.kernel.records import KIND, UNREACHABLE, Outbox, Words, dispatch
from gossamer.protocol.kernel.rules import Rule, inline_rule, rule, standalone_rule
from gossamer.protocol.kernel.struct import Rows
from gossamer.protocol.peer.record_table.layouts import Layout
from gossamer.protocol.peer.sampling.descriptors import (
    EMPTY,
    TABLE_SIZE,
    Sampler,
    SamplerState,
    age_of,
    draw,
    handle_of,
    pack,
    sampler_columns,
    view_length,
)
from gossamer.protocol.peer.settings.config import MAX_VIEW_SIZE, SAMPLERS, Settings

__all__ = [
    "EMPTY",
    "FAMILY",
    "RECORDS_A_ROUND",
    "RULES",
    "SamplerState",
    "add_contact",
    "age_of",
    "broadcast",
    "draw",
    "handle_of",
    "make_sampler",
    "pack",
    "record_layouts",
    "sample_hint",
    "sample_link_broke",
    "sample_rest",
    "sample_step",
    "sample_unreachable",
    "sampler_columns",
    "view_length",
]


def _declared_by(name: str) -> Sampler:
    """What the module of that name in this folder declares."""
    declared = import_module(f"{__package__}.{name}").SAMPLER
    assert isinstance(declared, Sampler)
    return declared


# In the order of `SAMPLERS`: the place of a sampler is its number, `SamplerState.kind`.
FAMILY: Final = tuple(_declared_by(name) for name in SAMPLERS)


def _by_sampler(kind: int) -> Rule:
    """The rule that hands records of a kind to the rule of whichever sampler runs."""
    takers = {i: one.rules[kind] for i, one in enumerate(FAMILY) if kind in one.rules}
    take = dispatch(takers)

    @rule
    def take_in_sampler(
        v: SamplerState, p: int, now: int, words: Words, at: int, out: Outbox
    ) -> None:
        take(v.kind, v, p, now, words, at, out)

    return take_in_sampler


# What takes the timer and the messages, of all samplers; a sampler ignores those of others.
RULES: Final = MappingProxyType(
    {kind: _by_sampler(kind) for kind in dict.fromkeys(k for one in FAMILY for k in one.rules)}
)
RECORDS_A_ROUND: Final = MappingProxyType(
    {kind: most for one in FAMILY for kind, most in one.records_a_round.items()}
)
_take_record = dispatch(RULES)
_take_returned = dispatch({i: one.unreachable for i, one in enumerate(FAMILY)})
_take_rest = dispatch({i: one.rest for i, one in enumerate(FAMILY)})
_take_broken_link = dispatch({i: one.link_broke for i, one in enumerate(FAMILY)})
_take_broadcast = dispatch({i: one.broadcast for i, one in enumerate(FAMILY)})


@standalone_rule
def sample_step(v: SamplerState, p: int, now: int, words: Words, at: int, out: Outbox) -> None:
    """A sampler alone as a protocol: the one door for its timer and messages."""
    kind = words[at + KIND]
    if not _take_record(kind, v, p, now, words, at, out) and kind >= UNREACHABLE:
        sample_unreachable(v, p, now, words, at, out)


@rule
def sample_unreachable(
    v: SamplerState, p: int, now: int, words: Words, at: int, out: Outbox
) -> None:
    """Forget the peer to which row p's record at ``words[at:]``, of any kind, was not carried."""
    _take_returned(v.kind, v, p, now, words, at, out)


@rule
def sample_rest(v: SamplerState, p: int, now: int, words: Words, at: int, out: Outbox) -> None:
    """Let a round pass in which row p rests, in place of its timer."""
    _take_rest(v.kind, v, p, now, words, at, out)


@rule
def sample_link_broke(
    v: SamplerState, p: int, now: int, words: Words, at: int, out: Outbox
) -> None:
    """Let the sampler know by the command at ``words[at:]`` that a connection broke."""
    _take_broken_link(v.kind, v, p, now, words, at, out)


@rule
def broadcast(v: SamplerState, p: int, now: int, words: Words, at: int, out: Outbox) -> None:
    """Send the record at ``words[at:]`` on to those by whom row p takes part in a broadcast.

    The peer that it came from is not among them.
    """
    _take_broadcast(v.kind, v, p, now, words, at, out)


def _contact_chain() -> Rule:
    """Calls the rule `add_contact` of the sampler that runs."""
    chain = _add_to_none
    for number, one in reversed(tuple(enumerate(FAMILY))):
        chain = _contact_link(number, one.add_contact, chain)
    return chain


@inline_rule
def _add_to_none(
    _v: SamplerState, _p: int, _now: int, _handle: int, _words: Words, _at: int
) -> None:
    return


def _contact_link(number: int, add: Rule, others: Rule) -> Rule:
    @inline_rule
    def add_to_one(v: SamplerState, p: int, now: int, handle: int, words: Words, at: int) -> None:
        if v.kind == number:
            add(v, p, now, handle, words, at)
        else:
            others(v, p, now, handle, words, at)

    return add_to_one


_add_to_sampler = _contact_chain()


@rule
def add_contact(v: SamplerState, p: int, now: int, handle: int, words: Words, at: int) -> None:
    """Seat a peer learnt from outside (a bootstrap server) as fresh in row p's view.

    Its profile is ``words[at:at + W]``. A full view gives up another; row p's own handle is
    ignored.
    """
    if handle != v.handle[p]:
        _add_to_sampler(v, p, now, handle, words, at)


def _hint_chain() -> Rule:
    """Calls the rule `hint` of the sampler that runs."""
    chain = _hint_none
    for number, one in reversed(tuple(enumerate(FAMILY))):
        chain = _hint_link(number, one.hint, chain)
    return chain


@inline_rule
def _hint_none(_v: SamplerState, _kind: int, _soon: int, _later: int) -> None:
    return


def _hint_link(number: int, hint: Rule, others: Rule) -> Rule:
    @inline_rule
    def hint_one(v: SamplerState, kind: int, soon: int, later: int) -> None:
        if v.kind == number:
            hint(v, kind, soon, later)
        else:
            others(v, kind, soon, later)

    return hint_one


_hint_sampler = _hint_chain()


@inline_rule
def sample_hint(v: SamplerState, kind: int, soon: int, later: int) -> None:
    """While a record of a kind is taken, bring near what other rows' sampling will read soon."""
    _hint_sampler(v, kind, soon, later)


def record_layouts(settings: Settings) -> dict[int, Layout]:
    """The bodies of the messages of the sampler that these settings choose, by kind."""
    return FAMILY[SAMPLERS.index(settings.sampler)].records.layouts(settings)


def make_sampler(
    nodes: int,
    name: str,
    view_size: int,
    shuffle_length: int,
    profile_words: int,
    seed: int,
    keys: Words | None = None,
    rows: Rows | None = None,
) -> SamplerState:
    """State of ``nodes`` peers that know nobody yet; handles are the rows.

    Args:
        nodes: n, number of rows.
        name: of the sampler, one of `SAMPLERS`.
        view_size: C, from 1 to 256.
        shuffle_length: from 1 to C; samplers that exchange whole views ignore it.
        profile_words: W, words of profile carried by each descriptor, 0 or more.
        seed: of the draws, any signed 64-bit number.
        keys: int64[n] permanent keys, the rows if not given; copied.
        rows: with `sampler_columns` first and columns of others behind them, which so lie beside
            what belongs to the same peer; the sampler's own if not given.

    Raises:
        ConfigError: a value is out of its range; nothing was built.
    """
    _check("nodes", nodes, nodes >= 1, "at least 1")
    _check("name", name, name in SAMPLERS, "one of " + ", ".join(SAMPLERS))
    _check("view_size", view_size, 1 <= view_size <= MAX_VIEW_SIZE, f"1 to {MAX_VIEW_SIZE}")
    shuffle_fits = 1 <= shuffle_length <= view_size
    _check("shuffle_length", shuffle_length, shuffle_fits, f"1 to view_size, {view_size}")
    _check("profile_words", profile_words, profile_words >= 0, "0 or more")
    key = np.arange(nodes, dtype=np.int64) if keys is None else np.array(keys, np.int64)
    _check("keys", key.shape, key.shape == (nodes,), f"one key for each of {nodes} nodes")
    if rows is None:
        rows = Rows(nodes, sampler_columns(view_size, profile_words))
    columns = rows.views()
    columns["key"][:] = key
    columns["handle"][:] = np.arange(nodes)
    columns["views"][:] = EMPTY
    kind = SAMPLERS.index(name)
    return SamplerState(
        rows,
        kind=kind,
        tells_times=int(FAMILY[kind].tells_times),
        active_slots=FAMILY[kind].active_slots(view_size),
        seed=seed,
        view_size=view_size,
        shuffle_length=shuffle_length,
        spare=np.zeros((2 * view_size + 1) * (1 + profile_words) + 2, np.int64),
        seen=np.zeros(TABLE_SIZE, np.int64),
        merges=np.zeros(1, np.int64),
    )


def _check(field: str, value: Any, holds: bool, expected: str) -> None:
    if not holds:
        raise ConfigError(f"sampler.{field}", value, expected)
