"""The matching index by example: what it says of additions and removals, and its workload."""

from __future__ import annotations

import subprocess
import sys
from itertools import islice

import pytest

from gossamer.protocol.content.filters import covers, parse
from gossamer.protocol.content.matching.index import MatchingIndex
from gossamer.protocol.content.matching.search import HELD, NONE, make_table
from gossamer.protocol.content.matching.tree import build, gather
from gossamer.protocol.kernel.errors import ContentError
from gossamer.sim.studies.stock_quotes import make_quotes
from support.quote_subscriptions import heavy_covering, little_covering


def test_an_index_without_covering_has_roots_only_and_what_is_freed_is_used_again() -> None:
    index = MatchingIndex(covering=False)
    wide, narrow = index.add(parse("x > 1")), index.add(parse("x > 2"))
    assert (index.roots(), index.match({"x": 3})) == ([wide.id, narrow.id], [narrow.id, wide.id])
    assert index.remove(wide.id).new_roots == []
    index = MatchingIndex()
    for number in range(200):
        added = index.add(parse(f'x{number} > {number} and s == "{number}"'))
        if number >= 20:
            index.remove(added.id)
    table = index._storage.table
    assert (len(table.slots), len(table.records), len(table.wanted)) == (64, 1024, 64)


def test_unknown_ids_surrogates_and_nan_match_nothing() -> None:
    index = MatchingIndex()
    index.add(parse("x > 1"))
    for filter_id in (7, -1):
        with pytest.raises(ContentError, match=f"no filter has the id {filter_id}"):
            index.remove(filter_id)
    assert len(index) == 1
    assert parse("x > 1.0") in index
    assert index.id_of(parse("x > 2")) is None
    index = MatchingIndex()
    held = index.add(parse('s >= "a" and present(x)'))
    assert index.match({"s": "b", "x": 1}) == [held.id]
    assert index.match({"s": "b\ud800", "x": 1}) == []
    assert index.match({"s": "b", "x": float("nan")}) == []


def test_a_tree_without_free_nodes_stays_a_leaf_and_loses_nothing() -> None:
    table = make_table(filters=64, words=640, nodes=3, dimensions=1)
    for slot in range(64):
        header, row = (slot, NONE, 1, 0, NONE, HELD, 0), (0, 2 * slot, 2 * slot + 1)
        table.records[10 * slot : 10 * slot + 10] = header + row
        table.work[slot] = 10 * slot
    build.interpreted(table, 0, 64)
    assert gather.interpreted(table, 0) == 64
    assert sorted(table.work.tolist()) == list(range(0, 640, 10))


def test_the_content_layer_and_matching_interpreted_load_no_compiler() -> None:
    program = (
        "import sys\n"
        "import gossamer.protocol.content.subscription, gossamer.protocol.peer.space.encoding\n"
        "from gossamer.protocol.content.filters import parse\n"
        "from gossamer.protocol.content.matching.index import MatchingIndex\n"
        "index = MatchingIndex()\n"
        "assert index.match({'x': 3}) == []\n"
        "assert index.match({'x': 3}) == [] and index.add(parse('x > 1')).id == 0\n"
        "assert 'numba' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_workloads_cover_little_and_much() -> None:
    quotes = make_quotes(2_000, seed=1)
    assert make_quotes(2_000, seed=1) == quotes
    shares = {}
    for workload in (little_covering, heavy_covering):
        wanted = list(islice(workload(quotes, 1), 400))
        assert list(islice(workload(quotes, 1), 400)) == wanted
        assert 3 <= (sum(len(one.comparisons()) for one in wanted) / len(wanted)) <= 5
        index = MatchingIndex()
        for one in wanted:
            index.add(one)
        shares[workload] = len(index.roots()) / len(wanted)
        above = index.covered_by(next(i for i in range(len(index)) if not index.is_root(i)))
        assert above is not None
        assert any(covers(index[above], one) for one in wanted)
    assert shares[heavy_covering] < 0.5 < 0.9 < shares[little_covering]
