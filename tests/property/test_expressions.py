"""Expressions against an oracle of single comparisons, and covers against what matches."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from gossamer.protocol.content.expressions.expression import Expression
from gossamer.protocol.content.expressions.language import parse_expression
from gossamer.protocol.kernel.errors import ExpressionError
from gossamer.protocol.peer.space.covering import MOST_BOXES, coarser, cover
from gossamer.protocol.peer.space.encoding import EncodedBox, encode_event
from gossamer.protocol.peer.space.hashing import equi_depth_hash, uniform_hashes
from support.expression_strategies import SCHEMA, Written, random_event, random_written

EVENTS = 60


def parsed(written: Written) -> Expression | None:
    try:
        return parse_expression(SCHEMA, written.text)
    except ExpressionError as error:
        if "never hold" in error.reason or "contradict" in error.reason:
            return None
        raise


@pytest.mark.parametrize("seed", range(8))
def test_an_expression_matches_what_its_comparisons_say(seed: int) -> None:
    rng = Random(seed)
    for _ in range(60):
        written = random_written(rng)
        expression = parsed(written)
        for _ in range(EVENTS if expression is not None else 0):
            event = random_event(rng, absent=0.2)
            assert expression is not None
            found = expression.matches(event)
            assert found is written.matches(event), (seed, written.text, event)


@pytest.mark.parametrize("seed", range(8))
def test_a_refused_conjunction_matches_nothing(seed: int) -> None:
    rng = Random(seed)
    for _ in range(200):
        written = random_written(rng, depth=1)
        if written.word == "and" and parsed(written) is None:
            events = [random_event(rng) for _ in range(EVENTS)]
            refused = [part for part in written.parts if parsed(part) is None]
            matching = [event for event in events if written.matches(event)]
            assert refused or not matching, (seed, written.text, matching)


@pytest.mark.parametrize("seed", range(8))
def test_a_cover_excludes_nothing_that_matches_however_coarse(seed: int) -> None:
    rng = Random(seed)
    uniform = uniform_hashes(SCHEMA)
    followed = tuple(
        equi_depth_hash(one, [random_event(rng)[one.name] for _ in range(5)], 4) for one in SCHEMA
    )
    for _ in range(40):
        written = random_written(rng)
        expression = parsed(written)
        if expression is None:
            continue
        events = [random_event(rng, absent=0.2) for _ in range(EVENTS)]
        for hashes in (uniform, followed):
            finest = cover(SCHEMA, hashes, expression)
            points = [encode_event(SCHEMA, hashes, one) for one in events if written.matches(one)]
            covers = [finest, *(coarser(finest, most) for most in (8, 4, 2, 1))]
            for most, boxes in zip((MOST_BOXES, 8, 4, 2, 1), covers, strict=True):
                assert len(boxes) <= most
                outside = [point for point in points if not held(boxes, point)]
                assert not outside, (seed, written.text, most)
            for finer, wider in pairwise(covers):
                assert all(is_inside(box, wider) for box in finer), (seed, written.text)


def held(boxes: tuple[EncodedBox, ...], point: tuple[int, ...]) -> bool:
    return any(box.contains(point) for box in boxes)


def is_inside(box: EncodedBox, boxes: tuple[EncodedBox, ...]) -> bool:
    return any(one.contains(box.low) and one.contains(box.high) for one in boxes)


@pytest.mark.parametrize(
    ("text", "boxes"),
    [
        ("x > 1", 1),
        ("x != 1", 1),
        ("n != 4", 2),
        ('s in {"a", "b", "abc"}', 3),
        ("x < 1 or n > 7", 2),
        ("x < 1 or x < 2", 1),
        ("(x < 1 or x > 2) and (n < 2 or n > 7)", 4),
        ('s contains "a"', 1),
        ("present(x) or present(n)", 1),
        (" or ".join(f"n == {k % 10} and x > {k % 10}" for k in range(60)), 10),
        (" or ".join(f's == "{chr(97 + k)}" and x > {k % 10}' for k in range(26)), MOST_BOXES),
    ],
)
def test_covers_have_the_boxes_that_people_would_draw(text: str, boxes: int) -> None:
    expression = parse_expression(SCHEMA, text)
    assert len(cover(SCHEMA, uniform_hashes(SCHEMA), expression)) == boxes


def test_what_contradicts_itself_across_parts_has_no_box() -> None:
    expression = parse_expression(SCHEMA, "(x < 1 or n == 3) and x > 2 and n > 5")
    assert cover(SCHEMA, uniform_hashes(SCHEMA), expression) == ()
