"""Rules that are compiled by themselves and called by their address."""

from __future__ import annotations

import ctypes
import math
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gossamer.compiled import store
from gossamer.compiled.store import FolderStore, keep_compiled_code
from gossamer.protocol.kernel import keyed_code, standalone
from gossamer.protocol.kernel.code_keys import CodeKeys, code_keys
from gossamer.protocol.kernel.errors import RuleCompilationError
from gossamer.protocol.kernel.records import Outbox
from gossamer.protocol.kernel.rules import keep_code_in, rule, standalone_rule, use_compiled

RATE = 3


@standalone_rule
def scaled(x: int, words: Any, out: Outbox) -> bool:
    words[0] += x * RATE
    out.cursor[1] += 1
    return bool(words[0] > 100)


@standalone_rule
def scaled_twice(x: int, words: Any, out: Outbox) -> int:
    return int(scaled(x, words, out)) + int(scaled(x, words, out))


@rule
def summed(n: int, words: Any, out: Outbox) -> int:
    large = 0
    for i in range(n):
        large += scaled_twice(i, words, out)
    return large


def outcome(called: Any, n: int) -> tuple[int, int, int]:
    words, out = np.zeros(1, np.int64), Outbox(np.zeros(1, np.int64), np.zeros(4, np.int64))
    return int(called(n, words, out)), int(words[0]), int(out.cursor[1])


@standalone_rule
def unsaid(x: int) -> Any:
    return x


@standalone_rule
def missaid(x: float) -> bool:
    return x / 2  # type: ignore[return-value]


def forget() -> None:
    """Let this process be as one that has just begun, but for what is linked into it."""
    keyed_code._dispatchers.clear()
    keyed_code._versions.clear()
    standalone._known.clear()
    for one in (scaled, scaled_twice, summed):
        one._dispatcher = None


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    forget()
    keep_code_in(FolderStore(tmp_path / "code"))
    yield tmp_path / "code"
    keep_compiled_code()
    forget()


@pytest.mark.usefixtures("folder")
def test_a_standalone_rule_computes_the_same_in_all_forms() -> None:
    expected = outcome(summed.interpreted, 10)
    assert expected == (8, 270, 20)
    assert (outcome(summed.compiled, 10), outcome(summed.linked, 10)) == (expected, expected)
    with use_compiled():
        assert outcome(scaled_twice, 40) == outcome(scaled_twice.interpreted, 40)


def test_each_is_kept_once_and_found_by_all_who_call_it(folder: Path) -> None:
    before = outcome(summed.compiled, 10)
    kept = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert len(kept) == 3  # the two standalone rules, and the loop
    forget()
    assert outcome(summed.compiled, 10) == before
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == kept


def test_an_edited_rule_leaves_its_callers(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loop, callee = code_keys(summed), code_keys(scaled_twice.source)
    assert outcome(summed.compiled, 10)[1] == 270
    kept = {path.name for path in folder.iterdir()}
    monkeypatch.setitem(globals(), "RATE", 5)
    edited = code_keys(summed)
    assert isinstance(loop, CodeKeys)
    assert isinstance(edited, CodeKeys)
    assert edited.own == loop.own
    assert edited.whole != loop.whole
    assert code_keys(scaled_twice.source) != callee
    for one in (scaled, scaled_twice, summed):
        one._dispatcher = None
    assert outcome(summed.compiled, 10)[1] == 450  # in the same process, and not the kept loop
    assert len({path.name for path in folder.iterdir()} - kept) == 1  # `scaled` alone


def test_code_without_callees_is_made_again(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    before = outcome(summed.compiled, 10)
    for path in folder.glob("scaled*"):
        FolderStore(folder).save(path.stem, b"no machine code")
    forget()
    assert outcome(summed.compiled, 10) == before
    assert "cannot be read" in caplog.text


def test_rules_that_no_other_process_can_have_are_refused() -> None:
    with pytest.raises(RuleCompilationError, match="stands in a module under its own name"):

        @standalone_rule
        def inside(x: int) -> int:
            return x

    with pytest.raises(RuleCompilationError, match="function pointer"):
        by_pointer.compiled(2.0)


ADDRESS = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(math.sqrt)


@standalone_rule
def by_pointer(x: float) -> float:
    return float(ADDRESS(x))


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("called", "reason"),
    [(unsaid, "says what it returns: one of None, bool"), (missaid, "float64")],
)
def test_standalone_rules_say_what_they_return(called: Any, reason: str) -> None:
    with pytest.raises(RuleCompilationError, match=reason):
        called.compiled(2)


def test_other_processes_make_missing_code(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome(summed.compiled, 10)
    wanted = [one for one in standalone._symbols.values() if one.name == "scaled_twice"]
    made = {path.name: path for path in folder.glob("scaled*")}
    for path in made.values():
        path.unlink()
    monkeypatch.setattr(store, "_processors", lambda: 2)
    FolderStore(folder).make_beside(pickle.dumps(wanted))
    assert store._helpers[-1].wait(timeout=300) == 0
    assert {path.name for path in folder.glob("scaled*")} == made.keys()
    forget()
    assert outcome(summed.compiled, 10) == (8, 270, 20)


def test_makers_of_code_end_with_the_process(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "_processors", lambda: 2)
    with FolderStore(folder).making("beside 1"):
        FolderStore(folder).make_beside(pickle.dumps([]))
        assert store._helpers[-1].wait(timeout=300) == 0  # one such process at a time
    FolderStore(folder).make_beside(b"no rules")
    helper = store._helpers[-1]
    assert helper.stdin is not None
    helper.stdin.close()
    assert helper.wait(timeout=300) in (0, 1)
    assert not list(folder.glob("*"))
