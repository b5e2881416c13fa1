"""Queues and chains in arrays against plain lists, and compiled code of whatever users edit."""

from __future__ import annotations

import dataclasses
import heapq
import struct
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gossamer.compiled.store import FolderStore, keep_compiled_code
from gossamer.protocol.kernel import errors, keyed_code, rules
from gossamer.protocol.kernel.draws import float_to_word, word_to_float
from gossamer.protocol.kernel.records import BODY, LENGTH
from gossamer.protocol.kernel.rows.hash_chains import CHAINED_FROM, chain, chains_of, place_in_ring
from gossamer.sim.engine import event_queue
from support.own_protocols import Version, run_script, write_version

# Block boundaries of the wheel's levels are at multiples of 2^12, 2^24 and 2^36 ticks.
STARTS = st.sampled_from([0, 4090, (1 << 24) - 3, (1 << 36) - 2])
DELAYS = st.integers(0, 8) | st.integers(4090, 4100) | st.integers(0, 20_000) | st.just(1 << 13)
ACTION = st.tuples(DELAYS, st.integers(BODY, 40), st.integers(0, 3))
ACTIONS = st.lists(ACTION, min_size=1, max_size=30)
ROW = 1


def record(length: int, name: int) -> Any:
    words = np.full(length, name, np.int64)
    words[LENGTH] = length
    return words


def take(queue: event_queue.EventQueue) -> list[int] | None:
    slot = event_queue.pop(queue)
    if slot < 0:
        return None
    at = int(slot) + event_queue.RECORD
    words: list[int] = queue.words[at : at + queue.words[at + LENGTH]].tolist()
    event_queue.release(queue, slot, event_queue.size_of_slot(words[LENGTH]))
    return words


@pytest.mark.parametrize("compiled", [False, True])
@given(start=STARTS, actions=ACTIONS)
def test_records_in_order(compiled: bool, start: int, actions: list[tuple[int, int, int]]) -> None:
    """Whatever delays and sizes, also when records are added between those taken."""
    with rules.use_compiled(compiled):
        queue = event_queue.make_event_queue(1 << 13)
        queue.marks[event_queue.NOW] = start
        oracle: list[tuple[int, int, int]] = []
        for name, (delay, length, taken) in enumerate(actions):
            due = int(queue.marks[event_queue.NOW]) + delay
            event_queue.push(queue, due, record(length, name), 0)
            heapq.heappush(oracle, (due, name, length))
            for _ in range(taken):
                take_one(queue, oracle)
            assert queue.marks[event_queue.PENDING] == len(oracle)
        while oracle:
            take_one(queue, oracle)
        assert take(queue) is None


def take_one(queue: event_queue.EventQueue, oracle: list[tuple[int, int, int]]) -> None:
    if not oracle:
        return
    due, name, length = heapq.heappop(oracle)
    while queue.marks[event_queue.NOW] < due:
        assert event_queue.pop(queue) < 0
        event_queue.advance(queue)
    assert take(queue) == record(length, name).tolist()


@given(lengths=st.lists(st.integers(BODY, 300), min_size=1, max_size=20), turns=st.integers(2, 5))
def test_freed_slots_are_used_again(lengths: list[int], turns: int) -> None:
    """The pool does not grow when the same records come again and again."""
    queue = event_queue.make_event_queue(1 << 15)
    used = set()
    for _ in range(turns):
        for name, length in enumerate(lengths):
            event_queue.push(queue, int(queue.marks[event_queue.NOW]), record(length, name), 0)
        used.add(int(queue.marks[event_queue.USED]))
        for name, length in enumerate(lengths):
            assert take(queue) == record(length, name).tolist()
        event_queue.advance(queue)
    assert len(used) == 1


@given(lengths=st.lists(st.integers(BODY, 300), min_size=1, max_size=20))
def test_records_survive_an_enlargement(lengths: list[int]) -> None:
    """And the larger pool has the room asked for."""
    words = sum(8 << event_queue.size_of_slot(length) for length in lengths)
    queue = event_queue.make_event_queue(words)
    for name, length in enumerate(lengths):
        event_queue.push(queue, 5000, record(length, name), 0)
    assert not event_queue.has_room(queue, 1)
    queue = event_queue.enlarged(queue, 99, 1 << 20)
    assert event_queue.has_room(queue, 99)
    assert queue.words.ctypes.data % 64 == 0
    for _ in range(5000):
        event_queue.advance(queue)
    for name, length in enumerate(lengths):
        assert take(queue) == record(length, name).tolist()


def test_a_queue_at_its_limit_keeps_its_records_and_may_put_them_off() -> None:
    queue = event_queue.make_event_queue(16)
    event_queue.push(queue, 0, record(BODY, 7), 0)
    with pytest.raises(errors.CapacityError, match="the event queue is full at 20 entries"):
        event_queue.enlarged(queue, 13, 20)
    assert event_queue.enlarged(queue, 12, 20).words.shape == (20,)
    assert take(queue) == record(BODY, 7).tolist()
    # A popped slot that is enlisted again comes once more, behind what was there.
    queue = event_queue.make_event_queue(64)
    event_queue.push(queue, 0, record(BODY, 1), 0)
    event_queue.push(queue, 2, record(BODY, 2), 0)
    slot = event_queue.pop(queue)
    assert queue.words[slot + event_queue.NEXT] == -1
    event_queue.enlist(queue, slot, 2)
    for _ in range(2):
        assert event_queue.pop(queue) < 0
        event_queue.advance(queue)
    assert [take(queue), take(queue)] == [record(BODY, 2).tolist(), record(BODY, 1).tolist()]
    assert queue.marks[event_queue.PENDING] == 0


class Ring:
    """A ring of words, as rules write it."""

    def __init__(self, size: int, heads: int) -> None:
        self.rows = np.full((2, size), -1, np.int64)
        self.heads = np.zeros((2, heads), np.int64)
        self.older = np.zeros((2, size if heads else 0), np.int64)
        self.next = 0

    def place_of(self, word: int) -> int:
        return int(place_in_ring(self.rows, self.heads, self.older, ROW, self.next, word))

    def add(self, word: int) -> None:
        self.rows[ROW, self.next] = word
        chain(self.heads, self.older, ROW, self.next, word)
        self.next = (self.next + 1) % self.rows.shape[1]


@pytest.mark.parametrize("compiled", [False, True])
@given(
    size=st.integers(1, 9),
    heads=st.sampled_from([0, 1, 2, 4, 8]),
    words=st.lists(st.integers(0, 40), max_size=80),
    restarts=st.sets(st.integers(0, 79)),
)
def test_words_are_found_where_they_are(
    compiled: bool, size: int, heads: int, words: list[int], restarts: set[int]
) -> None:
    """Few heads or none, so that chains are long, and lead to places that were written anew."""
    ring = Ring(size, heads)
    with rules.use_compiled(compiled):
        for i, word in enumerate(words):
            if i in restarts:
                ring.rows[ROW] = -1  # as a peer that starts again
            row: list[Any] = ring.rows[ROW].tolist()
            expected = row.index(word) if word in row else -1
            assert ring.place_of(word) == expected
            if expected < 0:
                ring.add(word)
            held = [one for one in ring.rows[ROW].tolist() if one >= 0]
            assert [ring.rows[ROW, ring.place_of(one)] for one in held] == held
    assert (ring.rows[0] == -1).all()
    assert not ring.heads[0].any()


@pytest.mark.parametrize("words", [1, CHAINED_FROM - 1, CHAINED_FROM, 1000, 4096, 1 << 16])
def test_a_large_ring_has_a_head_for_each_of_its_words(words: int) -> None:
    heads, older = chains_of(words)
    if words < CHAINED_FROM:
        assert (heads, older) == (0, 0)
    else:
        assert words <= heads < 2 * words
        assert heads & (heads - 1) == 0
        assert older == words


def test_identifiers_share_few_chains() -> None:
    """Those that follow one another none, and drawn ones as many as by chance."""
    draws = np.random.default_rng(1)
    for words, used in ((np.arange(3000), 1024), (draws.integers(0, 1 << 60, 3000), 900)):
        ring = Ring(1000, chains_of(1000)[0])
        with rules.use_compiled(False):
            for word in words.tolist():
                ring.add(word)
        assert np.count_nonzero(ring.heads[ROW]) >= used


@pytest.mark.parametrize("compiled", [False, True])
@given(
    number=st.floats(allow_nan=True, allow_infinity=True, allow_subnormal=True),
    word=st.integers(-(1 << 63), (1 << 63) - 1),
)
def test_floats_and_words_pass_bit_for_bit(compiled: bool, number: float, word: int) -> None:
    with rules.use_compiled(compiled):
        bits = int(float_to_word(number))
        back = float(word_to_float(bits))
        assert int(float_to_word(word_to_float(word))) == word
    assert struct.pack("<d", number) == struct.pack("<q", bits) == struct.pack("<d", back)


PLACES = [field.name for field in dataclasses.fields(Version)]
SMALL_NUMBERS = st.integers(0, 3)
VERSIONS = st.builds(
    Version, **{name: st.booleans() if name == "branch" else SMALL_NUMBERS for name in PLACES}
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("edited")
    import_module("gossamer.sim.engine.loops")  # sets the user's folder for code, at first
    rules.keep_code_in(FolderStore(folder / "code"))
    yield folder
    keep_compiled_code()


@pytest.fixture(scope="module")
def unedited(folder: Path) -> list[int]:
    return run_version(folder / "own", Version())[0]


def forget_process() -> None:
    """Let what comes next find compiled code as a new process does: in the folder only."""
    keyed_code._dispatchers.clear()


def run_version(folder: Path, version: Version) -> tuple[list[int], list[int]]:
    names = run_script(write_version(folder, version), version.argument)
    return names["compiled"].a.tolist(), names["interpreted"].a.tolist()


@pytest.mark.parametrize("place", PLACES)
def test_an_edit_at_any_place_is_compiled(place: str, folder: Path, unedited: list[int]) -> None:
    edited = dataclasses.replace(Version(), **{place: 2 if place != "branch" else False})  # type: ignore[arg-type]
    forget_process()
    compiled, interpreted = run_version(folder / "own", edited)
    assert compiled == interpreted
    assert compiled != unedited, f"the edit of {place} is none"


@pytest.mark.usefixtures("unedited")
def test_a_version_is_found_again_whatever_stands_elsewhere(folder: Path) -> None:
    kept = sorted((folder / "code").iterdir())
    assert kept
    forget_process()
    script = write_version(folder / "elsewhere", Version())
    script.write_text("# a remark\n" + script.read_text())
    names = run_script(script, 1)
    assert names["compiled"].a.tolist() == names["interpreted"].a.tolist()
    assert sorted((folder / "code").iterdir()) == kept


@settings(max_examples=settings().max_examples // 8)
@given(versions=st.lists(st.tuples(VERSIONS, st.booleans(), st.booleans()), min_size=2, max_size=4))
def test_versions_never_meet(folder: Path, versions: list[tuple[Version, bool, bool]]) -> None:
    """One name, two folders, one cache; some versions in one process and some in another."""
    for version, elsewhere, new_process in versions:
        if new_process:
            forget_process()
        compiled, interpreted = run_version(folder / ("b" if elsewhere else "a"), version)
        assert compiled == interpreted, str(versions)
