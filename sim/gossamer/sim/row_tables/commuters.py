"""Subscribers in a city in the morning, see `tree_brokers.workloads.commuters`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa

from gossamer.sim.errors import ScenarioError
from gossamer.sim.row_tables.subscriptions import SienaRows
from gossamer.sim.row_tables.table import Field, RowTable, text_array
from gossamer.sim.studies.tree_brokers.workloads.commuters import COMMUTER, WANDERER, Commuters
from gossamer.sim.study.draws import Int64s

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
        parts = [
            self._commutes(rows[sorts == COMMUTER]),
            *self._walks(rows[sorts == WANDERER]),
        ]
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
