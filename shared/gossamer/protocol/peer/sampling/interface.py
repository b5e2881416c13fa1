"""What a sampler declares of itself: all that the layers above, hosts and documents know of it.

A sampler is a module of this folder with an object `SAMPLER` and its name in
`gossamer.protocol.peer.settings.config.SAMPLERS`. Nothing else names a member of the family.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from gossamer.protocol.kernel.records import Outbox, Words
from gossamer.protocol.kernel.rules import Rule, rule
from gossamer.protocol.peer.record_table.table import Table
from gossamer.protocol.peer.sampling.descriptors import SamplerState


@rule
def ignore(_v: SamplerState, _p: int, _now: int, _words: Words, _at: int, _out: Outbox) -> None:
    """Do nothing."""


def _none(_view_size: int) -> int:
    return 0


@attrs.frozen(kw_only=True)
class Sampler:
    """A peer sampling protocol.

    Rules are called as ``rule(v, p, now, words, at, out)`` with a `SamplerState`, where nothing
    else is said.

    Attributes:
        records: the messages that its peers send each other. Their numbers are 16 to 47 and none of
            those in `record_table.records`; two samplers may use the same.
        rules: by kind, what takes SAMPLE_TIMER and each of these messages. All kinds of a sampler
            have one.
        unreachable: takes any record of this peer that came back because its addressee, at
            ``words[at + TO]``, cannot be reached.
        link_broke: takes the command LINK_BROKE: a host lost its connection to the peer at
            ``words[at + BODY]``, which may well live. Does nothing if not given.
        add_contact: seats a peer learnt from outside, ``rule(v, p, now, handle, words, at)``, whose
            profile is ``words[at:]``; never called with the row's own handle.
        broadcast: sends a copy of the record at ``words[at:]`` to each of the peers by which this
            one takes part in a broadcast.
        hint: ``rule(v, kind, soon, later)``, see `CycleEngine`.
        tells_times: whether freshness is the round in which a descriptor was written, and no age.
        active_slots: how many slots of a view of a size are for neighbours that know each other;
            they come first, and bear `ACTIVE` where one is seated.
        records_a_round: by kind, how many messages one peer sends another in a round at most, with
            a margin for rounds that come late; kinds that are not in it are not limited.
    """

    records: Table
    rules: Mapping[int, Rule]
    unreachable: Rule
    add_contact: Rule
    broadcast: Rule
    hint: Rule
    link_broke: Rule = ignore
    tells_times: bool = False
    active_slots: Callable[[int], int] = _none
    records_a_round: Mapping[int, int] = attrs.field(factory=dict)
