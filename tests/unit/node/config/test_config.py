"""Configuration of a node: layers, presets, and a sentence for every fault."""

from __future__ import annotations

import inspect
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest
from rich.console import Console

from gossamer.node.config import file, node
from gossamer.node.config.checks import is_loopback, parse_address
from gossamer.node.config.delivery import Delivery
from gossamer.node.errors import ConfigurationError
from gossamer.protocol.content.schema import FloatAttribute, Schema
from gossamer.protocol.kernel.errors import ConfigError
from gossamer.protocol.peer.settings.presets import kindred, resilient

FULL = """
preset = "wan"
identity = {folder = "here", name = "first"}
listen.addresses = ["10.0.0.1:7000", "[fe80::1%eth0]:7001"]
discovery.peers = ["seed.example.org"]
protocol = {round_s = 3, ring_links = 4}
limits.frame_bytes = 1000
delivery.successors = 3

[attributes.price]
type = "float"
minimum = 0
maximum = 1000
"""


@attrs.frozen
class SomeLimits:
    frame_bytes: int = 65536
    depth: int = 8

    def __attrs_post_init__(self) -> None:
        if self.frame_bytes < 1:
            raise ConfigError("transport.frame_bytes", self.frame_bytes, "at least 1")


def write(folder: Path, text: str) -> Path:
    path = folder / "node.toml"
    path.write_text(text)
    return path


def set_by(flags: dict[str, str] | None = None, **variables: str) -> file.LoadedConfig:
    """The configuration that variables, without their common beginning, and flags make."""
    environment = {f"GOSSAMER_NODE_{name}": text for name, text in variables.items()}
    return file.load_config(environment=environment, flags=flags or {})


def test_without_any_layer_everything_is_a_default() -> None:
    loaded = set_by()
    assert loaded.config == node.NodeConfig()
    assert {origin.source for _, _, origin in loaded.rows()} == {"default"}
    assert file.load_config(environment={"UNRELATED": "x"}).config == node.NodeConfig()


def test_a_file_sets_what_it_names_and_a_preset_the_rest(tmp_path: Path) -> None:
    path = write(tmp_path, FULL)
    loaded = file.load_config(None, {"GOSSAMER_NODE_CONFIG": str(path)})
    assert loaded.file == path
    config = file.load_config(path, {}).config
    assert loaded.config == config
    assert (config.identity.name, config.identity.folder) == ("first", tmp_path / "here")
    assert config.listen.endpoints == (("10.0.0.1", 7000), ("fe80::1%eth0", 7001))
    assert config.discovery.static_peers == (("seed.example.org", 7710),)
    assert config.protocol.round_s == 3
    assert config.delivery.retention_s == node.PRESETS["wan"]["delivery.retention_s"]
    assert config.schema == Schema([FloatAttribute("price", 0, 1000)])
    assert config.limits_as(SomeLimits) == SomeLimits(frame_bytes=1000)
    # The folder of the file is the peer's own unless it names one.
    for flags, folder in (({}, tmp_path), ({"identity.folder": "elsewhere"}, Path("elsewhere"))):
        config = file.load_config(write(tmp_path, ""), {}, flags).config
        assert config.identity.folder == folder


def test_1e3_is_a_whole_number_and_other_floats_are_none(tmp_path: Path) -> None:
    text = "[node]\n[local]\nclients = 1e3\n[protocol]\nring_links = 6.0\n"
    config = file.load_config(write(tmp_path, text), {}, {"local.window": "1e4"}).config
    found = (config.local.clients, config.local.window, config.protocol.settings["ring_links"])
    assert repr(found) == "(1000, 10000, 6)"
    for value in ("1.5", "1e300", "inf", "true"):
        with pytest.raises(ConfigurationError, match="expected a whole number from 1 to 4096"):
            file.load_config(write(tmp_path, f"[local]\nclients = {value}\n"), {})


def test_an_unknown_setting_is_answered_by_the_one_that_is_like_it() -> None:
    for name, words in (
        ("node.rol", "expected one of node.role, node.compiled; did you mean 'node.role'?"),
        ("protocol.ring_linkz", "did you mean 'protocol.ring_links'?"),
        ("something", "expected one that 'gossamer node check' lists"),
    ):
        with pytest.raises(ConfigurationError) as told:
            file.load_config(None, {}, {name: "1"})
        assert str(told.value).endswith(f"{name} is an unknown setting, {words}")


def test_a_file_may_have_a_byte_order_mark_and_is_no_utf_16(tmp_path: Path) -> None:
    path, text = tmp_path / "node.toml", '[identity]\r\nname = "Zürich"\r\n'
    path.write_bytes(text.encode("utf-8-sig"))
    assert file.load_config(path, {}).config.identity.name == "Zürich"
    for encoding, said in (("utf-16", "not UTF-8 but UTF-16"), ("latin-1", "not UTF-8 at byte 22")):
        path.write_bytes(text.encode(encoding))
        with pytest.raises(ConfigurationError, match=f"is {said}, expected text in UTF-8"):
            file.load_config(path, {})


def test_protocol_settings_come_from_preset_node_file_and_delivery_in_this_order() -> None:
    given: dict[str, Any] = {"ring_links": 5, "attributes": 2, "replicas": 1, "event_memory": 99}
    given |= {"replay_rounds": 60, "retention_rounds": 14_400, "held_events": 16_384}
    given |= {"pending_publications": 128, "shift_threshold": 12.5, "retry_rounds": 2}
    given |= node.Protocol.NODE_SETTINGS
    for preset, expected in (
        ("kindred", kindred(1024, friend_links=32, suspect_rounds=2, load_shifting=False, **given)),
        ("resilient", resilient(1024, friend_links=24, **given)),
    ):
        protocol = node.Protocol(preset=preset, settings={"ring_links": 5}, peers_expected=1024)
        assert protocol.settings_for(2, Delivery(successors=1, event_memory=99)) == expected


@pytest.mark.parametrize(("round_s", "rounds"), [(0.2, 5), (0.3, 4), (0.5, 2), (2.0, 2)])
def test_peers_are_patient_for_a_second_with_any_rounds(round_s: float, rounds: int) -> None:
    """An answer takes as long on a busy machine; what is given has precedence."""
    given = {"suspect_rounds": 1, "retry_rounds": 3}
    for protocol, expected in (
        (node.Protocol(round_s=round_s), (rounds, rounds)),
        (node.Protocol(round_s=round_s, preset="resilient"), (0, rounds)),
        (node.Protocol(round_s=round_s, settings=given), (1, 3)),
    ):
        made = protocol.settings_for(2, Delivery())
        assert (made.suspect_rounds, made.retry_rounds) == expected


@pytest.mark.parametrize(("round_s", "most"), [(0.2, 40), (0.5, 16), (2.0, 4)])
def test_peers_rest_for_so_short_that_a_silent_host_is_found_out(round_s: float, most: int) -> None:
    awake = node.Protocol(round_s=round_s).settings_for(2, Delivery())
    assert awake.rest_rounds == 1
    resting = node.Protocol(round_s=round_s, settings={"rest_rounds": most})
    assert resting.settings_for(2, Delivery()).rest_rounds == most
    with pytest.raises(ConfigError, match=rf"protocol\.rest_rounds .* at most {most} with rounds"):
        node.NodeConfig(protocol=node.Protocol(round_s=round_s, settings={"rest_rounds": most + 1}))


@pytest.mark.parametrize("preset", node.PRESETS)
def test_a_preset_is_exactly_its_visible_differences(preset: str) -> None:
    base = {name: value for name, value, _ in set_by().rows()} | {"preset": preset}
    loaded = set_by({"preset": preset})
    changed = {name: value for name, value, _ in loaded.rows() if value != base[name]}
    # What the protocol derives from other fields is no difference of its own.
    follows = {"shift_threshold", "suspect_rounds", "retry_rounds"}
    derived = {f"protocol.{name}" for name in follows} & changed.keys()
    assert bool(derived) == ("protocol.round_s" in changed)
    assert {name: changed[name] for name in changed.keys() - derived} == dict(node.PRESETS[preset])
    # The table names each of them, and its origin.
    printed = io.StringIO()
    Console(width=200, file=printed).print(file.config_table(loaded))
    lines = printed.getvalue().splitlines()
    for name in node.PRESETS[preset]:
        (line,) = [line for line in lines if f" {name} " in line]
        assert f"preset {preset}" in line


def test_the_table_lists_every_setting_with_its_place(tmp_path: Path) -> None:
    path = write(tmp_path, FULL)
    environment = {"GOSSAMER_NODE_LOGGING_LEVEL": "debug"}
    loaded = file.load_config(path, environment, {"page.enabled": "false"})
    rows = {name: (value, str(origin)) for name, value, origin in loaded.rows(SomeLimits)}
    assert set(file.DEFAULTS) <= set(rows)
    expected = {
        "logging.level": ("debug", "environment GOSSAMER_NODE_LOGGING_LEVEL"),
        "page.enabled": (False, "flag the command line"),
        "identity.name": ("first", f"file {path}"),
        "limits.frame_bytes": (1000, f"file {path}"),
        "limits.depth": (8, "default"),
        "protocol.ring_links": (4, f"file {path}"),
    }
    assert rows.items() >= expected.items()


def test_each_setting_has_a_variable_that_is_read_as_the_setting_needs_it() -> None:
    assert sorted(file.VARIABLES.values()) == sorted([*file.DEFAULTS, "attributes"])
    assert not any(variable.startswith("GOSSAMER_NODE_LIMITS_") for variable in file.VARIABLES)
    config = set_by(
        LISTEN_ADDRESSES="10.0.0.1, 10.0.0.2:9",
        DISCOVERY_PEERS='["a.example", "b.example"]',
        IDENTITY_NAME="7",
        DISCOVERY_MULTICAST="false",
        PROTOCOL_SAMPLER="newscast",
        LIMITS_FRAME_BYTES="1024",
        ATTRIBUTES='{p = {type = "integer", minimum = 1, maximum = 2}}',
    ).config
    assert config.listen.addresses == ("10.0.0.1", "10.0.0.2:9")
    assert config.discovery.peers == ("a.example", "b.example")
    assert (config.identity.name, config.discovery.multicast) == ("7", False)
    assert config.protocol.settings == {"sampler": "newscast"}
    assert config.limits == {"frame_bytes": 1024}
    assert config.schema is not None
    assert config.schema.names == ("p",)


FAULTS = {
    "[listn]\n": ("listn", "'listen'"),
    "[listen]\nadresses = []": ("listen.adresses", "'listen.addresses'"),
    "listen = 3": ("listen", "a table, [listen]"),
    "[listen]\naddresses = ['1:2:3:']": ("listen.addresses", "an address such as"),
    "[listen]\naddresses = ['300.1.1.1']": ("listen.addresses", "an address such as"),
    "[listen]\naddresses = []": ("listen.addresses", "at least one address"),
    "[listen]\nplain_text = true": ("listen.plain_text", "loopback"),
    "[discovery]\npeers = ['h:0']": ("discovery.peers", "an address such as"),
    "[discovery]\nfound_limit = true": ("discovery.found_limit", "a whole number"),
    "[protocol]\nround_s = nan": ("protocol.round_s", "a number of seconds"),
    "[protocol]\nring_links = 99": ("protocol.ring_links", "from 0 to 16"),
    "[protocol]\nring_links = 0": ("protocol.ring_links", "from 1 to 16"),
    "[protocol]\nring_link = 9": ("protocol.ring_link", "'protocol.ring_links'"),
    "[protocol]\nreplicas = 1": ("protocol.replicas", "delivery.successors in its place"),
    "[protocol]\npreset = 'papr'": ("protocol.preset", "one of paper"),
    "preset = 'wam'": ("preset", "'wan'"),
    "preset = ['wan']": ("preset", "one of lan, wan, local"),
    "[page]\nhosts = ['a:1']": ("page.hosts", "without a port"),
    "[logging]\nlevel = 'loud'": ("logging.level", "one of debug"),
    "[attributes]\nx = 3": ("attributes.x", "a table"),
    "[attributes.x]\ntype = 'flot'": ("attributes.x.type", "one of integer"),
    "attributes = 3": ("attributes", "a table for each attribute"),
    '[identity]\nname = "a\\u001bb"': ("identity.name", "printable"),
    "a = ": ("the text", "valid TOML"),
    "a = " + "[" * 5000: ("the text", "nested less deeply"),
    "#" * (2 << 20): ("the configuration file", "at most 1048576 bytes"),
}


@pytest.mark.parametrize("text", FAULTS, ids=lambda text: text[:24])
def test_a_fault_is_one_sentence_that_names_file_and_field(text: str, tmp_path: Path) -> None:
    path = write(tmp_path, text)
    field, expected = FAULTS[text]
    with pytest.raises(ConfigurationError) as caught:
        file.load_config(path, {})
    said = str(caught.value)
    assert caught.value.field == field
    assert expected in caught.value.expected
    assert said.startswith(f"{path}: {field} is ")
    assert "\n" not in said
    assert len(said) < 600 + len(str(path))


def test_faults_of_names_and_files_and_of_other_layers_say_where_they_are(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        file.load_config(write(tmp_path, '"li\\nsten\\u001b" = 3'), {})
    assert str(caught.value).isprintable()
    misspelt, too_small = set_by(LIMITS_FRAME_BITES="3"), set_by({"limits.frame_bytes": "0"})
    faults: list[tuple[str, Callable[[], object]]] = [
        ("missing, expected a TOML file", lambda: file.load_config(tmp_path / "none.toml", {})),
        ("unreadable", lambda: file.load_config(tmp_path, {})),
        (r"^environment: GOSSAMER_NODE_LISTEN_ADDRES is", lambda: set_by(LISTEN_ADDRES="x")),
        (r"^GOSSAMER_NODE_PAGE_ENABLED: page\.enabled is", lambda: set_by(PAGE_ENABLED="maybe")),
        (r"^the command line: delivery\.suc", lambda: set_by({"delivery.succesors": "3"})),
        # Limits are checked by the class that has them.
        (r"BITES: limits\.frame_bites .* 'frame_bytes'", lambda: misspelt.limits_as(SomeLimits)),
        (r"command line: limits\.frame_bytes is 0", lambda: list(too_small.rows(SomeLimits))),
        ("name=value", lambda: file.parse_setting("novalue")),
        ("name=value", lambda: file.parse_setting("=3")),
    ]
    for words, load in faults:
        with pytest.raises(ConfigurationError, match=words):
            load()
    # A setting is split at the first of its equals signs.
    assert file.parse_setting("identity.name = a=b ") == ("identity.name", "a=b")


def test_addresses_are_read_in_all_their_forms() -> None:
    for text, expected in (
        ("h", ("h", 5)),
        ("h.example.:80", ("h.example.", 80)),
        ("::1", ("::1", 5)),
        ("[::1]", ("::1", 5)),
        ("[fe80::1%eth0]:80", ("fe80::1%eth0", 80)),
    ):
        assert parse_address(text, 5) == expected
    for text in (
        *("", ":", ":1", "h:", "h:x", "h:65536", "h:-1", "h:٣", "-h", "a b", "h" * 64, "1.2.3"),
        *("[::1", "[::1]x", "[]:1", "[h%e]", "1.1.1.1%e"),
    ):
        with pytest.raises(ValueError):
            parse_address(text, 5)


def test_plain_text_is_for_loopback_which_has_addresses_and_one_name() -> None:
    hosts = {"127.9.9.9": True, "::1": True, "localhost": True, "::": False, "lo": False}
    assert {host: is_loopback(host) for host in hosts} == hosts
    local = ("127.0.0.1:1", "[::1]:1", "localhost")
    assert node.Listen(addresses=local, plain_text=True).plain_text
    with pytest.raises(ConfigError):
        node.Listen(addresses=("127.0.0.1:1", "10.0.0.1:1"), plain_text=True)


def test_every_default_gives_its_reason() -> None:
    for section in node.SECTIONS:
        documented = inspect.cleandoc(section.__doc__ or "")
        for field in attrs.fields(section):
            assert f"\n    {field.name}: " in documented, (section, field.name)
    assert len(node.PROTOCOL_SETTINGS) > 20
