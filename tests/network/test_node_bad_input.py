"""What people get wrong ends in one clear sentence and exit code 2, whichever command they use."""

from __future__ import annotations

import os
import re
import socket
import sqlite3
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from gossamer.command.main import main
from gossamer.node.security.event_keys import save_event_key
from gossamer.node.store import Store
from support.clusters import event_key
from support.installed_command import install, refused, sentence
from support.node_processes import PATIENCE_S, Shell

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
    assert f"{state} has state of version 5, expected at most 4" in told
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


def test_a_node_whose_configuration_is_spoilt_is_used_and_stopped_all_the_same(desk: Shell) -> None:
    with desk.node("desk") as node:
        with (desk.folder / "desk/node.toml").open("a", encoding="utf-8") as file:
            file.write("no TOML")
        desk.ok("pub", "symbol=IBM", "price=81", "--folder", "desk")
        assert "node.toml: the text is no TOML" in sentence(desk.refused("node", "reload", "desk"))
        desk.ok("node", "stop", "desk")
        assert node.wait(PATIENCE_S) == 0
    for command in ("status", "stop", "run"):
        assert "node.toml: the text is no TOML" in sentence(desk.refused("node", command, "desk"))
