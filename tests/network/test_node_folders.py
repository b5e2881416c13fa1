"""What is typed wrong ends in one sentence, and a folder is saved whole or not at all."""

from __future__ import annotations

import io
import json
import re
import shutil
import sqlite3
import stat
import tarfile
import time
from pathlib import Path

from gossamer.node.commands.backup.archive import MANIFEST
from support.installed_command import sentence
from support.node_processes import PATIENCE_S, Shell, end


def test_what_is_typed_wrong_is_answered_in_one_sentence(one_node: Shell) -> None:
    sub, pub = ("sub", "--folder", "desk"), ("pub", "--folder", "desk")
    with one_node.node("desk"):
        for command, words in (
            ((*sub, "prize > 3"), "no attribute 'prize', did you mean 'price'"),
            ((*sub, "price >"), "expected a number.* found the end at column 8"),
            ((*sub, "price = = 3"), "expected a comparison .* found '=' at column 7"),
            ((*sub, 'price > "high"'), "'price' takes a number"),
            ((*sub, "(" * 9000 + "price > 3"), "expression|characters"),
            ((*pub, "prize=3", "symbol=A"), "prize"),
            ((*pub, "price=high", "symbol=A"), "price"),
            ((*pub, "price=200000"), ""),
            ((*pub, "price"), "price"),
            ((*pub, "price=3", "price=4"), "price"),
            (("node", "join", "nonsense", "new"), "token"),
        ):
            done = one_node.run(*command)
            assert (done.returncode, done.stdout) == (2, ""), done.stderr
            assert re.search(words, sentence(done.stderr)), done.stderr
    assert not (one_node.folder / "new").exists()


def test_a_node_whose_configuration_is_spoilt_is_used_and_stopped_all_the_same(
    one_node: Shell,
) -> None:
    with one_node.node("desk") as node:
        with (one_node.folder / "desk/node.toml").open("a", encoding="utf-8") as file:
            file.write("no TOML")
        one_node.ok("pub", "symbol=IBM", "price=81", "--folder", "desk")
        said = [one_node.refused("node", "reload", "desk")]
        one_node.ok("node", "stop", "desk")
        assert node.wait(PATIENCE_S) == 0
    said += [one_node.refused("node", command, "desk") for command in ("status", "stop", "run")]
    assert all("node.toml: the text is no TOML" in sentence(one) for one in said)


# A peer's folder as one file and back.


def files(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Rights and content of the plain files of a peer."""
    return {
        one.name: (stat.S_IMODE(one.stat().st_mode), one.read_bytes())
        for one in folder.iterdir()
        if one.suffix in (".toml", ".json", ".pem", ".key")
    }


def names(folder: Path) -> set[str]:
    return {one.name for one in folder.iterdir()}


def test_a_running_peer_goes_on_from_its_backup(one_node: Shell) -> None:
    with one_node.node("desk"):
        subscriber = one_node.subscriber("--folder", "desk", "--name", "watcher", "price > 80")
        subscriber.terminate()
        end(subscriber)
        event = one_node.ok("pub", "--folder", "desk", "symbol=IBM", "price=81", "volume=1").strip()
        assert "private keys" in one_node.ok("node", "backup", "desk", "desk.backup")
        refused = one_node.refused("node", "restore", "desk.backup", "copy")
        assert f"a peer that runs in {one_node.folder / 'desk'}" in refused
    assert stat.S_IMODE((one_node.folder / "desk.backup").stat().st_mode) == 0o600
    before = files(one_node.folder / "desk")
    shutil.rmtree(one_node.folder / "desk")
    assert "cannot be known here" in one_node.ok("node", "restore", "desk.backup", "elsewhere/desk")
    assert files(one_node.folder / "elsewhere/desk") == before
    assert stat.S_IMODE((one_node.folder / "elsewhere/desk/state.db").stat().st_mode) == 0o600
    with one_node.node("elsewhere/desk"):
        ledger = ("--folder", "elsewhere/desk", "--name", "watcher", "--count", "1")
        assert json.loads(one_node.ok("sub", *ledger, "price > 80"))["id"] == event


def test_what_goes_back_in_time_does_no_harm(one_node: Shell) -> None:
    """Descriptors go on above those that were signed since; tokens out there are void."""
    with one_node.node("desk"):
        one_node.ok("node", "invite", "--folder", "desk")
    one_node.ok("node", "backup", "desk", "desk.backup")
    began = time.time() * 1000
    one_node.ok("node", "restore", "desk.backup", "copy")
    with sqlite3.connect(one_node.folder / "copy/state.db") as state:
        ((sequence,),) = state.execute("SELECT next_sequence FROM identity")
        assert sequence >= int(began)
        assert state.execute("SELECT count(*) FROM tokens").fetchall() == [(0,)]
    with sqlite3.connect(one_node.folder / "desk/state.db") as state:
        assert state.execute("SELECT count(*) FROM tokens").fetchall() == [(1,)]


def test_a_copy_of_a_folder_does_not_run_beside_it(one_node: Shell) -> None:
    shutil.copytree(one_node.folder / "desk", one_node.folder / "copy")
    with one_node.node("desk"):
        refused = one_node.refused("node", "run", "copy")
    assert f"which runs in {one_node.folder / 'desk'} already" in refused
    with one_node.node("copy"):
        pass


def test_a_backup_replaces_nothing_and_leaves_nothing_half_written(one_node: Shell) -> None:
    folder = one_node.folder
    one_node.ok("node", "backup", "desk", "desk.backup")
    (folder / "mine").write_text("mine")
    (folder / "empty").mkdir()
    before, desk = names(folder), files(folder / "desk")
    for arguments, words in (
        (("backup", "desk", "mine"), "mine"),
        (("backup", "desk", "nowhere/desk.backup"), "nowhere/desk.backup"),
        (("backup", "empty", "new.backup"), "empty "),
        (("backup", "none", "new.backup"), "none "),
        (("restore", "desk.backup", "desk"), "expected a new or an empty folder"),
    ):
        assert words in one_node.refused("node", *arguments)
    assert (names(folder), files(folder / "desk")) == (before, desk)


def changed(data: bytes, name: str, content: bytes) -> bytes:
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
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        file = tar.extractfile(MANIFEST)
        assert file is not None
        found = json.loads(file.read()) | fields
    return changed(data, MANIFEST, json.dumps(found).encode())


def test_what_is_no_whole_backup_restores_nothing(one_node: Shell) -> None:
    one_node.ok("node", "backup", "desk", "whole")
    whole = (one_node.folder / "whole").read_bytes()
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
        (one_node.folder / name).write_bytes(data)
        before = names(one_node.folder)
        assert words in one_node.refused("node", "restore", name, "copy"), name
        assert names(one_node.folder) == before, name


def test_a_broker_begins_anew(one_node: Shell) -> None:
    one_node.ok("node", "init", "hub", "--preset", "local")
    advertise = ("advertise", "present(price)", "--name", "feed", "--folder")
    with one_node.node("hub", "--role", "broker"):
        one_node.ok(*advertise, "hub")
        one_node.ok("node", "backup", "hub", "hub.backup")
    one_node.ok("node", "restore", "hub.backup", "copy")
    with one_node.node("copy", "--role", "broker"):
        one_node.ok(*advertise, "copy")
