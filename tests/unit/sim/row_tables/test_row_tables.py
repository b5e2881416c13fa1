"""Workloads row by row: the rows of the simulator, whatever the order and the number of parts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.protocol.brokers.core.messages import Subscribe, Unsubscribe
from gossamer.protocol.content.filters import parse
from gossamer.sim.errors import ScenarioError
from gossamer.sim.row_tables.keywords import make_keyword_rows
from gossamer.sim.row_tables.kinds import KINDS, WorkloadRequest, make_workload
from gossamer.sim.row_tables.quotes import QuoteRows, QuoteTables, source_of
from gossamer.sim.row_tables.subscriptions import CommuterRows, CoveringRows, SienaRows
from gossamer.sim.row_tables.table import RowTable, fitted_exponent, write_plainly
from gossamer.sim.row_tables.vinifera import ViniferaRows
from gossamer.sim.studies.dissemination.topologies import barabasi_albert
from gossamer.sim.studies.dissemination.workload import Locality
from gossamer.sim.studies.peers.inputs.scenario import Subscriptions
from gossamer.sim.studies.peers.inputs.workload import Workload
from gossamer.sim.studies.stock_quotes import PRICES, make_quotes
from gossamer.sim.studies.tree_brokers.commuters import Commuters
from gossamer.sim.studies.tree_brokers.covering_workload import CoveringWorkload
from gossamer.sim.studies.tree_brokers.scene import MINUTE
from gossamer.sim.studies.tree_brokers.siena import Siena
from gossamer.sim.study.draws import rows_from, shuffled

SMALL = {"subscriptions": 300, "events": 200, "seed": 7}
SETTINGS = {"keywords": {"brokers": 50}}


def asked(kind: str, seed: int = 7) -> WorkloadRequest:
    return WorkloadRequest(**(SMALL | {"seed": seed, "settings": SETTINGS.get(kind, {})}))  # type: ignore[arg-type]


def tables_of(kind: str) -> dict[str, RowTable]:
    return {table.name: table for table in make_workload(kind, asked(kind)).tables()}


@pytest.mark.parametrize("kind", KINDS)
def test_any_parts_make_the_same_rows(kind: str) -> None:
    for table in tables_of(kind).values():
        whole = table.table()
        for chunk in (1, 7, 64, 1000):
            parts = pa.Table.from_batches(table.batches(chunk), table.schema)
            assert parts.equals(whole), (table.name, chunk)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_do_not_hang_on_what_else_is_asked_for(kind: str) -> None:
    for table in tables_of(kind).values():
        some = np.array([5, 0, 3], np.int64)
        apart = [table.batch(np.array([unit], np.int64)) for unit in some]
        if table.name not in ("moves", "sessions"):  # which stand in the order of units
            assert pa.Table.from_batches(apart) == pa.Table.from_batches([table.batch(some)])
        assert tables_of(kind)[table.name].part(0, 20) == table.part(0, 20)


@pytest.mark.parametrize("kind", KINDS)
def test_another_seed_makes_other_rows_none_null_and_every_column_explained(kind: str) -> None:
    other = make_workload(kind, asked(kind, seed=8)).tables()
    for table, changed in zip(tables_of(kind).values(), other, strict=True):
        made = table.table()
        assert not made.equals(changed.table()), table.name
        assert made.num_rows > 0
        assert [field.name for field in table.fields] == made.column_names
        assert all(field.meaning for field in table.fields)
        assert all(made[name].null_count == 0 for name in made.column_names)


@pytest.mark.parametrize(
    "spec",
    [
        Subscriptions(),
        Subscriptions(kind="random", attributes=3, width=0.02),
        Subscriptions(attributes=2, per_node=3, subscribers=0.5, correlation=0.4),
        Subscriptions(kind="topics", places=9, per_node=3),
    ],
    ids=["skewed", "random", "mixed", "topics"],
)
def test_vinifera_rows_are_those_of_a_simulation(spec: Subscriptions) -> None:
    nodes, seed = 40, 11
    simulated = Workload(spec, seed)
    boxes, constrained = simulated.subscriptions(nodes)
    rows = ViniferaRows(seed=seed, subscriptions=nodes * spec.per_node, events=50, spec=spec)
    subscriptions, events = (table.table().to_pydict() for table in rows.tables())
    for a in range(spec.attributes):
        assert subscriptions[f"low_{a}"] == boxes[:, :, 2 * a].ravel().tolist()
        assert subscriptions[f"high_{a}"] == boxes[:, :, 2 * a + 1].ravel().tolist()
        assert events[f"value_{a}"] == simulated.events(0, 50)[:, a].tolist()
    assert subscriptions["constrained"] == constrained.ravel().tolist()
    assert subscriptions["node"] == np.repeat(np.arange(nodes), spec.per_node).tolist()
    assert events["publisher"] == simulated.publisher_rows(np.arange(50)).tolist()


def test_events_without_correlation_fall_anywhere() -> None:
    rows = np.arange(500)
    together, apart, half = (
        Workload(Subscriptions(correlation=share), 3).event_rows(rows) for share in (1.0, 0.0, 0.5)
    )
    assert (together[1] >= 0).all()
    assert (apart[1] == -1).all()
    kept = half[1] >= 0
    assert 0.4 < kept.mean() < 0.6
    assert (half[0][kept] == together[0][kept]).all()
    assert (half[0][~kept] == apart[0][~kept]).all()


def test_siena_rows_are_those_of_the_broker_workload() -> None:
    spec = Siena(seed=5, names=20, most_constraints=8)
    rows = SienaRows(subscriptions=120, events=120, spec=spec)
    subscriptions, events = (table.table().to_pylist() for table in rows.tables())
    for row, wanted in zip(subscriptions, spec.subscriptions(rows_from(0, 120)), strict=True):
        terms = zip(row["names"], row["operators"], row["values"], strict=True)
        assert parse(" and ".join(" ".join(map(str, term)) for term in terms)) == wanted
    for row, published in zip(events, spec.publications(rows_from(0, 120)), strict=True):
        assert dict(zip(row["names"], row["values"], strict=True)) == published
        assert row["names"] == list(published)


def test_covering_rows_are_the_subscriptions_of_the_staircase() -> None:
    spec = CoveringWorkload(roots=9, degree=6, seed=4)
    subscriptions, events = (
        table.table().to_pylist() for table in CoveringRows(spec=spec, events=40).tables()
    )
    made = {
        (parse(f"x >= {row['x']} and y >= {row['y']}"), row["root"], row["is_root"])
        for row in subscriptions
    }
    assert len(subscriptions) == len(made)
    assert made == {(one.filter, one.root, one.is_root) for one in spec.subscriptions()}
    x, y = spec.publication_rows(rows_from(0, 40), 6.0)
    assert [(row["x"], row["y"]) for row in events] == list(zip(x, y, strict=True))


def test_commuter_rows_are_the_moves_of_the_scene() -> None:
    spec = Commuters(subscribers=150, seed=6, content=Siena(seed=6), publish_every=60 * MINUTE)
    span = 120 * MINUTE
    _, moves, _ = CommuterRows(spec=spec, events=1, span=span).tables()
    left, done = {}, set()
    for step in spec.steps(span):
        if isinstance(step.message, Unsubscribe):
            left[step.message.label] = (step.at, step.broker)
        elif isinstance(step.message, Subscribe):
            at, home = left.pop(step.message.label)
            done.add((int(step.message.label), at, home, step.broker))
    columns = ("subscription", "at", "from", "to")
    made = {tuple(row[name] for name in columns) for row in moves.table().to_pylist()}
    assert len(made) > 100
    assert made == done


def test_keyword_rows_are_the_workload_of_the_trees() -> None:
    graph = barabasi_albert(60, seed=2).graph
    locality = Locality(neighbourhood=0.2, keywords=80, documents=150)
    spec = make_keyword_rows(graph, locality, 9)
    workload = spec.workload()
    assert len(workload.documents) == 150
    wanted_by = dict(zip(workload.places, workload.subscriptions, strict=True))
    near = {broker: set(spec.near[broker, :12].tolist()) for broker in range(60)}
    keywords = rows_from(0, 80)
    rows = zip(spec.roots_of(keywords), spec.subscribers_of(keywords).tolist(), strict=True)
    for keyword, (root, row) in enumerate(rows):
        assert len(set(row)) == locality.subscribers
        assert set(row) <= near[int(root)]
        assert all(keyword in wanted_by[broker] for broker in row)
    for document in workload.documents:
        assert 1 <= len(document) <= locality.document_keywords
        assert list(document) == sorted(set(document))
    assert workload.sample(graph).documents == 150


def test_quote_rows_keep_what_holds_within_a_day() -> None:
    spec = QuoteRows(source=source_of(make_quotes(500, 3)), seed=3)
    quotes = spec.quotes_of(rows_from(0, 400))
    columns = QuoteTables(subscriptions=1, events=400, spec=spec).tables()[1].table().to_pylist()
    for quote, row in zip(quotes, columns, strict=True):
        for key in ("symbol", "date", *PRICES, "volume"):
            assert quote[key] == row[key]
        assert row["low"] <= min(row["open"], row["close"])
        assert max(row["open"], row["close"]) <= row["high"]


@pytest.mark.parametrize("covering", ["little", "heavy"])
def test_quote_subscriptions_match_quotes_and_are_filters(covering: str) -> None:
    spec = QuoteRows(source=source_of(make_quotes(500, 3)), seed=3, covering=covering)
    filters = spec.subscriptions_of(rows_from(0, 200))
    quotes = spec.quotes_of(rows_from(0, 2_000))
    assert sum(any(one.matches(quote) for quote in quotes) for one in filters) > 20
    rows = QuoteTables(subscriptions=200, events=1, spec=spec).tables()[0].table().to_pylist()
    for row, wanted in zip(rows, filters, strict=True):
        sign = "==" if row["whole"] else "startswith"
        text = f'symbol {sign} "{row["symbol"]}" and {row["price"]} >= {row["low"]} '
        text += f"and {row['price']} < {row['high']}"
        if row["volume"] >= 0:
            text += f" and volume > {row['volume']}"
        assert parse(text) == wanted


@given(size=st.integers(1, 5_000), seed=st.integers(0, 2**40))
def test_a_shuffle_asked_for_row_by_row_is_a_permutation(size: int, seed: int) -> None:
    places = shuffled(seed, 1, np.arange(size), size)
    assert sorted(places.tolist()) == list(range(size))
    one = size // 2
    assert shuffled(seed, 1, np.array([one]), size)[0] == places[one]


@given(exponent=st.floats(0.2, 3.0), places=st.integers(2, 200))
def test_the_exponent_of_counts_is_found_if_there_is_one(exponent: float, places: int) -> None:
    weights = np.arange(1, places + 1) ** -exponent
    found, error = fitted_exponent(np.rint(1e9 * weights / weights.sum()).astype(np.int64))
    assert found == pytest.approx(exponent, abs=1e-3)
    assert error > 0
    assert np.isnan(fitted_exponent(np.zeros(5, np.int64))[0])
    assert np.isnan(fitted_exponent(np.array([7]))[0])


def test_plain_writing_writes_the_rows(tmp_path: Path) -> None:
    table = tables_of("vinifera")["events"]
    assert write_plainly(table, tmp_path / "events.parquet", chunk=64) == 200
    assert pq.read_table(tmp_path / "events.parquet").equals(table.table())


@pytest.mark.parametrize(
    ("kind", "asked", "sentence"),
    [
        ("zipf", {}, "the kind of workload is 'zipf', expected one of vinifera, siena"),
        ("vinifera", {"settings": {"widht": 0.1}}, "workload.widht is an unknown key"),
        ("vinifera", {"settings": {"width": 0}}, "subscriptions.width is 0.0, expected"),
        ("siena", {"settings": {"names": "many"}}, "workload.names is 'many', expected of"),
        ("siena", {"settings": {"names": 3}}, "workload.most_constraints is 10, expected from 1"),
        ("siena", {"settings": {"exponent": -1}}, "workload.exponent is -1, expected a number"),
        ("siena", {"settings": {"shares": [1, 0]}}, "workload.shares is [1, 0], expected"),
        ("covering", {"settings": {"degree": -1}}, "workload.degree is -1, expected 0 or more"),
        ("keywords", {"settings": {"brokers": 1}}, "workload.brokers is 1, expected a whole"),
        ("churn", {"settings": {"distribution": "normal"}}, "expected weibull or pareto"),
        ("churn", {"settings": {"rhythm": 1.0}}, "workload.rhythm is 1.0, expected a share"),
        ("churn", {"settings": {"session_shape": 0}}, "workload.session_shape is 0, expected a fi"),
        (
            "churn",
            {"settings": {"absence_shape": 2, "distribution": "pareto"}},
            "workload.session_shape is 0.6, expected a finite number greater than 1",
        ),
        ("churn", {"settings": {"absence_s": -1}}, "workload.absence_s is -1, expected a finite"),
        ("churn", {"settings": {"days": 0}}, "workload.days is 0, expected a finite number"),
        (
            "churn",
            {"settings": {"crowd_nodes": 1, "crowd_within_s": -1}},
            "workload.crowd_within_s is -1, expected a number of seconds",
        ),
        ("keywords", {"settings": {"nearby": -1}}, "workload.nearby is -1, expected a whole"),
        ("churn", {"subscriptions": 0}, "workload.nodes is 0, expected a whole number from 1"),
        ("quotes", {"source": Path("nowhere.gz")}, "nowhere.gz: the file of quotes is unreadable"),
        ("siena", {"source": Path("x")}, "--from is 'x', expected no file, which only keywords"),
        ("commuters", {"settings": {"span": 0}}, "workload.span is 0, expected"),
        ("commuters", {"settings": {"walk_every": 5}}, "workload.away is 1000000, expected"),
        ("siena", {"events": -1}, "--events is -1"),
    ],
)
def test_impossible_workloads_refused(kind: str, asked: dict[str, object], sentence: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        make_workload(kind, WorkloadRequest(**asked))  # type: ignore[arg-type]
    assert sentence in str(refused.value)
