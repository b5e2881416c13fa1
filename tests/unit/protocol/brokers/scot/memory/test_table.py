"""Routing tables that share a catalogue: each knows its own, and the last lets it forget."""

from __future__ import annotations

import random

import attrs
import numpy as np
import pytest

from gossamer.protocol.brokers.core.identifiers import Hop, Id, client, neighbour
from gossamer.protocol.brokers.scot import ClusterBitVector
from gossamer.protocol.brokers.scot.memory.catalogue import Catalogue
from gossamer.protocol.brokers.scot.memory.table import Entry, RoutingTable
from gossamer.protocol.content.filters import parse
from support.plain_index import PlainIndex

HOPS = (client("S"), client("T"), neighbour("B"), neighbour("C"))


def entry(number: int, hop: Hop, text: str = "x < 3") -> Entry:
    label = "mine" if hop.is_client else ""
    return Entry(Id("A", number), parse(text), hop, ClusterBitVector.of(1), label)


def test_a_table_is_its_entries_whatever_others_hold() -> None:
    """Against dictionaries, over random changes of three tables that share a catalogue."""
    draw = random.Random(1)
    catalogue = Catalogue(PlainIndex)
    tables = [RoutingTable(catalogue) for _ in range(3)]
    plain: list[dict[Id, Entry]] = [{} for _ in tables]
    known = [entry(i, HOPS[0], f"x < {draw.randrange(1, 5)}") for i in range(8)]
    for _ in range(600):
        place, chosen = draw.randrange(3), draw.choice(known)
        table, oracle = tables[place], plain[place]
        if chosen.id in oracle:
            table.remove(chosen.id)
            del oracle[chosen.id]
        else:
            hop = draw.choice(HOPS)
            label = "mine" if hop.is_client else ""
            held = attrs.evolve(chosen, hop=hop, label=label)
            table.add(held)
            oracle[chosen.id] = held
        value = {"x": draw.randrange(5)}
        matching = [one for one in oracle.values() if one.filter.matches(value)]
        assert len(table) == len(oracle)
        assert list(table) == [oracle[id_] for id_ in sorted(oracle)]
        assert sorted(table.match(value), key=lambda one: one.id) == sorted(
            matching, key=lambda one: one.id
        )
        found = table.directions(value)
        assert set(found.own) == {one for one in matching if one.hop.is_client}
        assert found.neighbours == {one.hop.name for one in matching if not one.hop.is_client}
        assert catalogue.held == len({id_ for one in plain for id_ in one})


def test_what_covers_an_entry_is_looked_for_in_its_direction() -> None:
    table = RoutingTable(Catalogue(PlainIndex))
    for number, (hop, text) in enumerate(
        [(HOPS[0], "x < 9"), (HOPS[1], "x < 5"), (HOPS[2], "x < 9"), (HOPS[2], "x < 2")]
    ):
        table.add(entry(number, hop, text))
    numbers = [one.id.number for one in table.covering(table[Id("A", 1)])]
    assert numbers == [0], "clients are one direction, a neighbour is another"
    assert [one.id.number for one in table.covered_by(table[Id("A", 2)])] == [3]
    assert table.covering(table[Id("A", 2)]) == []


def test_what_is_not_held_is_not_found() -> None:
    catalogue = Catalogue(PlainIndex)
    one, other = RoutingTable(catalogue), RoutingTable(catalogue)
    one.add(entry(1, HOPS[2]))
    assert other.get(Id("A", 1)) is None
    for id_ in (Id("A", 1), Id("A", 2)):
        with pytest.raises(KeyError):
            other.remove(id_)
        with pytest.raises(KeyError):
            other[id_]
    assert one[Id("A", 1)] == entry(1, HOPS[2])


def test_tables_hold_two_bytes_a_subscription() -> None:
    catalogue = Catalogue(PlainIndex)
    home, away = RoutingTable(catalogue), RoutingTable(catalogue)
    numbers = []
    for number in range(1_000):
        home.add(entry(number, HOPS[0]))
        numbers.append(catalogue.number_of(Id("A", number)))
    away.add_all(np.array(numbers, np.intp), "B")
    assert len(away) == 1_000
    assert away[Id("A", 7)].hop == neighbour("B")
    assert away._codes.nbytes < 3 * 1_024
