"""A peer's folder as one file and back: whole or not at all, and one peer of an identity."""

from __future__ import annotations

import io
import json
import shutil
import sqlite3
import stat
import tarfile
import time
from pathlib import Path

import pytest

from gossamer.node.commands.backup.archive import MANIFEST
from support.node_processes import Shell, end


def files(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Rights and content of the plain files of a peer."""
    return {
        one.name: (stat.S_IMODE(one.stat().st_mode), one.read_bytes())
        for one in folder.iterdir()
        if one.suffix in (".toml", ".json", ".pem", ".key")
    }


def names(folder: Path) -> set[str]:
    return {one.name for one in folder.iterdir()}


def test_a_running_peer_goes_on_from_its_backup(desk: Shell) -> None:
    with desk.node("desk"):
        subscriber = desk.subscriber("--folder", "desk", "--name", "watcher", "price > 80")
        subscriber.terminate()
        end(subscriber)
        event = desk.ok("pub", "--folder", "desk", "symbol=IBM", "price=81", "volume=1").strip()
        assert "private keys" in desk.ok("node", "backup", "desk", "desk.backup")
        refused = desk.refused("node", "restore", "desk.backup", "copy")
        assert f"a peer that runs in {desk.folder / 'desk'}" in refused
    assert stat.S_IMODE((desk.folder / "desk.backup").stat().st_mode) == 0o600
    before = files(desk.folder / "desk")
    shutil.rmtree(desk.folder / "desk")
    assert "cannot be known here" in desk.ok("node", "restore", "desk.backup", "elsewhere/desk")
    assert files(desk.folder / "elsewhere/desk") == before
    assert stat.S_IMODE((desk.folder / "elsewhere/desk/state.db").stat().st_mode) == 0o600
    with desk.node("elsewhere/desk"):
        ledger = ("--folder", "elsewhere/desk", "--name", "watcher", "--count", "1")
        assert json.loads(desk.ok("sub", *ledger, "price > 80"))["id"] == event


def test_what_goes_back_in_time_does_no_harm(desk: Shell) -> None:
    """Descriptors go on above those that were signed since; tokens out there are void."""
    with desk.node("desk"):
        desk.ok("node", "invite", "--folder", "desk")
    desk.ok("node", "backup", "desk", "desk.backup")
    began = time.time() * 1000
    desk.ok("node", "restore", "desk.backup", "copy")
    with sqlite3.connect(desk.folder / "copy/state.db") as state:
        ((sequence,),) = state.execute("SELECT next_sequence FROM identity")
        assert sequence >= int(began)
        assert state.execute("SELECT count(*) FROM tokens").fetchall() == [(0,)]
    with sqlite3.connect(desk.folder / "desk/state.db") as state:
        assert state.execute("SELECT count(*) FROM tokens").fetchall() == [(1,)]


def test_a_copy_of_a_folder_does_not_run_beside_it(desk: Shell) -> None:
    shutil.copytree(desk.folder / "desk", desk.folder / "copy")
    with desk.node("desk"):
        refused = desk.refused("node", "run", "copy")
    assert f"which runs in {desk.folder / 'desk'} already" in refused
    with desk.node("copy"):
        pass


@pytest.mark.parametrize("place", ["desk.backup", "nowhere/desk.backup"])
def test_a_backup_replaces_nothing_and_leaves_nothing_half_written(desk: Shell, place: str) -> None:
    if place == "desk.backup":
        (desk.folder / place).write_text("mine")
    before = names(desk.folder)
    assert place in desk.refused("node", "backup", "desk", place)
    assert names(desk.folder) == before


@pytest.mark.parametrize("folder", ["empty", "none"])
def test_what_is_no_node_is_not_backed_up(desk: Shell, folder: str) -> None:
    (desk.folder / "empty").mkdir()
    assert f"{folder} " in desk.refused("node", "backup", folder, "desk.backup")
    assert not (desk.folder / "desk.backup").exists()


def changed(data: bytes, name: str, content: bytes) -> bytes:
    """A backup with another content of one of its files."""
    made = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(data)) as source,
        tarfile.open(fileobj=made, mode="w:gz") as target,
    ):
        for member in source:
            file = source.extractfile(member)
            assert file is not None
            body = content if member.name == name else file.read()
            member.size = len(body)
            target.addfile(member, io.BytesIO(body))
    return made.getvalue()


def manifest_with(data: bytes, **fields: object) -> bytes:
    """A backup whose manifest says something else."""
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        file = tar.extractfile(MANIFEST)
        assert file is not None
        found = json.loads(file.read()) | fields
    return changed(data, MANIFEST, json.dumps(found).encode())


def test_what_is_no_whole_backup_restores_nothing(desk: Shell) -> None:
    desk.ok("node", "backup", "desk", "whole")
    whole = (desk.folder / "whole").read_bytes()
    outside = [{"name": "../outside", "mode": 0o644, "size": 0, "digest": 64 * "0"}]
    wrong = {
        "cut": (whole[: len(whole) // 2], "no whole backup"),
        "noise": (b"no backup at all", "no whole backup"),
        "empty": (b"", "no whole backup"),
        "edited": (changed(whole, "node.toml", b"[node]\n"), "'node.toml' is not what"),
        "newer": (manifest_with(whole, format=2), "format 2, expected 1"),
        "outside": (manifest_with(whole, items=outside), "'../outside' is no name of a file"),
        "foreign": (manifest_with(whole, key=16 * "0"), "expected 0000000000000000"),
        "more": (manifest_with(whole, items=[]), "more files than its manifest"),
    }
    for name, (data, words) in wrong.items():
        (desk.folder / name).write_bytes(data)
        before = names(desk.folder)
        assert words in desk.refused("node", "restore", name, "copy"), name
        assert names(desk.folder) == before, name


def test_a_backup_restores_into_no_folder_that_is_taken(desk: Shell) -> None:
    desk.ok("node", "backup", "desk", "desk.backup")
    before = files(desk.folder / "desk")
    told = desk.refused("node", "restore", "desk.backup", "desk")
    assert "expected a new or an empty folder" in told
    assert files(desk.folder / "desk") == before


def test_a_broker_begins_anew(desk: Shell) -> None:
    desk.ok("node", "init", "hub", "--preset", "local")
    advertise = ("advertise", "present(price)", "--name", "feed", "--folder")
    with desk.node("hub", "--role", "broker"):
        desk.ok(*advertise, "hub")
        desk.ok("node", "backup", "hub", "hub.backup")
    desk.ok("node", "restore", "hub.backup", "copy")
    with desk.node("copy", "--role", "broker"):
        desk.ok(*advertise, "copy")
