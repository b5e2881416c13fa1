"""Checks of what is said about files that other programs wrote, or that somebody cut off."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

import pytest

from gossamer.sim.errors import ScenarioError

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
    assert ", expected " in said
    return said
