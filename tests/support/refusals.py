"""What is said about texts, about scenario files, and about files of others or cut off."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

import attrs
import pytest

from gossamer.protocol.kernel.errors import ExpressionError
from gossamer.sim.errors import ScenarioError
from gossamer.sim.study.scenarios import read_scenario


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


# Scenario files.


T = TypeVar("T")


def write(folder: Path, text: str | bytes) -> Path:
    path = folder / "scenario.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def read_as(
    kind: type[T], folder: Path, text: str, overrides: Mapping[str, object] = MappingProxyType({})
) -> T:
    scenario, _ = read_scenario(write(folder, text), overrides)
    assert isinstance(scenario, kind)
    return scenario


def fault_of(folder: Path, text: str | bytes) -> ScenarioError:
    """The error of reading ``text``, after checking that it is one sentence naming the file."""
    path = write(folder, text)
    with pytest.raises(ScenarioError) as caught:
        read_scenario(path)
    assert _checked(path, caught.value).startswith(f"{path}: ")
    return caught.value


def assert_listed(reference: Path, sections: Mapping[str, type], *names: str) -> None:
    """A page has a row with the default of each key of the sections, and all these names."""
    text = reference.read_text(encoding="utf-8")
    for section, kind in sections.items():
        for field in attrs.fields(kind):
            row = f"| `{field.name}` | `{json.dumps(field.default)}` |"
            assert row in text, f"[{section}] {row}"
    for name in names:
        assert f"`{name}`" in text, name
