"""The commands of the node in this process: what they write, print, and refuse in one sentence."""

from __future__ import annotations

import io
import re
import sqlite3
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from attrs import define, evolve
from rich.console import Console, RenderableType

from gossamer.command.main import main
from gossamer.node import errors
from gossamer.node.commands.clients import publishing
from gossamer.node.commands.cluster import membership, schema_changes
from gossamer.node.commands.cluster.membership import init
from gossamer.node.commands.cluster.watching import picture, status_table
from gossamer.node.config.file import load_config
from gossamer.node.page.snapshot import PeerView
from gossamer.node.security.cluster import open_membership
from gossamer.node.security.joining.join_protocol import read_token
from gossamer.node.store import Store
from gossamer.node.store.database import read_version
from support.installed_command import install
from support.loopback_peer import EMPTY


@pytest.fixture(autouse=True)
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path / "installed", monkeypatch)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(membership, "last_taken", lambda *_: None)


def shown(renderable: RenderableType, width: int = 120) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(renderable)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@define
class Shell:
    capsys: pytest.CaptureFixture[str]

    def ok(self, *arguments: str) -> str:
        """What a command prints that ends with 0."""
        self.capsys.readouterr()
        assert main(arguments) == 0
        return self.capsys.readouterr().out

    def refused(self, *arguments: str, code: int = 2) -> str:
        """What a command says that fails as commands should: in one sentence."""
        self.capsys.readouterr()
        assert main(arguments) == code
        said = self.capsys.readouterr()
        assert said.out == ""
        assert said.err.startswith("gossamer: ")
        assert said.err.count("\n") == 1
        return said.err


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(capsys)


def test_init_leaves_a_configuration_that_means_what_it_says(tmp_path: Path, shell: Shell) -> None:
    said = shell.ok("node", "init", "desk", "--name", 'Ada\'s "first"', "--preset", "wan")
    assert "now: gossamer node run desk" in said
    assert "expected a folder that holds no cluster yet" in shell.refused("node", "init", "desk")
    text = (tmp_path / "desk/node.toml").read_text()
    assert tomllib.loads(text)["identity"] == {"name": 'Ada\'s "first"'}
    config = load_config(tmp_path / "desk/node.toml", {}).config
    assert (config.preset, config.identity.name) == ("wan", 'Ada\'s "first"')
    # What stands there as a comment is what the preset lan has.
    everything = re.sub(r"(?m)^# (?=\w+ = )", "", text).replace('"wan"', '"lan"')
    (tmp_path / "desk/all.toml").write_text(everything.replace('address = "127.0.0.1:7713"', ""))
    lan = load_config(None, {}).config
    for section in ("listen", "discovery", "delivery", "page", "local"):
        given = load_config(tmp_path / "desk/all.toml", {}).config
        assert getattr(given, section) == getattr(lan, section)


def test_init_of_several_makes_a_cluster_whose_maker_revokes(tmp_path: Path, shell: Shell) -> None:
    shell.ok("node", "init", "demo", "--peers", "3", "--port", "7000")
    members = [open_membership(tmp_path / f"demo/peer{n}") for n in (1, 2, 3)]
    assert len({member.authority.cluster for member in members}) == 1
    assert len({member.identity.key for member in members}) == 3
    config = load_config(tmp_path / "demo/peer2/node.toml", {}).config
    assert config.listen.addresses == ("127.0.0.1:7001",)
    assert config.discovery.peers == ("127.0.0.1:7000", "127.0.0.1:7002")
    assert [(tmp_path / f"demo/peer{n}/ca.key").exists() for n in (1, 2, 3)] == [True, False, False]
    assert "is revoked" in shell.ok("node", "revoke", "peer2", "--folder", "demo/peer1")
    said = shell.refused("node", "revoke", "peer9", "--folder", "demo/peer1")
    assert "has issued nothing to 'peer9'" in said


def test_init_refuses_what_cannot_be(tmp_path: Path, shell: Shell) -> None:
    for arguments, words in (
        (("--preset", "moon"), "--preset is 'moon', expected one of lan, wan, local"),
        (("--schema", "none.toml"), "none.toml: the schema file is unreadable"),
        (("--cluster", ""), "name is ''"),
        (("--peers", "65"), "--peers is 65, expected at most 64 peers"),
        (("--peers", "3", "--port", "80"), "--port is 80, expected a port from 1024 to 65532"),
    ):
        assert words in shell.refused("node", "init", "desk", *arguments)
        assert not (tmp_path / "desk/ca.key").exists()


def test_check_shows_settings_and_what_would_stop_the_node(tmp_path: Path, shell: Shell) -> None:
    shell.ok("node", "init", "desk")
    said = shell.refused("node", "ready", "desk", "--within", "0", code=1)
    assert said.startswith("gossamer: after 0 s no node runs in ")
    out = shell.ok("node", "check", "desk", "--set", "delivery.successors=3")
    assert "certified for 730 more days" in out
    assert "symbol (string), price (float), volume (integer)" in out
    folder = tmp_path / "desk"
    (folder / "peer.key").chmod(0o644)
    assert "peer.key can be used by others (mode 644)" in shell.refused("node", "run", "desk")
    (folder / "peer.key").chmod(0o600)
    with sqlite3.connect(folder / "state.db") as connection:
        connection.execute("INSERT INTO migrations (version) VALUES (99)")
    connection.close()
    for command in ("check", "run"):
        shell.capsys.readouterr()
        assert main(["node", command, "desk"]) == 2
        said = shell.capsys.readouterr().err
        assert "has state of version 6, expected at most 5" in said
    for file, text, words in (
        ("schema.toml", "[attributes.a]\ntype = 'string'\n", "describes schema"),
        ("node.toml", "[delivery]\nretain = 3\n", "node.toml: delivery.retain is an unknown"),
    ):
        (folder / file).write_text(text)
        assert words in shell.refused("node", "run", "desk")


def test_a_schema_that_needs_another_preset_is_said_early(tmp_path: Path, shell: Shell) -> None:
    tables = "".join(f"[attributes.a{number}]\ntype = 'string'\n" for number in range(16))
    (tmp_path / "wide.toml").write_text(tables)
    for arguments in ((), ("--peers", "2")):
        folder = f"desk{len(arguments)}"
        said = shell.ok("node", "init", folder, "--schema", "wide.toml", *arguments)
        assert '16 attributes: set protocol.preset = "resilient"' in said
    assert main(["node", "check", "desk0"]) == 2
    assert "is 16, expected a whole number from 1 to 15" in shell.capsys.readouterr().err
    shell.ok("node", "check", "desk0", "--set", "protocol.preset=resilient")
    assert "resilient" not in shell.ok("node", "init", "other").partition("events are made")[2]


def test_invitations_need_a_membership_and_a_known_port(tmp_path: Path, shell: Shell) -> None:
    for command in ("doctor", "invite"):
        said = shell.refused("node", command, "--folder", "nowhere")
        assert "nowhere" in said
        assert "gossamer node" in said
    shell.ok("node", "init", "desk")
    invite = ("node", "invite", "--folder", "desk", "--address")
    assert read_token(shell.ok(*invite, "10.1.2.3")).addresses == (("10.1.2.3", 7712),)
    assert "--address is 'a b'" in shell.refused(*invite, "a b")
    shell.ok("node", "init", "other", "--preset", "local")
    said = shell.refused("node", "invite", "--folder", "other")
    assert "known only while its node runs; start it" in said
    for token, words in (("nonsense", "is no join token"), ("gossamer1-aaaa", "copy it again")):
        assert words in shell.refused("node", "join", token, "new")
        assert not (tmp_path / "new").exists()


def test_commands_explain_themselves_and_say_what_they_need(shell: Shell) -> None:
    for command in ("node", "sub", "pub", "top"):
        assert f"gossamer {command}" in shell.ok(command, "--help")
    no_node = "expected one started by 'gossamer node run"
    for arguments, words in (
        *((one, no_node) for one in ("sub price>80", "pub price=80", "top", "node ready nowhere")),
        *((one, no_node) for one in ("node status", "node stop")),
        ("pub --jsonl none.jsonl", "--jsonl is unreadable"),
        ("sub price>1 --count 0", "--count is '0', expected a whole number of at least 1"),
        ("sub price>1 --count 1.5", "--count is '1.5', expected a whole number of at least 1"),
    ):
        assert words in shell.refused(*arguments.split())
    # Options that exclude others.
    for arguments in (
        *("sub", "sub --forget", "sub price>1 --forget --name a"),
        *("pub", "pub price=1 --jsonl -"),
    ):
        said = shell.refused(*arguments.split())
        assert re.fullmatch(r"gossamer: .+; see 'gossamer (sub|pub) --help'\n", said), said


def test_the_version_of_a_state_file_is_read_without_changing_it(tmp_path: Path) -> None:
    path = tmp_path / "odd name?.db"
    Store(path).close()
    assert read_version(path) == 5
    (tmp_path / "text.db").write_text("nothing of the kind")
    with pytest.raises(errors.StoreError):
        read_version(tmp_path / "text.db")
    with pytest.raises(errors.StoreError, match="cannot be used: unable to open"):
        read_version(tmp_path / "none.db")
    assert not (tmp_path / "none.db").exists()


def test_the_picture_of_a_peer_has_its_links_rates_queues_and_drops() -> None:
    hostile = PeerView(key=3, position=0.7, name="[bold]\x1b[2J", links=("friend",), load=2.0)
    text = shown(picture(evolve(EMPTY, peers=(*EMPTY.peers, hostile), known_peers=2).to_json()))
    assert "\x1b" not in text
    assert "[bold]" in text
    for row in (r"ring\s+1\s+1", r"friend\s+1\s+0", r"published\s+2\.0", r"unreachable\s+3"):
        assert re.search(row, text)
    assert "flood" not in text
    assert "1 frames, 100 bytes" in text
    assert "…" not in shown(picture(EMPTY.to_json()), width=80)


def test_a_status_is_shown_in_words_and_the_picture_of_a_broker_without_the_ring() -> None:
    neighbour = PeerView(key=3, position=0.7, name="kitchen", links=("neighbour",), connected=True)
    members = {"alive": 2, "suspect": 0, "gone": 1, "revoked": 0}
    broker = evolve(EMPTY, role="broker", peers=(neighbour,), members=members)
    text = shown(picture(broker.to_json()), width=80)
    assert re.search(r"kitchen\s+0\s+yes", text)
    assert "members: 2 alive, 1 gone" in text
    for word in ("ring", "friend", "round ", "position", "load", "published", "…"):
        assert word not in text.replace("round trip", "")

    said = {"ready": True, "page": "", "addresses": ["a", "b"], "local": {"ended": {"flood": 2}}}
    text = shown(status_table(said))
    for row in (r"ready\s+yes", r"page\s+none", r"addresses\s+a, b", r"local\s+ended: flood 2"):
        assert re.search(row, text)


@pytest.mark.parametrize("arguments", [("--jsonl", "-"), ("price=1",)])
def test_pub_ends_with_1_where_events_may_be_lost_and_3_where_this_peer_alone_has_them(
    monkeypatch: pytest.MonkeyPatch, shell: Shell, arguments: Sequence[str]
) -> None:
    def one(*_: object) -> tuple[str, bool]:
        raise errors.UnacknowledgedError(["7"], 1, "event 7 was not acknowledged")

    monkeypatch.setattr(publishing, "publish_lines", lambda *_: (publishing.EXIT_UNACKNOWLEDGED, 0))
    monkeypatch.setattr(publishing, "publish_one", one)
    assert main(["pub", *arguments]) == 1
    assert shell.capsys.readouterr().out == ""
    monkeypatch.setattr(publishing, "publish_lines", lambda *_: (publishing.EXIT_OK, 1))
    monkeypatch.setattr(publishing, "publish_one", lambda *_: ("7", True))
    assert main(["pub", *arguments]) == 3
    said = shell.capsys.readouterr().err
    assert "by this peer alone: 1; no other peer is reached" in said


OPTIONS: dict[str, Any] = {"cluster": "desk", "name": "a", "schema": None, "preset": None}
OPTIONS |= {"peers": 2, "port": None}


def test_changes_are_numbered_signed_and_shown_by_who_made_the_cluster(tmp_path: Path) -> None:
    init(tmp_path / "c", **OPTIONS)
    first = tmp_path / "c" / "peer1"
    assert schema_changes.show(first)[0] == "version 1 of the schema"
    said = schema_changes.add(first, "bid", "decimal", ["minimum=0", "maximum=10", "places=2"])
    assert said.startswith("version 2 of the schema is signed")
    schema_changes.add(first, "side", "enumeration", ["values=buy,sell"])
    schema_changes.add(first, "day", "date", ["minimum=2020-01-01", "maximum=2030-01-01"])
    schema_changes.widen(first, "price", ["maximum=1000000"])
    schema_changes.retire(first, "volume")
    shown = schema_changes.show(first)
    assert shown[0] == "version 6 of the schema"
    assert "price (float): a number from 0 to 1000000" in shown
    assert any(line.startswith("volume") and "retired since version 6" in line for line in shown)
    assert any(line.startswith("bid (decimal)") and "added later" in line for line in shown)
    assert schema_changes.show(tmp_path / "c" / "peer2")[0] == "version 1 of the schema"
    with pytest.raises(errors.ClusterFolderError, match=r"holds no ca\.key"):
        schema_changes.retire(tmp_path / "c" / "peer2", "price")


add, widen, retire = schema_changes.add, schema_changes.widen, schema_changes.retire
BAD: list[tuple[Callable[..., str], tuple[object, ...], str]] = [
    (add, ("price", "boolean", []), "price is 'there already', expected a name that was"),
    (add, ("x", "text", []), "x.type is 'text', expected one of integer, "),
    (add, ("x", "float", ["minimum=5", "maximum=3"]), "x.maximum is 3, expected more than 5"),
    (add, ("x", "boolean", ["minimum=5"]), "x.minimum is 5, expected only the fields"),
    (add, ("x", "boolean", ["minimum"]), "FIELD=VALUE is 'minimum', expected such as minimum=0"),
    (widen, ("price", ["maximum=3"]), "than a number from 0 to 100000, of the same type"),
    (widen, ("price", []), "FIELD=VALUE is 'nothing'"),
    (retire, ("prize",), "'prize', expected one of the attributes in use: symbol, price, volume"),
    (add, ("a b", "boolean", []), "schema is 'a b', expected a name of at most 64 letters"),
]


def test_what_is_impossible_is_named_and_changes_nothing(tmp_path: Path) -> None:
    init(tmp_path / "c", **OPTIONS)
    first = tmp_path / "c" / "peer1"
    for change, arguments, words in BAD:
        with pytest.raises(errors.ConfigurationError) as caught:
            change(first, *arguments)
        assert words in str(caught.value)
        assert schema_changes.show(first)[0] == "version 1 of the schema"
        assert not (first / "schema.json").exists()
