"""Composite subscriptions of all clients of a broker: put in force, kept over restarts, matched.

unknown  -- `subscribe`, stored, all parts told ---->  in force
in force -- the broker is restarted ---------------->  in force, and what waited is forgotten
in force -- `unsubscribe`, no more stored ---------->  unknown, its parts are taken back

What is stored decides: a broker that was killed in between takes back, or tells again, what parts
are too many or too few. A client that is taken over by another broker is served there by its other
subscriptions only; publications for parts wait there for its own broker to be back.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs
import trio
from attrs import frozen

from gossamer.node.broker.deliveries import (
    PART,
    Arrival,
    CompositeSubscription,
    Losses,
    match_bytes,
    missing_parts,
)
from gossamer.node.broker.engine import Engine
from gossamer.node.broker.host import ForComposites, Match
from gossamer.node.broker.members import Member, Members, noted
from gossamer.node.errors import RequestError
from gossamer.node.monitoring.logs import log
from gossamer.node.store import Store
from gossamer.node.store.broker import StoredComposite
from gossamer.node.store.writer import StoreWriter
from gossamer.protocol.brokers.core.effects import Deliver
from gossamer.protocol.brokers.core.messages import (
    MalformedMessageError,
    Subscribe,
    Unsubscribe,
    client,
)
from gossamer.protocol.brokers.core.plain_data import plain_filter, plain_values, read_values
from gossamer.protocol.content import filters
from gossamer.protocol.content.filters import Filter, Publication, exact_publication
from gossamer.protocol.content.filters.composite import Composite, is_composite, parse_composite
from gossamer.protocol.content.limits import FRAME_BYTES, MAX_NAME
from gossamer.protocol.content.schema import Schema
from gossamer.protocol.kernel.errors import (
    CapacityError,
    ContentError,
    ExpressionError,
    ProtocolError,
)

# What a client misses is logged so often at most.
REPORT_S: Final = 60.0
# A match is sent in one frame, with a few more names of fields than are stored.
MOST_BYTES: Final = FRAME_BYTES - (8 << 10)


class Composites:
    """The composite subscriptions of all clients.

    Attributes:
        losses: what all clients missed since the start.
    """

    def __init__(
        self,
        members: Members,
        writer: StoreWriter,
        engine: Callable[[], Engine],
        clock: Callable[[], float],
    ) -> None:
        """None so far; ``clock`` is in seconds, and never goes back."""
        self.losses = Losses()
        self._members = members
        self._writer = writer
        self._engine = engine
        self._clock = clock

    def __len__(self) -> int:
        return sum(len(member.composites.held) for member in self._members)

    @property
    def waiting(self) -> int:
        """Publications that wait for others, each counted for every filter that it matched."""
        return sum(member.composites.waiting for member in self._members)

    def rows(self) -> list[dict[str, Any]]:
        """All of them, as plain values for people and programs."""
        return [
            {
                "client": member.name,
                "label": label,
                "composite": one.text,
                "within": one.within_s,
                "filters": len(one.parts),
            }
            for member in self._members
            for label, one in member.composites.held.items()
        ]

    async def subscribe(
        self,
        member: Member,
        label: str,
        text: str,
        composite: Composite,
        within_s: float,
        most: int,
    ) -> None:
        """Put a composite subscription in force, in place of an earlier one of that label.

        Args:
            member: whose it is.
            label: what the client calls it.
            text: as the client wrote it.
            composite: what that says.
            within_s: seconds in which publications have to come to match together.
            most: different filters that the client may ask for.

        Raises:
            CapacityError: with its filters the client would have more than that.
            ContentError: a filter is too long for other brokers to read.
            ProtocolError: the broker refuses a part; it is not in force.
            StoreError: it could not be written; it is not in force.
        """
        new = CompositeSubscription(text, within_s, secrets.token_hex(8), composite)
        async with member.composites.lock:
            before = member.composites.held.get(label)
            if before is None or (before.text, before.within_s) != (text, within_s):
                await self._replace(member, label, before, new, most)

    async def _replace(
        self,
        member: Member,
        label: str,
        before: CompositeSubscription | None,
        new: CompositeSubscription,
        most: int,
    ) -> None:
        for wanted in new.parts.values():
            plain_filter(wanted)
        earlier = {label} if before is None else before.parts.keys()
        replaced = [one for one in earlier if one in member.subscriptions]
        if len(member.subscriptions) - len(replaced) + len(new.parts) > most:
            raise CapacityError("filters of a client", most, "see broker.filters")
        if not member.nameless:
            row = StoredComposite(member.name, label, new.mark, new.text, new.within_s)
            with trio.CancelScope(shield=True):
                await self._writer.run(lambda store: store.broker.keep_composite(row))
        member.composites.let_go(label)
        member.composites.hold(label, new)
        messages: list[Subscribe | Unsubscribe] = [Unsubscribe(one) for one in replaced]
        messages += [Subscribe(one, wanted) for one, wanted in new.parts.items()]
        error = await self._tell(member, messages)
        if error is not None:
            await self._unsubscribe(member, label)
            raise error

    async def unsubscribe(self, member: Member, label: str) -> bool:
        """Take a composite subscription back; returns whether there is one of that label.

        Raises:
            StoreError: it could not be written; nothing changed.
        """
        async with member.composites.lock:
            if label not in member.composites.held:
                return False
            await self._unsubscribe(member, label)
            return True

    async def _unsubscribe(self, member: Member, label: str) -> None:
        parts = await self._forget(member, label)
        await self._tell(member, [Unsubscribe(one) for one in parts if one in member.subscriptions])

    async def _forget(self, member: Member, label: str) -> Mapping[str, Filter]:
        """Store and match one no longer; returns its parts."""
        if not member.nameless:
            with trio.CancelScope(shield=True):
                await self._writer.run(
                    lambda store: store.broker.drop_composite(member.name, label)
                )
        held = member.composites.let_go(label)
        return {} if held is None else held.parts

    async def _tell(
        self, member: Member, messages: Sequence[Subscribe | Unsubscribe]
    ) -> ProtocolError | None:
        """Hand the broker messages about parts; returns why it refused the first one it refused."""
        outcomes = await self._engine().ask_at_once(
            client(member.name), [(one, noted(member.subscriptions, one)) for one in messages]
        )
        return next((one.error for one in outcomes if one.error is not None), None)

    async def restore(self) -> None:
        """Put what is stored in force again, for the clients that the broker remembers."""
        rows = await self._writer.run(lambda store: store.broker.composites())
        for row in rows:
            member = self._members.get(row.client)
            try:
                composite = parse_composite(row.text)
                if member is None:
                    raise ContentError("", "its client is not known any more")
                one = CompositeSubscription(row.text, row.within_s, row.mark, composite)
                member.composites.hold(row.label, one)
            except (ExpressionError, ContentError) as error:
                reason = str(error).splitlines()[0]
                log.warning(
                    "composite subscription is dropped",
                    name=row.client,
                    label=row.label,
                    cause=reason,
                )
                await self._writer.run(_drop, row)
        for member in self._members:
            if not member.home:
                self._correct(member)

    def _correct(self, member: Member) -> None:
        held = member.composites.held.values()
        wanted = {label: one for each in held for label, one in each.parts.items()}
        surplus, absent = missing_parts(member.subscriptions, wanted)
        messages: list[Subscribe | Unsubscribe] = [Unsubscribe(label) for label in surplus]
        messages += [Subscribe(label, one) for label, one in absent.items()]
        for message in messages:
            self._engine().submit(
                client(member.name), message, noted(member.subscriptions, message)
            )

    # Deliveries

    def matched(self, effects: list[Any], now: float) -> list[Any]:
        """What is to happen at Unix time ``now``: matches in place of publications for parts."""
        if not any(isinstance(one, Deliver) and _parts_of(one) for one in effects):
            return effects
        found: list[Any] = []
        for effect in effects:
            if isinstance(effect, Deliver) and _parts_of(effect):
                found += self._matches(effect, now)
            else:
                found.append(effect)
        return found

    def _matches(self, effect: Deliver, now: float) -> Iterator[Any]:
        ordinary = tuple(label for label in effect.labels if not label.startswith(PART))
        if ordinary:
            yield attrs.evolve(effect, labels=ordinary)
        member = self._members.get(effect.client)
        if member is None or member.home:
            return
        publication, composites = effect.publication, member.composites
        time, missed = self._clock(), composites.lost
        arrival = Arrival(publication.id, publication.values, now)
        for label, match in composites.step(time, arrival):
            arrivals = [one for one in match.publications if isinstance(one, Arrival)]
            body = match_bytes(label, match.alternative, arrivals, now)
            if len(body) <= MOST_BYTES:
                yield Match(effect.client, body)
            else:
                missed.too_long += 1
        if missed:
            self.losses.add(missed)
            composites.unreported.add(missed)
            composites.lost = Losses()
        if composites.unreported and time - composites.reported_at >= REPORT_S:
            _report(member, time)
        if not ordinary:
            yield ForComposites(effect.client, publication.id)


def _report(member: Member, time: float) -> None:
    composites = member.composites
    log.warning(
        "composite subscriptions of a client bring too much: it misses some matches",
        name=member.name,
        **attrs.asdict(composites.unreported),
    )
    composites.unreported, composites.reported_at = Losses(), time


def _drop(store: Store, row: StoredComposite) -> None:
    store.broker.drop_composite(row.client, row.label)


def _parts_of(effect: Deliver) -> bool:
    return any(label.startswith(PART) for label in effect.labels)


# What clients of a broker write, read: filters and publications, with or without a schema.


@frozen
class Content:
    """What filters and publications may be about.

    Attributes:
        schema: names and types that they have to fit; None: anything.
    """

    schema: Schema | None = None

    def filter(self, text: str) -> Filter:
        """The filter that a client wrote, in gossamer's language or PADRES'.

        Raises:
            ExpressionError: it is none; its column says where.
            ContentError: it is too long for others to read.
        """
        found = filters.parse(text, self.schema)
        plain_filter(found)
        return found

    def composite(self, text: str) -> Composite:
        """The composite subscription that a client wrote; raises `ExpressionError`."""
        return parse_composite(text, self.schema)

    def publication(self, data: Mapping[str, Any]) -> Publication:
        """The publication that travelled from a client as plain data.

        Raises:
            RequestError: a value is none.
            ContentError: the values do not fit the schema, or are too long for others to read.
        """
        try:
            values = exact_publication(read_values(data, "values"), self.schema)
        except MalformedMessageError as error:
            reason = f"{error.field} holds {error.value}, expected {error.expected}"
            raise RequestError(reason) from None
        plain_values(values)
        return values


def check_label(label: str) -> None:
    """Refuse what is no label for a client to choose; raises `RequestError`."""
    if not 0 < len(label) <= MAX_NAME or not label.isprintable():
        reason = f"a label has 1 to {MAX_NAME} printable characters, expected other than {label!r}"
        raise RequestError(reason)
    if label.startswith(PART):
        raise RequestError(f"a label does not begin with {PART!r}, expected another one")


def check_window(text: str, within_s: float | None) -> None:
    """Refuse a composite subscription without a window, and a window without that.

    Args:
        text: of a subscription; a composite one begins with a brace.
        within_s: seconds, None for no window.

    Raises:
        RequestError: it has only one of the two.
    """
    if is_composite(text) and within_s is None:
        reason = "a composite subscription ('{...}') needs a window in seconds, as of --within 10"
        raise RequestError(reason)
    if within_s is not None and not is_composite(text):
        reason = (
            "only a composite subscription has a window (--within), such as '{a > 1} & {b > 1}'"
        )
        raise RequestError(reason)
