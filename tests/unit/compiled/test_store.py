"""Machine code in a folder: whole or not at all, never damaged, never too much."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any

import pytest

from gossamer.compiled.store import FolderStore, cache_root, keep_compiled_code
from gossamer.protocol.kernel import keyed_code
from gossamer.protocol.kernel.rules import Rule, keep_code_in, rule
from gossamer.sim.engine.loops import Loop, loop_factory


@rule
def double(x: int) -> int:
    return 2 * x


def forget() -> None:
    keyed_code._dispatchers.clear()
    double._dispatcher = None


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    forget()
    keep_code_in(FolderStore(tmp_path / "code"))
    yield tmp_path / "code"
    keep_compiled_code()


def test_code_and_locks_are_found_again(tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "code")
    assert store.load("a") is None
    store.save("a", b"machine code")
    assert FolderStore(tmp_path / "code").load("a") == b"machine code"
    store = FolderStore(tmp_path / "code")
    for _ in range(2):
        with store.making("a") as waited:
            assert not waited
        (tmp_path / "code.lock").unlink()


@pytest.mark.parametrize("damage", [b"", b"short", b"x" * 40])
def test_a_damaged_file_is_as_none(
    damage: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = FolderStore(tmp_path)
    store.save("a", b"machine code")
    (file,) = tmp_path.iterdir()
    file.write_bytes(damage)
    assert store.load("a") is None
    assert "damaged" in caplog.text
    store.save("a", b"machine code")
    assert store.load("a") == b"machine code"


def test_the_least_recently_used_makes_room_and_unwritable_ones_none(tmp_path: Path) -> None:
    store = FolderStore(tmp_path, most_bytes=3 * (32 + 100))
    for age, name in enumerate("abc"):
        store.save(name, bytes(100))
        os.utime(tmp_path / f"{name}.code", (1000 + age, 1000 + age))
    assert store.load("a") is not None
    store.save("d", bytes(100))
    assert [store.load(name) is not None for name in "abcd"] == [True, False, True, True]
    (tmp_path / "code").write_text("no folder")
    store = FolderStore(tmp_path / "code")
    store.save("a", b"machine code")
    assert store.load("a") is None


MAKER = """
import sys
from pathlib import Path
from gossamer.compiled.store import FolderStore

store = FolderStore(Path(sys.argv[1]))
with store.making("{first}") as waited:
{then}
    print(waited, flush=True)
    sys.stdin.read()
    store.save("{first}", b"machine code")
"""


@contextlib.contextmanager
def process_making(folder: Path, first: str, then: str = "") -> Iterator[IO[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", MAKER.format(first=first, then=then), str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as maker:
        assert maker.stdin is not None
        assert maker.stdout is not None
        assert maker.stdout.readline() == "False\n"
        yield maker.stdin


def test_one_process_makes_code_and_others_wait_for_it(tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "code"
    with process_making(folder, "a") as its_input:
        store = FolderStore(folder)
        with store.making("b") as waited:
            assert not waited
        threading.Timer(0.1, its_input.close).start()
        with store.making("a") as waited:
            assert waited
            assert store.load("a") == b"machine code"


def test_who_has_made_a_part_goes_on_making_the_whole(tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "code"
    made_a_part = '    with store.making("step"):\n        pass'
    with process_making(folder, "loop", made_a_part) as its_input:
        store = FolderStore(folder)
        for name, is_being_made in (("loop", True), ("step", False)):
            with store.making(name, waits=False) as elsewhere:
                assert elsewhere is is_being_made
        its_input.close()


def test_code_of_another_process_is_taken(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert double.compiled(4) == 8
    (file,) = folder.iterdir()
    content = file.read_bytes()
    file.unlink()
    forget()

    @contextlib.contextmanager
    def another_makes(_store: FolderStore, _name: str) -> Iterator[bool]:
        file.write_bytes(content)
        os.utime(file, ns=(0, 0))
        yield True
        assert file.read_bytes() == content

    monkeypatch.setattr(FolderStore, "making", another_makes)
    saved: list[str] = []
    monkeypatch.setattr(FolderStore, "save", lambda _store, name, _code: saved.append(name))
    assert double.compiled(4) == 8
    assert not saved


def test_a_rule_is_compiled_once_for_all(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert double.compiled(4) == 8
    (file,) = folder.iterdir()
    written = file.read_bytes()
    os.utime(file, ns=(0, 0))
    forget()
    assert double.compiled(5) == 10
    assert file.read_bytes() == written
    assert sum(double.compiled._cache_misses.values()) == 0
    assert double.compiled(4) == 8
    (file,) = folder.iterdir()
    FolderStore(folder).save(file.stem, b"no machine code")
    forget()
    assert double.compiled(5) == 10
    assert "cannot be read" in caplog.text


def test_the_folder_of_caches_can_be_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOSSAMER_CACHE", "elsewhere")
    assert cache_root() == Path("elsewhere")


RATE = 1


@rule
def times_rate(x: int) -> int:
    return double(x) * RATE  # type: ignore[no-any-return]


@loop_factory(inline=False)
def make_caller(called: Rule) -> Any:
    def call(x: int) -> Any:
        return called(x)

    return call


@pytest.mark.usefixtures("folder")
def test_a_loop_made_after_a_global_changed_has_its_value(monkeypatch: pytest.MonkeyPatch) -> None:
    before = make_caller(times_rate)
    assert before(3) == 6
    assert make_caller(times_rate) is before
    monkeypatch.setitem(globals(), "RATE", 5)
    assert before(3) == 6  # constant since it was made
    assert make_caller(times_rate)(3) == 30
    monkeypatch.undo()
    assert make_caller(times_rate)(3) == 6


@pytest.mark.usefixtures("folder")
def test_threads_that_ask_at_once_share_one_loop() -> None:
    """Systems run side by side, and each asks for the loops of the protocol."""
    start = threading.Barrier(4)

    @loop_factory(inline=False)
    def make_fresh(called: Rule) -> Any:
        def fresh(x: int) -> Any:
            return called(x) + 1

        return fresh

    def ask(_: int) -> tuple[Loop, int]:
        start.wait()
        loop = make_fresh(times_rate)
        return loop, loop(3)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(ask, range(4)))
    assert {called for _, called in found} == {7}
    assert len({id(loop) for loop, _ in found}) == 1
    entries = [purpose for purpose, _ in keyed_code._dispatchers if purpose == "entry"]
    assert len(entries) == 1
