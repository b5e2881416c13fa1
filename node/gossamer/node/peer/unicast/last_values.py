"""The last values that a peer keeps, and how they spread to others.

Every so often a peer compares what it has got with one that it is connected to, and sends what that
one lacks: the events as they are sealed, of which that one finds out for itself whose they are.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

import trio
from attrs import define, frozen

from gossamer.node.errors import NoAnswerError
from gossamer.node.peer.frames.event_authentication import EventAuthentication
from gossamer.node.peer.frames.events import Event, EventFormat
from gossamer.node.peer.unicast.cluster_time import ClusterTime
from gossamer.node.peer.unicast.messages import Unicast
from gossamer.node.security.identity import decode, encode
from gossamer.node.security.sealing import identifier
from gossamer.protocol.content.limits import MAX_PAYLOAD_BYTES
from gossamer.protocol.content.values import Payload
from gossamer.protocol.kernel.errors import ContentError
from gossamer.protocol.patterns.last_values import LastValue, LastValues, Stamp, chunks

SERVICE: Final = "last"
LAST_TYPE: Final = "application/vnd.gossamer.last"
# What the envelope takes beside the application's payload.
ENVELOPE_BYTES: Final = 1 << 9
COMPARE, VALUES = range(2)
PIECE_BYTES: Final = 1 << 16
ANSWER_S: Final = 5.0
KEY_BYTES: Final = 16
# How long a mark of what is deleted lasts: longer than any value that a peer away could bring back
# is likely to be missed.
DELETED_S: Final = 7 * 86_400.0
_MARK: Final = LAST_TYPE.encode()


@frozen
class LastMark:
    """What an event says that is the last of its key.

    Attributes:
        attribute: whose value is the key.
        lasts_s: seconds for which it is kept, from when it was published; 0 for good.
        is_deleted: whether it says that there is no value any more.
    """

    attribute: str
    lasts_s: float = 0.0
    is_deleted: bool = False


def marked(payload: Payload | None, mark: LastMark) -> Payload:
    """The payload of an event that is the last of its key.

    Raises:
        ContentError: beside its envelope the application's payload has no room.
    """
    most = MAX_PAYLOAD_BYTES - ENVELOPE_BYTES
    if payload is not None and len(payload.data) > most:
        size = len(payload.data)
        raise ContentError("", f"a payload of a last value takes {most} bytes, not {size}")
    inner = [] if payload is None else [payload.content_type, payload.data]
    lasts_ms = round(1000 * mark.lasts_s)
    return Payload(encode([mark.attribute, lasts_ms, mark.is_deleted, *inner]), LAST_TYPE)


def mark_of(payload: Payload | None) -> tuple[Payload | None, LastMark | None]:
    """What the application put into an event, and the mark, if it has one."""
    if payload is None or payload.content_type != LAST_TYPE:
        return payload, None
    try:
        attribute, lasts_ms, is_deleted, *inner = decode(payload.data)
        if [type(one) for one in (attribute, lasts_ms, is_deleted)] != [str, int, bool]:
            return payload, None
        content = Payload(inner[1], inner[0]) if len(inner) == 2 else None
        return content, LastMark(attribute, lasts_ms / 1000, is_deleted)
    except (ValueError, TypeError, ContentError):
        return payload, None


def may_be_last(data: bytes) -> bool:
    """Whether an event's bytes may be of a last value; the rest need not be read otherwise."""
    return _MARK in data


def key_of(mark: LastMark, values: Mapping[str, object]) -> bytes | None:
    """The key of a last value; None where the event does not have the attribute."""
    if mark.attribute not in values:
        return None
    text = f"{mark.attribute}={values[mark.attribute]!r}".encode()
    return hashlib.blake2b(text, digest_size=KEY_BYTES).digest()


@define(eq=False, slots=False)
class LastValueKeeper:
    """The last values that one peer keeps; `run` lets them spread.

    Args:
        form: how their content is laid out, as of now.
        round_s: seconds between two comparisons.
    """

    _messages: Unicast
    _authentication: EventAuthentication
    _form: Callable[[], EventFormat]
    _clock: ClusterTime
    _draws: random.Random
    _round_s: float

    def __attrs_post_init__(self) -> None:
        self.values = LastValues()
        self._are_any = trio.Event()
        # By key and connection, since a peer that was started anew has forgotten what it was told.
        self._told: dict[tuple[int, float], int] = {}
        self._messages.offer(SERVICE, self._answer)

    def note(self, event: Event, sealed: bytes) -> None:
        """Keep an event, which was believed, if it is the last of its key."""
        _, mark = mark_of(event.payload)
        key = None if mark is None else key_of(mark, event.values)
        if mark is None or key is None:
            return
        lasts_s = mark.lasts_s or (DELETED_S if mark.is_deleted else 0.0)
        expires_at = event.published_at + lasts_s if lasts_s else 0.0
        self._clock.see(event.published_at)
        latest = self._latest()
        stamp = (round(event.published_at * 1e6), event.id)
        if (expires_at and expires_at <= self._clock.now()) or stamp[0] > latest:
            return
        self.values.put(LastValue(key, stamp, sealed, expires_at, mark.is_deleted), latest)
        self._are_any.set()

    def events(self) -> list[Event]:
        """The last values, as events."""
        found = []
        for one in self.values.all(self._clock.now()):
            try:
                content = self._authentication.content(one.data)
                found.append(self._form().from_bytes(one.stamp[1], content))
            except ValueError:
                continue  # of a version of the schema that cannot be read any more
        return found

    async def run(self) -> None:
        """Compare with others, one after another, until cancelled."""
        await self._are_any.wait()
        while True:
            await trio.sleep(self._round_s * self._draws.uniform(0.5, 1.5))
            self.values.expire(self._clock.now())
            connected = sorted(self._messages.connected.items())
            self._told = {one: self._told.get(one, 0) for one in connected}
            behind = [one for one in connected if self._told[one] < self.values.serial]
            if behind:
                await self._compare(self._draws.choice(behind))

    async def _compare(self, other: tuple[int, float]) -> None:
        """Tell a peer what is new here, and send it what it lacks of that."""
        key, _ = other
        serial, news = self.values.since(self._told[other])
        told = [[one.key, list(one.stamp)] for one in news]
        try:
            raw = await self._messages.ask(key, (), SERVICE, encode([COMPARE, told]), ANSWER_S)
            wanted = [news[place] for place in decode(raw)]
            left = 0
            for piece in chunks(wanted, PIECE_BYTES):
                for one in piece:
                    self._authentication.introduce(key, one.data)
                body = encode([VALUES, [[one.stamp[1], one.data] for one in piece]])
                left += len(decode(await self._messages.ask(key, (), SERVICE, body, ANSWER_S)))
        except (NoAnswerError, ValueError, TypeError, IndexError):
            return  # it is told again
        if not left:
            self._told[other] = serial

    def _latest(self) -> int:
        """The latest time of an event that can be believed, in microseconds."""
        return round(self._clock.latest() * 1e6)

    def _answer(self, sender: int, body: bytes) -> bytes:
        question = decode(body)
        if type(question) is not list or [type(one) for one in question] != [int, list]:
            raise ValueError("no question about last values")
        kind, parts = question
        if kind == COMPARE:
            told = [_key_and_stamp(one) for one in parts]
            return encode(self.values.missing(told, self._latest()))
        if kind != VALUES:
            raise ValueError("no question about last values")
        return encode([place for place, part in enumerate(parts) if not self._take(sender, part)])

    def _take(self, sender: int, part: object) -> bool:
        """Take a value that a peer sends; False where it has to be sent again."""
        if not isinstance(part, list) or [type(one) for one in part] != [int, bytes]:
            raise ValueError("no event")
        event, sealed = part
        if identifier(sealed) != event:
            raise ValueError("no event of this identifier")
        if not self._authentication.knows(sealed, sender):
            return False
        content = self._authentication.open(event, sealed, sender)
        if content is not None:
            with suppress(ValueError):  # of a later version of the schema
                self.note(self._form().from_bytes(event, content), sealed)
        return True


def _key_and_stamp(parts: object) -> tuple[bytes, Stamp]:
    if not isinstance(parts, list) or len(parts) != 2 or not isinstance(parts[0], bytes):
        raise ValueError("no key of a last value")
    key, stamp = parts
    if not isinstance(stamp, list) or [type(one) for one in stamp] != [int, int]:
        raise ValueError("no stamp of a last value")
    return key, (stamp[0], stamp[1])
