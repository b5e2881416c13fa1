"""Filters as plain data are written once, however many there are."""

from __future__ import annotations

import gc

import pytest

from gossamer.protocol.brokers.core import plain
from gossamer.protocol.content import filters
from gossamer.protocol.content.filters import Filter, parse

MANY = 5_000  # more than texts were remembered of once, however many filters a broker had


def test_a_filter_is_written_once_while_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[Filter] = []

    def to_text(wanted: Filter) -> str:
        written.append(wanted)
        return "x"

    monkeypatch.setattr(filters, "to_text", to_text)
    wanted = [parse(f"written_once >= {number}") for number in range(MANY)]
    for _ in range(2):
        assert [plain.plain_filter(one) for one in wanted] == ["x"] * MANY
    assert written == wanted


def test_the_text_of_a_filter_goes_with_it() -> None:
    wanted = parse("goes == 1")
    gc.collect()
    before = len(plain._texts)
    assert plain.plain_filter(wanted) == "goes == 1"
    assert len(plain._texts) == before + 1
    del wanted
    gc.collect()
    assert len(plain._texts) == before
