"""Whatever a user edits in a protocol, compiled code is that of the present version."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
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


@pytest.fixture
def code_folder(tmp_path: Path) -> Iterator[Path]:
    """One folder of compiled code for all that a test runs."""
    folder = tmp_path / "code"
    keep_code_in(FolderStore(folder))
    yield folder
    keep_compiled_code()


def forget_process() -> None:
    """Let what comes next find compiled code as a new process does: in the folder only."""
    keyed_code._dispatchers.clear()


def run_version(folder: Path, version: Version) -> tuple[list[int], list[int]]:
    """What a version does compiled, and what it does interpreted."""
    names = run_script(write_version(folder, version), version.argument)
    return names["compiled"].a.tolist(), names["interpreted"].a.tolist()


@pytest.mark.parametrize("place", PLACES)
def test_an_edit_at_any_place_is_compiled(place: str, tmp_path: Path, code_folder: Path) -> None:
    before = Version()
    edited = dataclasses.replace(before, **{place: 2 if place != "branch" else False})  # type: ignore[arg-type]
    first, _ = run_version(tmp_path / "own", before)
    forget_process()
    compiled, interpreted = run_version(tmp_path / "own", edited)
    assert compiled == interpreted
    assert compiled != first, f"the edit of {place} is none"
    assert code_folder.is_dir()


def test_a_version_is_found_again_whatever_stands_elsewhere(
    tmp_path: Path, code_folder: Path
) -> None:
    run_version(tmp_path / "own", Version())
    kept = sorted(code_folder.iterdir())
    assert len(kept) == 1
    forget_process()
    script = write_version(tmp_path / "elsewhere", Version())
    script.write_text("# a remark\n" + script.read_text())
    names = run_script(script, 1)
    assert names["compiled"].a.tolist() == names["interpreted"].a.tolist()
    assert sorted(code_folder.iterdir()) == kept


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(versions=st.lists(st.tuples(VERSIONS, st.booleans(), st.booleans()), min_size=2, max_size=4))
def test_versions_of_a_protocol_never_meet(
    versions: list[tuple[Version, bool, bool]], tmp_path: Path, code_folder: Path
) -> None:
    """One name, two folders, one cache; some versions in one process and some in another."""
    for version, elsewhere, new_process in versions:
        if new_process:
            forget_process()
        compiled, interpreted = run_version(tmp_path / ("b" if elsewhere else "a"), version)
        assert compiled == interpreted, f"in {code_folder}: {versions}"
