"""Checkpoints are gone on with as what they are of, or refused in one sentence."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from gossamer.sim.errors import ScenarioError
from gossamer.sim.study import checkpoints
from gossamer.sim.study.checkpoints import Checkpoints


@attrs.frozen
class Churn:
    trace: Path


@attrs.frozen
class Quotes:
    """Another one, which names its file in words."""

    file: str


@attrs.frozen
class MadeUp:
    name: str
    seed: int
    parts: tuple[Churn | Quotes, ...]


@pytest.fixture
def scenario(tmp_path: Path) -> MadeUp:
    (tmp_path / "trace").write_text("sessions")
    (tmp_path / "quotes").write_text("quotes")
    parts = (Churn(tmp_path / "trace"), Quotes(str(tmp_path / "quotes")), Quotes(""))
    return MadeUp("made up", 1, parts)


def test_parts_are_found_again(scenario: MadeUp, tmp_path: Path) -> None:
    kept = Checkpoints(tmp_path / "c", scenario)
    assert kept.load("one") is None
    kept.save("one", {"state": 1})
    kept.save("two", [2])
    again = Checkpoints(tmp_path / "c", scenario).load_all(["one", "two", "three"])
    assert again == {"one": {"state": 1}, "two": [2]}


def refusal(scenario: MadeUp, tmp_path: Path) -> str:
    """The sentence by which the checkpoint of part "one" is refused."""
    with pytest.raises(ScenarioError) as caught:
        Checkpoints(tmp_path / "c", scenario).load("one")
    return str(caught.value).removeprefix(f"{tmp_path / 'c' / 'one.checkpoint'}: ")


@pytest.mark.parametrize("name", ["trace", "quotes"])
@pytest.mark.parametrize("edit", [lambda file: file.write_text("others"), Path.unlink])
def test_changed_inputs_refused(name: str, edit: object, scenario: MadeUp, tmp_path: Path) -> None:
    Checkpoints(tmp_path / "c", scenario).save("one", 1)
    assert callable(edit)
    edit(tmp_path / name)
    assert refusal(scenario, tmp_path) == (
        f"checkpoint is of other content, expected one of {tmp_path / name} as it is now"
    )


def test_checkpoints_of_another_scenario_or_of_other_sources_are_refused(
    scenario: MadeUp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Checkpoints(tmp_path / "c", scenario).save("one", 1)
    said = "checkpoint is 'made up', expected one of the same scenario and seed"
    assert refusal(attrs.evolve(scenario, seed=2), tmp_path) == said
    monkeypatch.setattr(checkpoints, "source_fingerprint", lambda: "edited")
    said = "checkpoint is of another version, expected one of this version of gossamer"
    assert refusal(scenario, tmp_path).startswith(said)


def test_damage_is_noticed(scenario: MadeUp, tmp_path: Path) -> None:
    Checkpoints(tmp_path / "c", scenario).save("one", "state")
    file = tmp_path / "c" / "one.checkpoint"
    whole = file.read_bytes()
    for place in (0, 40, -1):
        content = bytearray(whole)
        content[place] ^= 1
        file.write_bytes(content)
        said = "checkpoint is damaged, expected one that was written whole"
        assert refusal(scenario, tmp_path) == said
    file.write_bytes(whole[:20])
    assert refusal(scenario, tmp_path).startswith("checkpoint is damaged")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_is_reported_with_the_file(scenario: MadeUp, tmp_path: Path) -> None:
    kept = Checkpoints(tmp_path, scenario)
    file = kept._file("one")
    file.with_suffix(".tmp").symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left") as failed:
        kept.save("one", "state")
    assert failed.value.filename == str(file)
    assert not list(tmp_path.glob("one*"))
