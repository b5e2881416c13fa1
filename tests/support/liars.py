"""Members that run the node as it is, but for what they say of others and of themselves.

A liar's frames are changed on their way out, as a changed program of its would write them. All
liars of a cluster are in league: whoever asks one for peers is told of the others.
"""

from __future__ import annotations

import attrs

from gossamer.node.peer.assembly import Dependencies
from gossamer.node.peer.frames.wire import WORD_BYTES
from gossamer.node.security.cluster import Membership
from gossamer.node.security.descriptors import Descriptor, sign_descriptor
from gossamer.node.security.encoding import decode
from gossamer.node.security.identity import SIGNATURE_BYTES
from gossamer.node.transport.base.schema import Frame
from gossamer.protocol.peer.record_table.records import (
    EVENT,
    PLACE_FOUND,
    SAMPLE_REPLY,
    SAMPLE_REQUEST,
    TMAN_REPLY,
    TMAN_REQUEST,
)
from gossamer.protocol.peer.settings.profile import (
    ARC_START,
    IDENTIFIER,
    LOAD,
    RANGES,
    coarse_range,
)
from gossamer.protocol.peer.space.ring import RING_MASK
from support.tampering import read_frame, tampered, write_frame

# Whether a record that tells of peers begins with its sender.
_TELLING = {
    SAMPLE_REQUEST: True,
    SAMPLE_REPLY: False,
    TMAN_REQUEST: True,
    TMAN_REPLY: True,
    PLACE_FOUND: True,
}


@attrs.define
class League:
    """What liars have agreed on."""

    told: int  # how many peers one record may tell of
    profile: frozenset[int] = frozenset()  # about which words of their own profile they lie, too
    silence: bool = False  # whether they pass no events on
    own: dict[int, bytes] = attrs.field(factory=dict)  # the newest descriptor of each liar, by key
    # The first descriptor seen of each honest peer, by key.
    old: dict[int, bytes] = attrs.field(factory=dict)


@attrs.define
class Liar:
    league: League
    member: Membership
    _made_up: dict[bytes, bytes] = attrs.field(factory=dict)

    def change(self, dependencies: Dependencies) -> Dependencies:
        return tampered(dependencies, self._rewrite)

    def _rewrite(self, data: bytes) -> bytes:
        frame = read_frame(data)
        kind = frame["type"]
        if kind == "greeting":
            frame["peer"] = self._of_myself(frame["peer"])
            return write_frame(frame)
        if kind != "record":
            return data
        if frame["kind"] == EVENT:
            return b"" if self.league.silence else data
        frame["peers"] = [self._of_anybody(entry) for entry in frame["peers"]]
        if frame["kind"] in _TELLING:
            frame |= self._tell(_TELLING[frame["kind"]], frame["peers"])
        return write_frame(frame)

    def _tell(self, with_sender: bool, peers: list[bytes]) -> Frame:
        """The other liars, fresh; an honest peer as it was long ago, and one misquoted."""
        league, me = self.league, self.member.identity.key
        mine = [league.own[me]] if with_sender and me in league.own else peers[:with_sender]
        liars = [entry for key, entry in league.own.items() if key != me]
        room = league.told - len(mine)
        quoted = [*list(league.old.values())[:1], *map(_misquoted, list(league.old.values())[1:2])]
        entries = [*mine, *liars[: room - len(quoted)], *quoted]
        words = [len(entries), *range(len(entries))]
        return {"peers": entries, "words": b"".join(_word(word) for word in words)}

    def _of_anybody(self, entry: bytes) -> bytes:
        if len(entry) <= SIGNATURE_BYTES:
            return entry
        key = _key_of(entry)
        if key == self.member.identity.key:
            return self._of_myself(entry)
        if key not in self.league.own:
            self.league.old.setdefault(key, entry)
        return entry

    def _of_myself(self, entry: bytes) -> bytes:
        key = self.member.identity.key
        told = entry
        if self.league.profile:
            told = self._made_up.setdefault(entry, b"") or self._make_up(entry)
            self._made_up[entry] = told
        self.league.own[key] = told
        return told

    def _make_up(self, entry: bytes) -> bytes:
        """Signed by its owner, and untrue: wants everything, has no load, answers for all."""
        _, key, serial, addresses, profile, sequence, at = decode(entry[SIGNATURE_BYTES:])
        lies = {
            LOAD: [0],
            ARC_START: [profile[IDENTIFIER] + 1 & RING_MASK],
            RANGES: [coarse_range(0, RING_MASK)] * len(profile[RANGES:]),
        }
        for word in self.league.profile:
            profile[word : word + len(lies[word])] = lies[word]
        where = tuple((host, port) for host, port in addresses)
        number = int.from_bytes(serial, "big")
        made = Descriptor(key, number, where, tuple(profile), sequence, at)
        return sign_descriptor(self.member.authority, self.member.identity, made).packed


def _misquoted(entry: bytes) -> bytes:
    return entry[:-1] + bytes([entry[-1] ^ 1])


def _key_of(entry: bytes) -> int:
    return int(decode(entry[SIGNATURE_BYTES:])[1])


def _word(word: int) -> bytes:
    return word.to_bytes(WORD_BYTES, "little", signed=True)
