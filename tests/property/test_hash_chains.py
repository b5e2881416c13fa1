"""A ring with chains finds what a search of all its places finds, in every form."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.protocol.kernel.float_bits import float_to_word, word_to_float
from gossamer.protocol.kernel.rows.hash_chains import CHAINED_FROM, chain, chains_of, place_in_ring
from gossamer.protocol.kernel.rules import use_compiled

ROW = 1


class Ring:
    """A ring of words, as rules write it.

    Args:
        size: of the ring.
        heads: of its chains, 0 where there are none.
    """

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


@pytest.mark.parametrize("compiled", [False, True], ids=["interpreted", "compiled"])
@given(
    size=st.integers(1, 9),
    bits=st.integers(0, 3),
    words=st.lists(st.integers(0, 40), max_size=80),
    restarts=st.sets(st.integers(0, 79)),
)
def test_words_are_found_where_they_are(
    compiled: bool, size: int, bits: int, words: list[int], restarts: set[int]
) -> None:
    """Few heads, so that chains are long, and lead to places that were written anew."""
    ring = Ring(size, 1 << bits)
    with use_compiled(compiled):
        for i, word in enumerate(words):
            if i in restarts:
                ring.rows[ROW] = -1  # as a peer that starts again
            row: list[Any] = ring.rows[ROW].tolist()
            expected = row.index(word) if word in row else -1
            assert ring.place_of(word) == expected
            if expected < 0:
                ring.add(word)
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


@pytest.mark.parametrize("compiled", [False, True], ids=["interpreted", "compiled"])
def test_a_ring_without_chains_is_searched(compiled: bool) -> None:
    ring = Ring(5, 0)
    with use_compiled(compiled):
        for word in range(7):
            ring.add(word)
        assert [ring.place_of(word) for word in range(8)] == [-1, -1, 2, 3, 4, 0, 1, -1]


def test_identifiers_share_few_chains() -> None:
    """Those that follow one another none, and drawn ones as many as by chance."""
    draws = np.random.default_rng(1)
    for words, used in ((np.arange(3000), 1024), (draws.integers(0, 1 << 60, 3000), 900)):
        ring = Ring(1000, chains_of(1000)[0])
        with use_compiled(False):
            for word in words.tolist():
                ring.add(word)
        assert np.count_nonzero(ring.heads[ROW]) >= used


@pytest.mark.parametrize("compiled", [False, True])
@given(number=st.floats(allow_nan=True, allow_infinity=True, allow_subnormal=True))
def test_a_float_passes_through_a_word_bit_for_bit(compiled: bool, number: float) -> None:
    with use_compiled(compiled):
        word = int(float_to_word(number))
        back = float(word_to_float(word))
    assert struct.pack("<d", number) == struct.pack("<q", word)
    assert struct.pack("<d", back) == struct.pack("<d", number)


@pytest.mark.parametrize("compiled", [False, True])
@given(word=st.integers(-(1 << 63), (1 << 63) - 1))
def test_a_word_passes_through_a_float_bit_for_bit(compiled: bool, word: int) -> None:
    with use_compiled(compiled):
        assert int(float_to_word(word_to_float(word))) == word
