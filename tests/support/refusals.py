"""What is said about texts, and about files that other programs wrote or somebody cut off."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

import pytest

from gossamer.protocol.kernel.errors import ExpressionError
from gossamer.sim.errors import ScenarioError


def check_refused(parse: Callable[[str], object], text: str, column: int, reason: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse(text)
    assert reason in caught.value.reason
    assert "\n" not in caught.value.reason
    assert caught.value.column == column
    assert caught.value.text == text


Read = TypeVar("Read")


def sentence_about(path: Path, read: Callable[[Path], object]) -> str:
    """What reading a file says about it: one sentence that names the file and what was expected."""
    with pytest.raises(ScenarioError) as caught:
        read(path)
    return _checked(path, caught.value)


def check_cuts(
    path: Path,
    whole: bytes,
    read: Callable[[Path], Read],
    same: Callable[[Read, Read], bool],
    ends: Iterable[int],
) -> int:
    """Cut a file off at each of some ends: it reads as the whole one, or a sentence refuses it.

    Returns:
        how many of the cuts were refused.
    """
    path.write_bytes(whole)
    expected, refused = read(path), 0
    for end in ends:
        path.write_bytes(whole[:end])
        try:
            found = read(path)
        except ScenarioError as error:
            _checked(path, error)
            refused += 1
        else:
            assert same(found, expected), f"cut off after {whole[:end][-30:]!r}"
    return refused


def _checked(path: Path, error: ScenarioError) -> str:
    said = str(error)
    assert said.startswith(str(path))
    assert "\n" not in said
    assert ", expected " in said or ", did you mean " in said
    return said
