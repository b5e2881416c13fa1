"""What people get wrong ends in one sentence, and a peer's folder is saved whole or not at all."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import socket
import sqlite3
import stat
import tarfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from gossamer.command.main import main
from gossamer.node.commands.backup.archive import MANIFEST
from gossamer.node.security.event_keys import save_event_key
from gossamer.node.store import Store
from support.clusters import event_key
from support.installed_command import install, refused, sentence
from support.node_processes import PATIENCE_S, Shell, end

CaptureFixture = pytest.CaptureFixture[str]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: CaptureFixture) -> Path:
    install(tmp_path / "installed", monkeypatch)
    monkeypatch.chdir(tmp_path)
    assert main(["node", "init", "desk", "--preset", "local"]) == 0
    capsys.readouterr()
    return tmp_path / "desk"


def test_a_port_in_use(folder: Path, capsys: CaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        at = f"127.0.0.1:{taken.getsockname()[1]}"
        told = refused(capsys, "node", "run", str(folder), "--set", f'listen.addresses=["{at}"]')
    assert re.search(f"cannot listen on {at}: .*in use", told)


def folder_instead(key: Path) -> None:
    key.unlink()
    key.mkdir()


SPOIL: dict[str, Callable[[Path], object]] = {
    "open to others": partial(Path.chmod, mode=0o644),
    "empty": partial(Path.write_bytes, data=b""),
    "other content": partial(
        Path.write_text, data="-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"
    ),
    "other key": lambda key: key.write_bytes(key.with_name("peer.key").read_bytes()),
    "too large": partial(Path.write_bytes, data=bytes(1 << 20)),
    "missing": Path.unlink,
    "a folder": folder_instead,
    "not allowed": partial(Path.chmod, mode=0),
}


@pytest.mark.parametrize(
    ("name", "spoilt", "words"),
    [
        ("peer.key", "open to others", r"mode 644\), expected mode 600; run: chmod 600"),
        ("peer.key", "empty", "key"),
        ("peer.key", "other content", "key"),
        ("peer.key", "too large", "is too large for a key"),
        ("peer.key", "missing", "cannot be read: No such file"),
        ("peer.key", "a folder", "cannot be read: Is a directory"),
        ("peer.key", "not allowed", "cannot be read: Permission denied"),
        ("events.key", "open to others", r"mode 644\), expected mode 600; run: chmod 600"),
        ("events.key", "empty", "is no private key in PEM; remove it, and the peer makes another"),
        ("events.key", "other content", "remove it, and the peer makes another one"),
        ("events.key", "other key", "of another kind or damaged, expected RSA-2048; remove"),
        ("events.key", "too large", "is too large for a key"),
        ("events.key", "a folder", "cannot be read: Is a directory"),
    ],
)
def test_an_unreadable_key(
    folder: Path, capsys: CaptureFixture, name: str, spoilt: str, words: str
) -> None:
    if spoilt == "not allowed" and os.geteuid() == 0:
        pytest.skip("the superuser may read everything")
    save_event_key(event_key(0), folder / "events.key")
    SPOIL[spoilt](folder / name)
    told = refused(capsys, "node", "run", str(folder))
    assert name in told
    assert re.search(words, told)


@pytest.mark.parametrize("state", ["state.db", "clients.db"])
def test_a_state_file_of_a_newer_version(folder: Path, capsys: CaptureFixture, state: str) -> None:
    Store(folder / state).close()
    database = sqlite3.connect(folder / state)
    with database:
        database.execute("INSERT INTO migrations (version) VALUES (99)")
    database.close()
    any_port = "addresses=['127.0.0.1:0']"
    settings = (f"listen.{any_port}", f"listen.join_{any_port}", "page.enabled=false")
    more = [word for setting in settings for word in ("--set", setting)]
    assert main(["node", "run", str(folder), *more]) == 2
    told = sentence(capsys.readouterr().err.splitlines()[-1])
    assert f"{state} has state of version 6, expected at most 5" in told
    assert told.endswith("; upgrade gossamer")


@pytest.mark.parametrize("token", ["", "nonsense", "gossamer-" + "A" * 200, "\N{SNOWMAN}"])
def test_a_bad_token(folder: Path, capsys: CaptureFixture, token: str) -> None:
    told = refused(capsys, "node", "join", token, "new")
    assert "token" in told
    assert not (folder.parent / "new").exists()


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """Commands beside a node that runs."""
    made = Shell(tmp_path_factory.mktemp("bad input"))
    made.ok("node", "init", "desk", "--preset", "local")
    with made.node("desk"):
        yield made


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("prize > 3", "no attribute 'prize', did you mean 'price'"),
        ("price >", "expected a number.* found the end at column 8"),
        ("price > 3 and", "expected an attribute name, found the end"),
        ("price = = 3", "expected a comparison .* found '=' at column 7"),
        ('price > "high"', "'price' takes a number"),
        ("(" * 9000 + "price > 3", "expression|characters"),
    ],
)
def test_a_bad_expression(beside: Shell, expression: str, words: str) -> None:
    done = beside.run("sub", expression, "--folder", "desk", "--count", "1")
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert re.search(words, sentence(done.stderr)), done.stderr


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ("prize=3 symbol=A volume=1", "prize"),
        ("price=high symbol=A volume=1", "price"),
        ("price=200000", ""),
        ("price", "price"),
        ("price=3 price=4", "price"),
    ],
)
def test_a_bad_event(beside: Shell, values: str, named: str) -> None:
    assert named in sentence(beside.refused("pub", *values.split(), "--folder", "desk"))


def test_a_node_whose_configuration_is_spoilt_is_used_and_stopped_all_the_same(
    one_node: Shell,
) -> None:
    with one_node.node("desk") as node:
        with (one_node.folder / "desk/node.toml").open("a", encoding="utf-8") as file:
            file.write("no TOML")
        one_node.ok("pub", "symbol=IBM", "price=81", "--folder", "desk")
        assert "node.toml: the text is no TOML" in sentence(
            one_node.refused("node", "reload", "desk")
        )
        one_node.ok("node", "stop", "desk")
        assert node.wait(PATIENCE_S) == 0
    for command in ("status", "stop", "run"):
        assert "node.toml: the text is no TOML" in sentence(
            one_node.refused("node", command, "desk")
        )


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


@pytest.mark.parametrize("place", ["desk.backup", "nowhere/desk.backup"])
def test_a_backup_replaces_nothing_and_leaves_nothing_half_written(
    one_node: Shell, place: str
) -> None:
    if place == "desk.backup":
        (one_node.folder / place).write_text("mine")
    before = names(one_node.folder)
    assert place in one_node.refused("node", "backup", "desk", place)
    assert names(one_node.folder) == before


@pytest.mark.parametrize("folder", ["empty", "none"])
def test_what_is_no_node_is_not_backed_up(one_node: Shell, folder: str) -> None:
    (one_node.folder / "empty").mkdir()
    assert f"{folder} " in one_node.refused("node", "backup", folder, "desk.backup")
    assert not (one_node.folder / "desk.backup").exists()


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


def test_a_backup_restores_into_no_folder_that_is_taken(one_node: Shell) -> None:
    one_node.ok("node", "backup", "desk", "desk.backup")
    before = files(one_node.folder / "desk")
    told = one_node.refused("node", "restore", "desk.backup", "desk")
    assert "expected a new or an empty folder" in told
    assert files(one_node.folder / "desk") == before


def test_a_broker_begins_anew(one_node: Shell) -> None:
    one_node.ok("node", "init", "hub", "--preset", "local")
    advertise = ("advertise", "present(price)", "--name", "feed", "--folder")
    with one_node.node("hub", "--role", "broker"):
        one_node.ok(*advertise, "hub")
        one_node.ok("node", "backup", "hub", "hub.backup")
    one_node.ok("node", "restore", "hub.backup", "copy")
    with one_node.node("copy", "--role", "broker"):
        one_node.ok(*advertise, "copy")
