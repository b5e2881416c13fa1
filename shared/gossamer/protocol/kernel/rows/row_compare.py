"""Copying, comparing and summing up rows, so that a change of them is noticed; see `scans`."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gossamer.protocol.kernel.rows.row_search import index
from gossamer.protocol.kernel.rules import rule_with_interpreted_form
from gossamer.protocol.kernel.struct import as_array


def _write_rows_at_once(rows: Any, first: int, count: int, words: Any, at: int) -> None:
    copied = as_array(rows)[first : first + count].ravel().tolist()
    as_array(words)[at : at + len(copied)] = copied


@rule_with_interpreted_form(_write_rows_at_once)
def write_rows(rows: Any, first: int, count: int, words: Any, at: int) -> None:
    """Write ``rows[first:first + count]`` to ``words[at:]``, one after another."""
    size = rows.shape[1]
    for i in range(count):
        for w in range(size):
            words[at + i * size + w] = rows[first + i, w]


def _row_differs_at_once(rows: Any, i: int, j: int, words: Any, at: int) -> bool:
    row = as_array(rows)[i, j].tolist()
    return bool(row != list(words[at : at + len(row)]))


@rule_with_interpreted_form(_row_differs_at_once)
def row_differs(rows: Any, i: int, j: int, words: Any, at: int) -> Any:
    """Whether the row ``rows[i, j]`` is other than what stands at ``words[at:]``."""
    # No branch: mostly all words are alike.
    changes = 0
    for w in range(rows.shape[2]):
        changes |= rows[index(i), index(j), index(w)] ^ words[index(at + w)]
    return changes != 0


# Odd, so that no word is lost; the multiplier of Knuth's MMIX generator.
_FACTOR: Final = 6364136223846793005
_WORD: Final = 1 << 64
_SIGN: Final = 1 << 63


def _signed(number: int) -> int:
    """The number of 64 bits with a sign that has the lowest bits of this one."""
    return (number + _SIGN) % _WORD - _SIGN


# Its powers, so that of four words in a row only one product waits for what came before.
_SQUARE: Final = _signed(_FACTOR**2)
_CUBE: Final = _signed(_FACTOR**3)
_FOURTH: Final = _signed(_FACTOR**4)


@lru_cache(64)
def _powers(count: int) -> npt.NDArray[np.int64]:
    """The powers of the factor from ``count`` down to 0, modulo 2^64."""
    powers = np.empty(count + 1, np.uint64)
    power = 1
    for i in range(count, -1, -1):
        powers[i] = power
        power = power * _FACTOR % _WORD
    return powers.view(np.int64)


def _digest_at_once(digest: int, words: npt.NDArray[np.int64]) -> int:
    powers = _powers(words.size)
    return _signed(int(digest) * int(powers[0]) + int(words.ravel().dot(powers[1:])))


def _digest_row_at_once(digest: int, rows: Any, p: int) -> int:
    return _digest_at_once(digest, as_array(rows)[p])


@rule_with_interpreted_form(_digest_row_at_once, inline=False)
def digest_row(digest: int, rows: Any, p: int) -> int:
    """The digest of what came before and the words of row ``p``, modulo 2^64."""
    words = rows.shape[1]
    whole = words - words % 4
    for w in range(0, whole, 4):
        ahead = rows[p, w] * _CUBE + rows[p, w + 1] * _SQUARE + rows[p, w + 2] * _FACTOR
        digest = digest * _FOURTH + (ahead + rows[p, w + 3])
    for w in range(whole, words):
        digest = digest * _FACTOR + rows[p, w]
    return digest


def _digest_rows_at_once(digest: int, rows: Any, p: int, count: int) -> int:
    return _digest_at_once(digest, as_array(rows)[p, :count])


@rule_with_interpreted_form(_digest_rows_at_once, inline=False)
def digest_rows(digest: int, rows: Any, p: int, count: int) -> int:
    """The digest of what came before and the words of ``rows[p, :count]``, modulo 2^64."""
    words = rows.shape[2]
    whole = words - words % 4
    for i in range(count):
        for w in range(0, whole, 4):
            ahead = rows[p, i, w] * _CUBE + rows[p, i, w + 1] * _SQUARE
            ahead += rows[p, i, w + 2] * _FACTOR
            digest = digest * _FOURTH + (ahead + rows[p, i, w + 3])
        for w in range(whole, words):
            digest = digest * _FACTOR + rows[p, i, w]
    return digest
