"""Scenario files of tests: written, read, and refused in one sentence that names the file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

import attrs
import pytest

from gossamer.sim.errors import ScenarioError
from gossamer.sim.study.scenarios import read_scenario

T = TypeVar("T")


def write(folder: Path, text: str | bytes) -> Path:
    path = folder / "scenario.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def read_as(
    kind: type[T], folder: Path, text: str, overrides: Mapping[str, object] = MappingProxyType({})
) -> T:
    """The scenario that a text in a folder says, which is one of this class."""
    scenario, _ = read_scenario(write(folder, text), overrides)
    assert isinstance(scenario, kind)
    return scenario


def fault_of(folder: Path, text: str | bytes) -> ScenarioError:
    """The error of reading ``text``, after checking that it is one sentence naming the file."""
    path = write(folder, text)
    with pytest.raises(ScenarioError) as caught:
        read_scenario(path)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(f"{path}: ")
    assert ", expected " in message or ", did you mean " in message
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
