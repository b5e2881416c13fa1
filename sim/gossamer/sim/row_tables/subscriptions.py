"""SIENA's subscriptions and publications, and those of a covering degree, as tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa

from gossamer.sim.errors import ScenarioError
from gossamer.sim.row_tables.table import Field, RowTable, list_array, text_array
from gossamer.sim.studies.tree_brokers.commuters import COMMUTER, WANDERER, Commuters
from gossamer.sim.studies.tree_brokers.covering_workload import CoveringWorkload
from gossamer.sim.studies.tree_brokers.siena import OPERATORS, Siena
from gossamer.sim.study.draws import Int64s

_WORDS = pa.list_(pa.string())
_NUMBERS = pa.list_(pa.int32())


@attrs.frozen(kw_only=True)
class SienaRows:
    """SIENA's broker workload.

    Attributes:
        subscriptions, events: rows of each table.
        spec: what they are like, seed and all.
    """

    subscriptions: int
    events: int
    spec: Siena

    def tables(self) -> tuple[RowTable, ...]:
        """Subscriptions, then events."""
        return (
            RowTable(
                name="subscriptions",
                units=self.subscriptions,
                fields=(
                    Field("subscription", pa.int64(), "row number"),
                    Field("names", _WORDS, "attribute of each constraint, in order of draw"),
                    Field("operators", _WORDS, "operator of each constraint"),
                    Field("values", _NUMBERS, "what each constraint compares with"),
                ),
                make=self.subscription_columns,
            ),
            RowTable(
                name="events",
                units=self.events,
                fields=(
                    Field("event", pa.int64(), "row number"),
                    Field("names", _WORDS, "attributes, in order of draw"),
                    Field("values", _NUMBERS, "value of each"),
                ),
                make=self.event_columns,
            ),
        )

    def subscription_columns(self, rows: Int64s) -> Mapping[str, Any]:
        """The columns of these subscriptions."""
        words, operators, values = self.spec.subscription_rows(rows)
        there = words >= 0
        lengths = there.sum(axis=1)
        signs = [operator.value for operator in OPERATORS]
        return {
            "subscription": rows,
            "names": list_array(lengths, text_array(self.spec.words(), words[there])),
            "operators": list_array(lengths, text_array(signs, operators[there])),
            "values": list_array(lengths, values[there].astype(np.int32)),
        }

    def event_columns(self, rows: Int64s) -> Mapping[str, Any]:
        """The columns of these publications."""
        words, values = self.spec.publication_rows(rows)
        there = words >= 0
        lengths = there.sum(axis=1)
        return {
            "event": rows,
            "names": list_array(lengths, text_array(self.spec.words(), words[there])),
            "values": list_array(lengths, values[there].astype(np.int32)),
        }


# Subscriptions of a covering degree, and publications (see `covering_workload`).


@attrs.frozen(kw_only=True)
class CoveringRows:
    """A workload in which every root covers as many subscriptions as another.

    Attributes:
        spec: roots, degree and seed; the number of subscriptions follows from them.
        events: rows of that table.
        reach: root subscriptions that a publication matches, about.
    """

    spec: CoveringWorkload
    events: int
    reach: float = 6.0

    def tables(self) -> tuple[RowTable, ...]:
        """Subscriptions, then events."""
        return (
            RowTable(
                name="subscriptions",
                units=self.spec.roots * self.spec.step,
                fields=(
                    Field("subscription", pa.int64(), "row number"),
                    Field("root", pa.int64(), "number of the root that it is or that covers it"),
                    Field("is_root", pa.bool_(), "whether no other subscription covers it"),
                    Field("x", pa.int64(), "it asks for x of at least this"),
                    Field("y", pa.int64(), "and for y of at least this"),
                ),
                make=self.subscription_columns,
            ),
            RowTable(
                name="events",
                units=self.events,
                fields=(
                    Field("event", pa.int64(), "row number"),
                    Field("x", pa.int64(), "its x"),
                    Field("y", pa.int64(), "its y"),
                ),
                make=self.event_columns,
            ),
        )

    def subscription_columns(self, rows: Int64s) -> Mapping[str, Any]:
        """The columns of these subscriptions."""
        root, child, x, y = self.spec.subscription_rows(rows)
        is_root = np.equal(child, 0)
        return {"subscription": rows, "root": root, "is_root": is_root, "x": x, "y": y}

    def event_columns(self, rows: Int64s) -> Mapping[str, Any]:
        """The columns of these publications."""
        x, y = self.spec.publication_rows(rows, self.reach)
        return {"event": rows, "x": x, "y": y}


# Subscribers in a city in the morning, see `tree_brokers.workloads.commuters`.


SORTS: Final = ("commuter", "stationary", "wanderer")


@attrs.frozen(kw_only=True)
class CommuterRows:
    """Who lives where, who moves when, and what is published; times are microseconds.

    Attributes:
        spec: subscribers and how they move, seed and all; ``spec.content`` is SIENA's.
        events: rows of that table.
        span: length of the scene; moves after it are left out.
    """

    spec: Commuters
    events: int
    span: int

    def __attrs_post_init__(self) -> None:
        if self.spec.away > self.spec.walk_every:
            expected = "at most workload.walk_every, or a wanderer might still be away"
            raise ScenarioError(None, "workload.away", self.spec.away, expected)

    def tables(self) -> tuple[RowTable, ...]:
        """Subscriptions with their homes, moves, events with their publishers."""
        content = SienaRows(
            subscriptions=self.spec.subscribers, events=self.events, spec=self.spec.content
        )
        subscriptions, events = content.tables()
        text, number = pa.string(), pa.int64()
        return (
            attrs.evolve(
                subscriptions,
                fields=(
                    *subscriptions.fields,
                    Field("sort", text, ", ".join(SORTS)),
                    Field("home", text, "broker at which it is at first"),
                ),
                make=self.subscription_columns,
            ),
            RowTable(
                name="moves",
                units=self.spec.subscribers,
                fields=(
                    Field("subscription", number, "who moves"),
                    Field("at", number, "when it leaves, microseconds of the scene"),
                    Field("from", text, "broker that it leaves"),
                    Field("to", text, "broker that it goes to"),
                ),
                make=self.move_columns,
            ),
            attrs.evolve(
                events,
                fields=(
                    *events.fields,
                    Field("at", number, "when it is published, microseconds of the scene"),
                    Field("publisher", text, "broker at which it is published"),
                ),
                make=self.event_columns,
            ),
        )

    def subscription_columns(self, rows: Int64s) -> Mapping[str, Any]:
        """The columns of these subscribers."""
        content = SienaRows(subscriptions=0, events=0, spec=self.spec.content)
        hosts = self.spec.overlay.subscriber_hosts
        return {
            **content.subscription_columns(rows),
            "sort": text_array(SORTS, self.spec.sort_of(rows)),
            "home": text_array(hosts, self.spec.homes_of(rows)),
        }

    def event_columns(self, rows: Int64s) -> Mapping[str, Any]:
        """The columns of these publications."""
        content = SienaRows(subscriptions=0, events=0, spec=self.spec.content)
        hosts = self.spec.overlay.publisher_hosts
        return {
            **content.event_columns(rows),
            "at": rows * self.spec.publish_every,
            "publisher": text_array(hosts, self.spec.publishers_of(rows)),
        }

    def move_columns(self, rows: Int64s) -> Mapping[str, Any]:
        """The moves of these subscribers, by subscriber and time."""
        sorts = self.spec.sort_of(rows)
        parts = [self._commutes(rows[sorts == COMMUTER]), *self._walks(rows[sorts == WANDERER])]
        who, at, start, end = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        order = np.lexsort((at, who))
        hosts = self.spec.overlay.subscriber_hosts
        return {
            "subscription": who[order],
            "at": at[order],
            "from": text_array(hosts, start[order]),
            "to": text_array(hosts, end[order]),
        }

    def _commutes(self, who: Int64s) -> tuple[Int64s, ...]:
        spec = self.spec
        leaving, homes, offices = spec.leaving_of(who), spec.homes_of(who), spec.workplaces_of(who)
        moves = (leaving >= 0) & (leaving < self.span) & (homes != offices)
        return who[moves], leaving[moves].astype(np.int64), homes[moves], offices[moves]

    def _walks(self, who: Int64s) -> list[tuple[Int64s, ...]]:
        hosts = len(self.spec.overlay.subscriber_hosts)
        where = self.spec.homes_of(who)
        parts: list[tuple[Int64s, ...]] = []
        for turn in range(self.span // self.spec.walk_every + 1):
            at, strides = self.spec.walks_of(who, turn)
            reached = (where + strides) % hosts
            moves = (at < self.span) & (reached != where)
            parts.append((who[moves], at[moves], where[moves], reached[moves]))
            where = reached
        return parts
