"""What a peer published, for those who want its events in order.

A subscriber's peer asks which of this peer's events match some expressions within a span of time,
and what became of them; see `gossamer.protocol.patterns.ordering`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from gossamer.node.peer.unicast.messages import Unicast
from gossamer.node.security.identity import decode, encode
from gossamer.protocol.content.filters.expressions import Expression, parse_expression
from gossamer.protocol.content.schema import Schema
from gossamer.protocol.content.values import Value
from gossamer.protocol.kernel.errors import ProtocolError
from gossamer.protocol.patterns.ordering import Fate, Listed, PublishedLog

SERVICE: Final = "order"
# Expressions of one question, their bytes together, and those remembered of all.
MOST_EXPRESSIONS: Final = 256
MOST_TEXT: Final = 1 << 16
PARSED: Final = 1024
_NOTHING: Final = encode([])

Values = Mapping[str, Value]


class PublicationOrder:
    """The order in which one peer publishes, and its answers about that.

    Args:
        schema: of events, as of now.
        now: Unix seconds.
    """

    def __init__(
        self, messages: Unicast, schema: Callable[[], Schema], now: Callable[[], float]
    ) -> None:
        self._schema = schema
        self._now = now
        self._log: PublishedLog[Values] = PublishedLog(round(now() * 1e6))
        self._parsed: dict[str, Expression] = {}
        self._parsed_for: Schema | None = None
        messages.offer(SERVICE, self._answer)

    def reserve(self) -> int:
        """The time of the next event, in microseconds: after those of all before it."""
        return self._log.reserve(round(self._now() * 1e6))

    def note(self, time: int, event: int, values: Values) -> None:
        """The event of a time is about to be published."""
        self._log.note(time, event, values)

    def settle(self, time: int) -> None:
        """It is acknowledged."""
        self._log.settle(time)

    def give_up(self, time: int) -> None:
        """Nobody waits for its acknowledgement any more, or it was not published at all."""
        self._log.give_up(time)

    def _answer(self, _: int, body: bytes) -> bytes:
        parts = decode(body)
        if type(parts) is not list or [type(one) for one in parts] != [int, int, list]:
            raise ValueError("no question about order")
        after, until, texts = parts
        if len(texts) > MOST_EXPRESSIONS or any(type(text) is not str for text in texts):
            raise ValueError("no expressions")
        try:
            wanted = [self._parse(text) for text in texts]
        except ProtocolError:
            return _NOTHING  # of a version of the schema that is not known here yet
        since, known_until, listed = self._log.between(
            after, until, lambda values: any(one.matches(values) for one in wanted)
        )
        return encode([since, known_until, [list(one) for one in listed]])

    def _parse(self, text: str) -> Expression:
        schema = self._schema()
        if schema is not self._parsed_for or len(self._parsed) >= PARSED:
            self._parsed, self._parsed_for = {}, schema
        if text not in self._parsed:
            self._parsed[text] = parse_expression(schema, text)
        return self._parsed[text]


def question(after: int, until: int, expressions: Iterable[str]) -> bytes:
    """Asks what was published in a span of time, in microseconds, that matches an expression."""
    texts: list[str] = []
    size = 0
    for text in expressions:
        size += len(text.encode())
        if len(texts) == MOST_EXPRESSIONS or size > MOST_TEXT:
            break
        texts.append(text)
    return encode([after, until, texts])


def read_answer(raw: bytes) -> tuple[int, int, list[Listed]] | None:
    """The span for which an answer is whole, and the events; None where there is no answer.

    Raises:
        ValueError: it is none.
    """
    parts = decode(raw)
    if parts == []:
        return None
    if type(parts) is not list or [type(one) for one in parts] != [int, int, list]:
        raise ValueError("no answer about order")
    since, until, listed = parts
    return since, until, [_listed(one) for one in listed]


def _listed(parts: Sequence[object]) -> Listed:
    if type(parts) is not list or [type(one) for one in parts] != [int, int, int]:
        raise ValueError("no event that was published")
    time, event, fate = parts
    return Listed(time, event, Fate(fate))
