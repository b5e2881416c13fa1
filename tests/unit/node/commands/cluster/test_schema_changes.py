"""`gossamer node schema`: versions are signed where the cluster was made, and faults are named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gossamer.node.commands.cluster import schema_changes
from gossamer.node.commands.cluster.membership import init
from gossamer.node.errors import ClusterFolderError, ConfigurationError


@pytest.fixture(scope="module")
def peers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("made") / "cluster"
    init(folder, cluster="desk", name="first", schema=None, preset=None, peers=2, port=7720)
    return folder


def test_changes_are_numbered_signed_and_shown(tmp_path: Path) -> None:
    init(tmp_path / "c", cluster="desk", name="a", schema=None, preset=None, peers=2, port=7720)
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


add, widen, retire = schema_changes.add, schema_changes.widen, schema_changes.retire
BAD: dict[str, tuple[Callable[..., str], tuple[object, ...], str]] = {
    "known": (add, ("price", "boolean", []), "price is 'there already', expected a name that was"),
    "type": (add, ("x", "text", []), "x.type is 'text', expected one of integer, "),
    "domain": (
        add,
        ("x", "float", ["minimum=5", "maximum=3"]),
        "x.maximum is 3, expected more than 5",
    ),
    "field": (add, ("x", "boolean", ["minimum=5"]), "x.minimum is 5, expected only the fields"),
    "no field": (
        add,
        ("x", "boolean", ["minimum"]),
        "FIELD=VALUE is 'minimum', expected such as minimum=0",
    ),
    "narrower": (
        widen,
        ("price", ["maximum=3"]),
        "expected more than a number from 0 to 100000, of the same type",
    ),
    "nothing": (widen, ("price", []), "FIELD=VALUE is 'nothing'"),
    "unknown": (
        retire,
        ("prize",),
        "schema is 'prize', expected one of the attributes in use: symbol, price, volume",
    ),
    "name": (add, ("a b", "boolean", []), "schema is 'a b', expected a name of at most 64 letters"),
}


@pytest.mark.parametrize(("change", "arguments", "words"), BAD.values(), ids=BAD)
def test_what_is_impossible_is_named_and_changes_nothing(
    peers: Path, change: Callable[..., str], arguments: tuple[object, ...], words: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        change(peers / "peer1", *arguments)
    assert words in str(caught.value)
    assert schema_changes.show(peers / "peer1")[0] == "version 1 of the schema"
    assert not (peers / "peer1" / "schema.json").exists()


def test_only_who_made_the_cluster_changes_its_schema(peers: Path) -> None:
    with pytest.raises(ClusterFolderError, match=r"holds no ca\.key"):
        schema_changes.retire(peers / "peer2", "price")
