"""What searches and copies rows does the same in its two forms, which are written apart."""

from __future__ import annotations

import ast
import inspect
import textwrap
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gossamer.protocol.kernel.rows.box_index import indexes_of
from gossamer.protocol.kernel.rows.row_search import (
    BLOCK,
    PAIR_BITS,
    around_in_column,
    copy_row,
    copy_words,
    digest_row,
    digest_rows,
    find_boxes,
    find_labelled_boxes,
    is_in_ring,
    mark_points,
    position,
    position_in_column,
    row_differs,
    write_rows,
)
from gossamer.protocol.kernel.rules import Rule, use_compiled
from gossamer.protocol.kernel.struct import Struct
from gossamer.protocol.peer.sampling import descriptors, sampler
from gossamer.protocol.peer.settings.config import Settings
from gossamer.protocol.peer.space.ring import RING_MASK
from gossamer.protocol.peer.state.links import put_link, slot_of, write_link, write_own_descriptor
from gossamer.protocol.peer.state.lookup import slots_around
from gossamer.protocol.peer.state.state import make_state
from gossamer.protocol.peer.step import ABOUT_EVENTS, step, take_and_settle

VIEW, PROFILE = 5, 3
SLOTS = st.integers(0, VIEW - 1)
LARGE = (1 << 62) - 1
Form = Callable[[Any], Any]
Shape = int | tuple[int, ...]
EMPTY_SLOTS = arrays(np.bool_, 8)
END = st.integers(0, 30)


def numbers(shape: Shape, least: int, most: int) -> st.SearchStrategy[np.ndarray]:
    return arrays(np.int64, shape, elements=st.integers(least, most))


def mixed(shape: Shape, most: int = 4) -> st.SearchStrategy[np.ndarray]:
    return arrays(np.int64, shape, elements=st.integers(0, most) | st.just(LARGE))


class Links(Struct):
    links: np.ndarray
    link_profile: np.ndarray


class Boxes(Struct):
    boxes: np.ndarray


def unbox(state: Any) -> Any:
    """A struct or an array as a peer of its own hands it to interpreted rules."""
    return state.unboxed() if isinstance(state, Struct) else memoryview(state)


def in_every_form(act: Callable[[Form], Any]) -> Any:
    """What ``act``, which is given what to make of the state, does compiled and interpreted."""
    with use_compiled(True):
        compiled = act(lambda state: state)
    with use_compiled(False):
        assert act(lambda state: state) == act(unbox) == compiled
    return compiled


@given(table=numbers((2, 9, 3), -2, 3), word=st.integers(-2, 4), begin=END, end=END)
@example(table=np.zeros((2, 9, 3), np.int64), word=0, begin=27, end=19)
def test_words_are_found_where_first(table: np.ndarray, word: int, begin: int, end: int) -> None:
    rows = table[:, :, 2].copy()
    row = rows[1].tolist()
    expected = row.index(word) if word in row else -1
    assert in_every_form(lambda seen: int(position(seen(rows), 1, word))) == expected
    assert in_every_form(lambda seen: int(position_in_column(seen(table), 1, 2, word))) == expected
    begin = max(begin, end - len(row))
    held = word in [row[i % len(row)] for i in range(begin, end)]
    assert in_every_form(lambda seen: bool(is_in_ring(seen(rows), 1, begin, end, word))) == held


@given(rows=mixed((2, 3, 4), 1), words=mixed(6, 1), equal=st.booleans(), at=st.integers(0, 2))
def test_rows_differ_in_any_word(rows: np.ndarray, words: np.ndarray, equal: bool, at: int) -> None:
    if equal:
        words[at : at + 4] = rows[1, 2]
    expected = rows[1, 2].tolist() != words[at : at + 4].tolist()
    for form in (unbox, np.ndarray.tolist):
        with use_compiled(False):
            assert bool(row_differs(rows, 1, 2, form(words), at)) == expected
    found = in_every_form(lambda seen: bool(row_differs(seen(rows), 1, 2, seen(words), at)))
    assert found == expected


@given(rows=numbers((5, 3), -5, 5), first=st.integers(0, 4), count=st.integers(0, 3))
def test_rows_are_written_one_after_another(rows: np.ndarray, first: int, count: int) -> None:
    count = min(count, 5 - first)

    def act(seen: Form) -> Any:
        words = np.full(12, 9)
        write_rows(seen(rows), first, count, seen(words), 2)
        return words.tolist()

    flat = rows[first : first + count].ravel().tolist()
    assert in_every_form(act) == [9, 9, *flat, *[9] * (10 - len(flat))]


@given(
    rows=arrays(
        np.int64,
        st.tuples(st.just(2), st.just(4), st.integers(1, 9)),
        elements=st.integers(-(1 << 63), (1 << 63) - 1),
    ),
    before=st.integers(-(1 << 63), (1 << 63) - 1),
    count=st.integers(0, 4),
)
def test_digests_are_polynomials_of_the_words(rows: np.ndarray, before: int, count: int) -> None:
    expected = before
    for word in rows[1, :count].ravel().tolist():
        expected = expected * 6364136223846793005 + word
    expected = (expected + (1 << 63)) % (1 << 64) - (1 << 63)
    assert in_every_form(lambda seen: int(digest_rows(before, seen(rows), 1, count))) == expected
    row = np.zeros((2, rows.shape[2] * count), np.int64)
    row[1] = rows[1, :count].ravel()
    assert in_every_form(lambda seen: int(digest_row(before, seen(row), 1))) == expected


@given(
    boxes=mixed((2, 7, 9)),
    points=arrays(np.int64, (12, 3), elements=st.integers(-1, 5) | st.just(LARGE)),
    count=st.integers(0, 7),
    first=st.integers(0, 3),
    changed=st.none() | st.integers(0, 6),
)
def test_boxes_found_are_those_that_hold_the_point_however_often_and_after_changes(
    boxes: np.ndarray, points: np.ndarray, count: int, first: int, changed: int | None
) -> None:
    """Interpreters index boxes that they have looked at for a while, until these change."""

    def check(seen: Form) -> None:
        rows = boxes.copy()
        s = seen(Boxes(boxes=rows))
        for i, point in enumerate(points):
            if i == len(points) - 2 and changed is not None:
                rows[1, changed, :] += 1 if rows[1, changed, 0] < 5 else -1
            ends = rows[1, :count, first : first + 6]
            holds = ((ends[:, ::2] <= point) & (point <= ends[:, 1::2])).all(axis=1)
            words, found = np.concatenate([[7], point]), np.full(7, -1, np.int64)
            held = int(find_boxes(s, s.boxes, 1, count, first, seen(words), 1, 3, seen(found)))
            assert found[:held].tolist() == np.flatnonzero(holds).tolist()
            assert (found[held:] == -1).all()
            labelled = np.flatnonzero(holds & (rows[1, :count, 1] == 2)).tolist()
            held = find_labelled_boxes(
                s, s.boxes, 1, count, 1, 2, first, seen(words), 1, 3, seen(found)
            )
            assert found[: int(held)].tolist() == labelled

    in_every_form(check)


def test_runs_over_one_array_share_no_index_and_leave_none() -> None:
    s = Boxes(boxes=np.zeros((2, 3, 8), np.int64))
    views = [s.unboxed(), s.unboxed()]
    with use_compiled(False):
        for view in (*views, s):
            find_boxes(view, view.boxes, 1, 3, 0, [0], 0, 1, np.zeros(3, np.int64).data)
    assert len({id(indexes_of(view)) for view in (*views, s)}) == 3
    gone = weakref.ref(indexes_of(views.pop(0)))
    del view
    assert gone() is None
    assert "_box_indexes" not in s.__getstate__()


@given(
    size=st.integers(1, 3 * BLOCK),
    end=st.integers(0, 10 * BLOCK),
    share=st.floats(0, 1),
    place=st.integers(0, 3 * BLOCK),
)
def test_long_rows_are_searched_by_blocks(size: int, end: int, share: float, place: int) -> None:
    rows = np.zeros((2, size), np.int64)
    rows[0] = rows[1, place:] = 1
    expected = place if place < size else -1
    assert in_every_form(lambda seen: int(position(seen(rows), 1, 1))) == expected
    begin = max(0, end - int(share * size))
    held = any(rows[1, i % size] for i in range(begin, end))
    assert in_every_form(lambda seen: bool(is_in_ring(seen(rows), 1, begin, end, 1))) == held


def test_words_and_rows_are_copied_alike() -> None:
    words = np.arange(9, dtype=np.int64)
    rows = np.arange(24).reshape(2, 3, 4)

    def copy(seen: Form) -> list[Any]:
        target, row = np.zeros(6, np.int64), np.zeros(4, np.int64)
        copy_words(seen(words), 2, 3, target, 1)
        copy_row(seen(rows), 1, 2, seen(row))
        return [target.tolist(), row.tolist()]

    assert in_every_form(copy) == [[0, 2, 3, 4, 0, 0], [20, 21, 22, 23]]
    outbox = [0] * 6
    copy_words(words.tolist(), 2, 3, outbox, 1)
    assert outbox == [0, 2, 3, 4, 0, 0]


@given(
    places=arrays(np.int64, 8, elements=st.integers(0, 6) | st.integers(0, RING_MASK)),
    empty=EMPTY_SLOTS,
    me=st.integers(0, 6) | st.integers(0, RING_MASK),
    wanted=st.integers(1, 6) | st.integers(1, RING_MASK),
)
def test_links_around_are_closest(
    places: np.ndarray, empty: np.ndarray, me: int, wanted: int
) -> None:
    links = np.where(empty, -1, 7)
    profiles = np.zeros((2, 8, 2), np.int64)
    profiles[1, :, 0] = places
    s = Links(links=np.stack([np.zeros(8, np.int64), links]), link_profile=profiles)
    away = [(place - me) & RING_MASK for place in places.tolist()]
    closer = [k for k in range(8) if not empty[k] and away[k] < wanted]
    others = [k for k in range(8) if not empty[k] and away[k] >= wanted]
    before = max(closer, key=away.__getitem__) + 1 if closer else 0
    after = min(others, key=away.__getitem__) + 1 if others else 0
    found = in_every_form(lambda seen: int(slots_around(seen(s), 1, me, wanted)))
    assert found == before << PAIR_BITS | after


@given(places=numbers(5, 0, 7), empty=arrays(np.bool_, 5), point=st.integers(0, 7))
def test_places_around_a_point_wrap_around(
    places: np.ndarray, empty: np.ndarray, point: int
) -> None:
    keys = np.where([np.zeros(5, bool), empty], -1, 7)
    rows = np.zeros((2, 5, 2), np.int64)
    rows[1, :, 1] = places
    past = {k: (place - point) % 8 for k, place in enumerate(places.tolist()) if not empty[k]}
    expected = 0
    if past:
        expected = max(past, key=past.__getitem__) + 1 << PAIR_BITS
        expected |= min(past, key=past.__getitem__) + 1

    def around(seen: Form) -> int:
        return int(around_in_column(seen(rows), seen(keys), 1, 1, point, 7))

    assert in_every_form(around) == expected


@given(points=mixed((2, 7, 3)), box=mixed(6), marks=numbers(7, 0, 3))
def test_points_in_a_box_are_marked(points: np.ndarray, box: np.ndarray, marks: np.ndarray) -> None:
    words = np.concatenate([[-1], box])

    def mark(seen: Form) -> Any:
        marked = marks.copy()
        mark_points(seen(points), 1, words, 1, 3, 2, seen(marked))
        return marked.tolist()

    inside = (box[::2] <= points[1]) & (points[1] <= box[1::2])
    assert in_every_form(mark) == (marks | 2 * inside.all(axis=1)).tolist()


@given(
    ages=numbers(8, 0, 1 << 29),
    handles=st.lists(st.integers(0, (1 << 32) - 1), min_size=8, max_size=8, unique=True),
    empty=EMPTY_SLOTS,
    wanted=st.integers(0, 7),
)
def test_slots_by_handle(
    ages: np.ndarray, handles: list[int], empty: np.ndarray, wanted: int
) -> None:
    links = np.where(empty, -1, ages << 32 | np.array(handles, np.int64))
    rows = np.stack([np.zeros(8, np.int64), links])
    s = Links(links=rows, link_profile=np.zeros((2, 8, 1), np.int64))
    expected = -1 if empty[wanted] else wanted
    assert in_every_form(lambda seen: int(slot_of(seen(s), 1, handles[wanted]))) == expected


@given(words=numbers(40, 0, LARGE), at=st.integers(0, 9))
def test_descriptors_of_links_are_written_and_put_alike(words: np.ndarray, at: int) -> None:
    def change(seen: Form) -> list[Any]:
        state = make_state(Settings(friend_links=2, profile_ranges=2), 2)
        mine, theirs = np.full(40, 9), np.full(40, 9)
        put_link(seen(state), 1, 2, seen(words), at)
        write_link(seen(state), 1, 2, seen(theirs), 3)
        write_own_descriptor(seen(state), 1, seen(mine), 3)
        return [state.links.tolist(), state.link_profile.tolist(), mine.tolist(), theirs.tolist()]

    _, profiles, mine, theirs = in_every_form(change)
    size = 1 + len(profiles[1][2])
    assert theirs == [9, 9, 9, *words[at : at + size].tolist(), *[9] * (37 - size)]
    assert (mine[:4], mine[3 + size :]) == ([9, 9, 9, 1], [9] * (37 - size))


@st.composite
def views(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    words = st.integers(0, 99) | st.integers(0, 99).map(lambda word: word | descriptors.OFFERED)
    return (
        draw(arrays(np.int64, (2, VIEW), elements=words | st.just(descriptors.EMPTY))),
        draw(numbers((2, VIEW, PROFILE), 0, LARGE)),
    )


@pytest.mark.parametrize("profile", [0, PROFILE])
@given(view=views(), one=SLOTS, other=SLOTS, end=st.integers(0, VIEW))
def test_descriptors_are_moved_swapped_seated_and_written_alike(
    profile: int, view: tuple[np.ndarray, np.ndarray], one: int, other: int, end: int
) -> None:
    new = np.arange(7, dtype=np.int64)

    def change(seen: Form) -> list[Any]:
        views = []
        words = np.full(2 + VIEW * (1 + PROFILE), -7, np.int64)
        for rule, arguments in (
            (descriptors.move, (one, other)),
            (descriptors.swap, (one, other)),
            (descriptors.seat, (one, 9, new, 2)),
            (descriptors.write_slots, (min(one, end), end, seen(words), 2)),
        ):
            v = sampler.make_sampler(2, "cyclon", VIEW, VIEW, profile, 1)
            v.views[:], v.view_profile[:] = view[0], view[1][:, :, :profile]
            rule(seen(v), 1, *arguments)
            views.append([v.views.tolist(), v.view_profile.tolist()])
        return [views, words.tolist()]

    in_every_form(change)


def reachable(*rules: Rule) -> list[Any]:
    found: dict[int, Any] = {}  # by identity: functions of a factory share a name
    waiting: list[Any] = [rule.linked for rule in rules]
    while waiting:
        function = waiting.pop()
        if id(function) in found:
            continue
        found[id(function)] = function
        for name in function.__code__.co_names:
            called: Any = function.__globals__.get(name)
            assert not isinstance(called, Rule), f"{function.__qualname__} calls a rule, {name}"
            if hasattr(called, "__code__"):
                waiting.append(called)
        for cell in function.__closure__ or ():
            if isinstance(cell.cell_contents, dict):
                waiting += cell.cell_contents.values()
    return list(found.values())


def test_linked_rules_are_plain_functions_all_the_way_down() -> None:
    names = {function.__qualname__ for function in reachable(step)}
    assert {"step", "on_event", "_position_at_once", "find_seat"} <= names


def columns_written(function: Any) -> set[str]:
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    return {
        node.value.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Subscript)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Attribute)
    }


def test_records_about_events_leave_links_and_profile_alone() -> None:
    """What follows from changes on the ring is not looked for after them."""
    on_the_ring = {"links", "link_profile", "successor", "predecessor", "profile"}
    written = {
        function.__qualname__: columns_written(function)
        for function in reachable(*ABOUT_EVENTS.values())
    }
    assert written["remember"] > {"event_copies"}
    assert all(not names & on_the_ring for names in written.values())
    assert set.union(*map(columns_written, reachable(take_and_settle))) > on_the_ring
