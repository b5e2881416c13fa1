"""Frames that peers really send, made wrong in every way that CBOR and records allow."""

from __future__ import annotations

import copy
import random
import struct
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import attrs
import cbor2

from gossamer.node.errors import BadFrame
from gossamer.node.peer.frames.event_frames import HEAD_BYTES, KINDS, event_frame, read_event_frame
from gossamer.node.peer.frames.frame_types import WORD_BYTES
from gossamer.node.security.sealing import identifier
from gossamer.node.transport.limits import HEADER_BYTES
from gossamer.node.transport.schema import Frame, FrameTypes
from gossamer.protocol.peer.record_table.records import EVENT_VALUES

MAX_NAME_BYTES = 65_535

INT64_LOW, INT64_HIGH = -(1 << 63), (1 << 63) - 1
POINT_AT = EVENT_VALUES * WORD_BYTES
_WORDS = (
    *(0, 1, -1, 2, 255, 1 << 31, 1 << 32, 1 << 58),
    *((1 << 62) - 1, 1 << 62, INT64_HIGH, INT64_LOW),
)
_TAGS = (b"\xc0", b"\xc2", b"\xc4", b"\xd8\x1e", b"\xd9\x01\x02", b"\xd8\x23")
_WITHOUT_END = (b"\x9f", b"\xbf", b"\x7f", b"\x5f")
_LONG = (0x5B, 0x7B, 0x9B, 0xBB)
_NO_UNICODE = (b"\x61\xff", b"\x62\xc0\x80", b"\x63\xed\xa0\x80", b"\x64\xf5\x80\x80\x80")
# Values that break a rule, made of draws and of a good one.
_BAD_VALUES: dict[str, Callable[[random.Random, bytes], bytes]] = {
    "a tag": lambda draws, value: draws.choice(_TAGS) + value,
    "a huge number": lambda draws, _: (
        b"\xc2\x58" + bytes([size := draws.randrange(9, 200)]) + draws.randbytes(size)
    ),
    "too deep": lambda draws, _: b"\x81" * draws.choice((9, 20, 500, 5000)) + b"\x01",
    "no end": lambda draws, _: draws.choice(_WITHOUT_END) + draws.choice((b"", b"\xff")),
    # It claims to be far longer than the frame.
    "boastful": lambda draws, _: (
        bytes([draws.choice(_LONG)]) + draws.getrandbits(draws.randrange(20, 64)).to_bytes(8, "big")
    ),
    "no Unicode": lambda draws, _: draws.choice(_NO_UNICODE),
}


class Fuzzed(NamedTuple):
    data: bytes
    how: str
    is_bad: bool = False  # whether it breaks a rule for certain, so that its sender has to be cut
    is_last: bool = False  # whether nothing can be told from another after it: its length is wrong


def framed(body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + body


@attrs.define
class Fuzzer:
    types: FrameTypes
    templates: Sequence[Frame]
    draws: random.Random
    # Makes an entry of the attacker's own that says anything, properly signed.
    sign: Callable[[random.Random], bytes]

    def next_frame(self) -> Fuzzed:
        """A frame, wrong in one way or, now and then, in none."""
        frame = copy.copy(self.draws.choice(self.templates))
        return self.draws.choice(_WAYS)(self, frame)

    def _judged(self, frame: Frame, how: str) -> Fuzzed:
        """``frame`` encoded; whether it is bad is for the schemas to say."""
        return Fuzzed(framed(cbor2.dumps(frame)), how, self._breaks_a_rule(frame))

    def _breaks_a_rule(self, frame: Frame) -> bool:
        try:
            self.types.check(frame)
        except BadFrame:
            return True
        return False

    def _field(self, frame: Frame) -> str:
        return self.draws.choice([name for name in frame if name != "type"] or ["type"])

    def _odd_value(self) -> Any:
        draws = self.draws
        return draws.choice(
            (
                *(None, True, 1.5, float("nan"), "text", "\U0001f980" * draws.randrange(400)),
                *(b"", draws.randbytes(draws.randrange(3000)), [], {}, [[[]]], {"": {"": []}}),
                *(draws.choice(_WORDS), [draws.choice(_WORDS)] * draws.randrange(100)),
                [b"12345678"] * draws.randrange(5000),
            )
        )

    # What is done to whole frames

    def as_it_is(self, frame: Frame) -> Fuzzed:
        return self._judged(frame, "as it is")

    def key_missing(self, frame: Frame) -> Fuzzed:
        del frame[self.draws.choice(list(frame))]
        return self._judged(frame, "key missing")

    def key_unknown(self, frame: Frame) -> Fuzzed:
        key: Any = self.draws.choice(("more", "Type", "", 7, b"kind", None, -1))
        return Fuzzed(framed(cbor2.dumps({**frame, key: 1})), f"key {key!r}", is_bad=True)

    def other_type(self, frame: Frame) -> Fuzzed:
        frame["type"] = self.draws.choice([*self.types, "nothing", 1, None])
        # Goodbyes end a connection in order.
        if frame["type"] == "goodbye":
            frame["type"] = "hello"
        return self._judged(frame, "another type")

    def odd_value(self, frame: Frame) -> Fuzzed:
        frame[self._field(frame)] = self._odd_value()
        return self._judged(frame, "an odd value")

    def resized(self, frame: Frame) -> Fuzzed:
        name = self._field(frame)
        value = frame[name]
        if isinstance(value, bytes | list | str):
            size = self.draws.choice((0, 1, len(value) - 1, len(value) + 1, 2 * len(value), 70_000))
            filler: Any = value or (b"\0" if isinstance(value, bytes) else value)
            frame[name] = (filler * (size // max(1, len(filler)) + 1))[: max(0, size)]
        elif isinstance(value, int):
            frame[name] = self.draws.choice(_WORDS)
        return self._judged(frame, "resized")

    # What is done to CBOR

    def twice(self, frame: Frame) -> Fuzzed:
        name = self.draws.choice(list(frame))
        pairs = [*frame.items(), (name, frame[name])]
        body = b"".join(cbor2.dumps(part) for pair in pairs for part in pair)
        return Fuzzed(framed(bytes([0xA0 + len(pairs)]) + body), "a key twice", is_bad=True)

    def bad_value(self, frame: Frame) -> Fuzzed:
        how, make = self.draws.choice(list(_BAD_VALUES.items()))
        name = self._field(frame)
        rest = {key: value for key, value in frame.items() if key != name}
        body = b"".join(cbor2.dumps(part) for pair in rest.items() for part in pair)
        encoded = make(self.draws, cbor2.dumps(frame[name]))
        data = bytes([0xA0 + len(rest) + 1]) + body + cbor2.dumps(name) + encoded
        return Fuzzed(framed(data), how, is_bad=True)

    def more_after(self, frame: Frame) -> Fuzzed:
        data = cbor2.dumps(frame) + self.draws.randbytes(self.draws.randrange(1, 9))
        return Fuzzed(framed(data), "more after it", is_bad=True)

    def flipped(self, frame: Frame) -> Fuzzed:
        body = bytearray(cbor2.dumps(frame))
        for _ in range(self.draws.randrange(1, 4)):
            body[self.draws.randrange(len(body))] ^= 1 << self.draws.randrange(8)
        return Fuzzed(framed(bytes(body)), "flipped bits")

    def cut(self, frame: Frame) -> Fuzzed:
        body = cbor2.dumps(frame)
        return Fuzzed(framed(body[: self.draws.randrange(len(body))]), "cut short", is_bad=True)

    def wrong_length(self, frame: Frame) -> Fuzzed:
        length = self.draws.getrandbits(self.draws.randrange(1, 33))
        data = struct.pack(">I", length) + cbor2.dumps(frame)
        return Fuzzed(data, "a wrong length", is_last=True)

    # What is done to records

    def odd_words(self, frame: Frame) -> Fuzzed:
        name = "words" if "words" in frame else self._field(frame)
        value = frame[name]
        if not isinstance(value, bytes) or len(value) < 8:
            return self.odd_value(frame)
        words = list(struct.unpack(f"<{len(value) // 8}q", value[: len(value) // 8 * 8]))
        for _ in range(self.draws.randrange(1, 4)):
            place = self.draws.randrange(len(words))
            change = self.draws.choice((-1, 1, 1 << 32, -(1 << 32)))
            word = self.draws.choice((*_WORDS, words[place] + change))
            words[place] = min(max(word, INT64_LOW), INT64_HIGH)
        if self.draws.random() < 0.2:
            words = (words * 3)[: self.draws.randrange(3 * len(words))]
        frame[name] = struct.pack(f"<{len(words)}q", *words)
        return self._judged(frame, "odd words")

    def other_kind(self, frame: Frame) -> Fuzzed:
        if "kind" in frame:
            frame["kind"] += self.draws.choice((-12, -5, -2, -1, 1, 2, 5, 12))
        return self._judged(frame, "another kind")

    def odd_peers(self, frame: Frame) -> Fuzzed:
        """Descriptors that are forged, repeated, missing, or signed nonsense."""
        name = "peers" if frame.get("peers") else "peer" if "peer" in frame else ""
        if not name:
            return self.odd_value(frame)
        peers = list(frame[name]) if name == "peers" else [frame[name]]
        place = self.draws.randrange(len(peers))
        entry = bytearray(peers[place])
        entry[self.draws.randrange(len(entry))] ^= 1 << self.draws.randrange(8)
        peers[place] = self.draws.choice(
            (bytes(entry), peers[place][:-1], peers[-1], self.draws.randbytes(8))
        )
        if self.draws.random() < 0.3:
            peers[place] = self.sign(self.draws)
        if name == "peers" and self.draws.random() < 0.2:
            self.draws.shuffle(peers)
            peers = peers[: self.draws.randrange(len(peers) + 1)]
        frame[name] = peers if name == "peers" else peers[0]
        return self._judged(frame, "odd peers")

    def odd_bytes(self, frame: Frame) -> Fuzzed:
        """Bits within what the frame carries for others: an event's values, certificates."""
        for name in ("event", "certificates", "introductions", "list", "keys"):
            value = frame.get(name)
            if isinstance(value, bytes) and value:
                changed = bytearray(value)
                changed[self.draws.randrange(len(changed))] = self.draws.randrange(256)
                frame[name] = bytes(changed)
            elif isinstance(value, list) and value:
                frame[name] = [*value[1:], self._odd_value()]
        return self._judged(frame, "odd bytes")

    def renamed(self, frame: Frame) -> Fuzzed:
        """An event changed by somebody who knows how identifiers are made."""
        words, event = frame.get("words", b""), frame.get("event", b"")
        if event and len(words) > POINT_AT:
            changed = bytearray(event)
            changed[self.draws.randrange(len(changed))] = self.draws.randrange(256)
            frame["event"] = bytes(changed[self.draws.choice((0, 0, 0, 1)) :])
            number = identifier(frame["event"] + words[POINT_AT:])
            frame["words"] = number.to_bytes(WORD_BYTES, "little") + words[WORD_BYTES:]
        return self._judged(frame, "renamed")

    def own_form(self, frame: Frame) -> Fuzzed:
        """What has a form beside CBOR: odd in itself, or with a head, or an end, that is wrong."""
        draws = self.draws
        if frame["type"] != "record" or frame["kind"] not in KINDS:
            return self.odd_words(frame)
        odd = draws.choice((self.as_it_is, self.odd_words, self.odd_peers, self.odd_bytes))(frame)
        if odd.is_bad:
            return odd
        name = b"".join(frame["peers"])[:MAX_NAME_BYTES]
        data = bytearray(event_frame(frame["kind"], frame["words"], name, frame.get("event", b"")))
        if draws.random() < 0.5:
            data[HEADER_BYTES + 1 + draws.randrange(HEAD_BYTES - 1)] = draws.randrange(256)
        if draws.random() < 0.2:
            data = data[: HEADER_BYTES + draws.randrange(1, len(data) - HEADER_BYTES)]
        body = bytes(data[HEADER_BYTES:])
        try:
            is_bad = self._breaks_a_rule(read_event_frame(body))
        except BadFrame:
            is_bad = True
        return Fuzzed(framed(body), "an own form", is_bad)


_WAYS = (
    *(Fuzzer.as_it_is, Fuzzer.key_missing, Fuzzer.key_unknown, Fuzzer.other_type),
    *(Fuzzer.odd_value, Fuzzer.resized, Fuzzer.twice, Fuzzer.more_after),
    *[Fuzzer.bad_value] * len(_BAD_VALUES),
    *(Fuzzer.flipped, Fuzzer.cut, Fuzzer.wrong_length),
    # Where most of what is to be found will be.
    *(Fuzzer.odd_words, Fuzzer.odd_words, Fuzzer.odd_words, Fuzzer.other_kind),
    *(Fuzzer.odd_peers, Fuzzer.odd_peers, Fuzzer.odd_bytes, Fuzzer.renamed),
    *(Fuzzer.own_form, Fuzzer.own_form, Fuzzer.own_form),
)
