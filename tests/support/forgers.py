"""Members in league that change, forge, claim, replay, delay and drop events.

A forger runs the node as it is; its frames are changed on their way out, as a changed program of
its would write them. What the league has seen of events it may use.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import cbor2

from gossamer.node.peer.dependencies import Dependencies
from gossamer.node.peer.frames.wire import WORD_BYTES
from gossamer.node.security.cluster import Membership
from gossamer.node.security.encoding import encode
from gossamer.node.security.event_keys import EventKey, introduce
from gossamer.node.security.sealing import DRAW_BYTES, Seal, identifier, sign
from gossamer.node.transport.base.frames import encode_frame
from gossamer.node.transport.base.schema import Frame
from gossamer.protocol.peer.record_table.records import EVENT_MESSAGES, EVENT_VALUES
from support.tampering import read_frame, tampered, write_frame

POINT_AT = EVENT_VALUES * WORD_BYTES
# Event frames that a forger keeps back at most, and that the league remembers.
DELAYED, REMEMBERED = 4, 64


@attrs.define
class ForgersLeague:
    """What forgers have agreed on."""

    seal: Seal
    share: float  # of the event frames that pass through them, the part that they do something to
    draws: random.Random  # what that is
    done: Counter[str] = attrs.field(factory=Counter)  # how often they did what
    seen: list[Frame] = attrs.field(factory=list)  # frames of events, some of them old
    _left: list[Callable[[Forger, Frame, bytes], bytes]] = attrs.field(factory=list)

    def next_deed(self) -> Callable[[Forger, Frame, bytes], bytes]:
        """Another one, until there is none that was not done; then all again."""
        if not self._left:
            self._left = self.draws.sample(DEEDS, len(DEEDS))
        return self._left.pop()


@attrs.define
class Forger:
    league: ForgersLeague
    member: Membership
    key: EventKey
    _kept_back: list[bytes] = attrs.field(factory=list)

    def change(self, dependencies: Dependencies) -> Dependencies:
        return tampered(dependencies, self._rewrite)

    def _rewrite(self, data: bytes) -> bytes:
        frame: Frame = read_frame(data)
        if frame["type"] != "record" or frame["kind"] not in EVENT_MESSAGES:
            return data
        self._see(frame)
        if self.league.draws.random() >= self.league.share:
            return data
        deed = self.league.next_deed()
        self.league.done[deed.__name__] += 1
        return deed(self, frame, data)

    def _see(self, frame: Frame) -> None:
        seen = self.league.seen
        if len(seen) < REMEMBERED:
            seen.append(frame)
        else:
            seen[self.league.draws.randrange(REMEMBERED)] = frame

    # What is done to an event, as a frame and as its bytes; what is sent in its place

    def drop(self, _frame: Frame, _data: bytes) -> bytes:
        return b""

    def delay(self, _frame: Frame, data: bytes) -> bytes:
        self._kept_back.append(data)
        if len(self._kept_back) < DELAYED:
            return b""
        late, self._kept_back = self._kept_back, []
        return b"".join(reversed(late))

    def replay(self, _frame: Frame, data: bytes) -> bytes:
        return data + write_frame(self.league.draws.choice(self.league.seen)) + data

    def change_values(self, frame: Frame, _data: bytes) -> bytes:
        return self._with_content(frame, lambda parts: [*parts[:3], [1.5, "FORGED"]])

    def change_time(self, frame: Frame, _data: bytes) -> bytes:
        return self._with_content(frame, lambda parts: [parts[0], parts[1] + 1, *parts[2:]])

    def change_publisher(self, frame: Frame, _data: bytes) -> bytes:
        return self._with_content(frame, lambda parts: [self.member.identity.key, *parts[1:]])

    def change_identifier(self, frame: Frame, _data: bytes) -> bytes:
        number = self.league.draws.getrandbits(58)
        return write_frame(frame | {"words": with_number(frame["words"], number)})

    def change_point(self, frame: Frame, _data: bytes) -> bytes:
        words = bytearray(frame["words"])
        words[POINT_AT + self.league.draws.randrange(len(words) - POINT_AT - 1)] ^= 1
        return write_frame(frame | {"words": bytes(words)})

    def change_and_rename(self, frame: Frame, data: bytes) -> bytes:
        """Before the event itself, under an identifier that belongs to what was changed."""
        changed = self._changed(frame, lambda parts: [*parts[:3], [1.5, "FORGED"]])
        return write_frame(renamed(frame | {"event": changed})) + data

    def move_and_rename(self, frame: Frame, data: bytes) -> bytes:
        """The same content a second time, at another place of the ring."""
        words = frame["words"][:POINT_AT] + bytes(len(frame["words"]) - POINT_AT)
        return write_frame(renamed(frame | {"words": words})) + data

    def spoil_signature(self, frame: Frame, data: bytes) -> bytes:
        event = frame["event"]
        spoilt = event[:-1] + bytes([event[-1] ^ 1])
        return write_frame(renamed(frame | {"event": spoilt})) + data

    def claim_name(self, frame: Frame, data: bytes) -> bytes:
        """An event of its own making, signed by its own key, under the publisher's name."""
        seal = self.league.seal
        content = self._content_of(frame)
        parts = cbor2.loads(content)
        made = encode([parts[0], parts[1] + 1, parts[2], [2.5, "FORGED"]])
        draw, point = bytes(DRAW_BYTES), frame["words"][POINT_AT:]
        (proof,) = sign(self.member.authority, self.key, [seal.leaf(made, draw, point)])
        sealed = seal.close(made, draw, point, proof)
        own = introduce(
            self.member.authority, self.member.identity, self.member.certificate, self.key
        )
        introduction = encode_frame("publishers", introductions=[own.introduction])
        event = sealed[: -len(point)]
        return introduction + write_frame(renamed(frame | {"event": event})) + data

    def _content_of(self, frame: Frame) -> bytes:
        return self.league.seal.open(frame["event"] + frame["words"][POINT_AT:]).content

    def _changed(self, frame: Frame, change: Callable[[Sequence[Any]], Sequence[object]]) -> bytes:
        content = self._content_of(frame)
        rest: bytes = frame["event"][len(content) :]
        return encode(list(change(cbor2.loads(content)))) + rest

    def _with_content(
        self, frame: Frame, change: Callable[[Sequence[Any]], Sequence[object]]
    ) -> bytes:
        return write_frame(frame | {"event": self._changed(frame, change)})


DEEDS = (
    *(Forger.drop, Forger.delay, Forger.replay),
    *(Forger.change_values, Forger.change_time, Forger.change_publisher),
    *(Forger.change_identifier, Forger.change_point),
    *(Forger.change_and_rename, Forger.move_and_rename, Forger.spoil_signature),
    Forger.claim_name,
)


def with_number(words: bytes, number: int) -> bytes:
    """The words of an event under another identifier."""
    return number.to_bytes(WORD_BYTES, "little") + words[WORD_BYTES:]


def renamed(frame: Frame) -> Frame:
    """An event under the identifier that is its own."""
    number = identifier(frame["event"] + frame["words"][POINT_AT:])
    return frame | {"words": with_number(frame["words"], number)}
