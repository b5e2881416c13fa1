"""Files of events appear whole, and what a killed process left is finished."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gossamer.node.commands.clients.event_files import SUBSCRIPTION_FILE, EventFiles
from gossamer.node.errors import EventInputError


class Clock:
    """Nanoseconds that a test sets."""

    def __init__(self) -> None:
        self.now = 10**18

    def __call__(self) -> int:
        return self.now


def files_of(folder: Path) -> list[str]:
    """The contents of finished files in the order of their names."""
    return [path.read_text() for path in sorted(folder.glob("a/*.jsonl"))]


def test_files_appear_when_they_are_full_or_old(tmp_path: Path) -> None:
    clock = Clock()
    with EventFiles(tmp_path, "a", every_s=2, most=2, clock=clock) as out:
        for text in ("1\n", "2\n", "3\n"):
            out.write(text)
            out.flush()
            clock.now += 1
        assert files_of(tmp_path) == ["1\n2\n"]
        out.finish_old()
        assert len(files_of(tmp_path)) == 1
        clock.now += 2 * 10**9
        out.finish_old()
        assert files_of(tmp_path) == ["1\n2\n", "3\n"]
        out.write("4\n")
        out.flush()
    assert files_of(tmp_path) == ["1\n2\n", "3\n", "4\n"]
    assert {path.suffix for path in (tmp_path / "a").iterdir()} == {".jsonl"}


def test_what_a_killed_process_left_is_finished_but_for_half_a_line(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / ".a-01-1.jsonl.part").write_text('1\n2\n{"id"')
    (tmp_path / "a" / ".a-02-1.jsonl.part").write_text('{"id"')
    with EventFiles(tmp_path, "a", every_s=1, most=9) as out:
        assert files_of(tmp_path) == ["1\n2\n"]
        out.write("3\n")
        with EventFiles(tmp_path, "a", every_s=1, most=9):
            assert files_of(tmp_path) == ["1\n2\n"]  # what is still being written is left alone
    assert files_of(tmp_path) == ["1\n2\n", "3\n"]


def test_a_subscription_keeps_its_beginning_while_it_stays_the_same(tmp_path: Path) -> None:
    clock = Clock()
    out = EventFiles(tmp_path, "a", every_s=1, most=9, clock=clock)
    out.describe("x > 1", None)
    clock.now += 10**9
    out.describe("x > 1", None)
    told = json.loads((tmp_path / "a" / SUBSCRIPTION_FILE).read_text())
    assert told == {"subscriber": "a", "expression": "x > 1", "schema": None, "since": 1e9}
    out.describe("x > 2", None)
    told = json.loads((tmp_path / "a" / SUBSCRIPTION_FILE).read_text())
    assert (told["expression"], told["since"]) == ("x > 2", 1e9 + 1)


@pytest.mark.parametrize("name", ["", "../a", ".a", "a/b"])
def test_a_name_that_is_none_for_files_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(EventInputError, match="--as is"):
        EventFiles(tmp_path, name, every_s=1, most=1)
    assert list(tmp_path.iterdir()) == []
