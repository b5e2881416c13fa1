"""Whatever a user edits in a protocol, compiled code is that of the present version."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gossamer.compiled.store import FolderStore, keep_compiled_code
from gossamer.protocol.kernel import keyed_code
from gossamer.protocol.kernel.rules import keep_code_in
from support.edited_protocols import Version, run_script, write_version

PLACES = [field.name for field in dataclasses.fields(Version)]
NUMBERS = st.integers(0, 3)
VERSIONS = st.builds(
    Version, **{name: st.booleans() if name == "branch" else NUMBERS for name in PLACES}
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("edited")
    import_module("gossamer.sim.engine.loops")  # sets the user's folder for code, at first
    keep_code_in(FolderStore(folder / "code"))
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
