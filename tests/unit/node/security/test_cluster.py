"""The folder of a membership: what is in it, who can read it, and when it is refused."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from gossamer.node.errors import ClusterFolderError, KeyFileError
from gossamer.node.security.cluster import (
    ClusterFolder,
    client_context,
    load_signer,
    make_cluster,
    open_membership,
)
from gossamer.node.security.identity import make_identity, save_identity
from gossamer.protocol.kernel.errors import ConfigError
from support.clusters import made_cluster

NOW = 1_800_000_000.0


def test_a_new_cluster_has_an_authority_and_a_first_peer(tmp_path: Path) -> None:
    member = make_cluster(tmp_path / "new" / "desk", "desk", "first", NOW)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in member.folder.path.iterdir()}
    assert set(modes) == {"ca.key", "ca.pem", "peer.key", "peer.pem", "revoked.json"}
    assert (modes["ca.key"], modes["peer.key"]) == (0o600, 0o600)
    assert stat.S_IMODE(member.folder.path.stat().st_mode) == 0o700
    assert open_membership(member.folder.path) == member
    assert member.certificate.key == member.identity.key
    assert load_signer(member.folder, member.authority).public_key == member.authority.public_key
    assert client_context(member).minimum_version.name == "TLSv1_3"
    other = make_cluster(tmp_path / "other", "desk", "first", NOW)
    assert other.authority.cluster != member.authority.cluster, "though the name is the same"


@pytest.mark.parametrize("present", ["ca.key", "ca.pem", "peer.key"])
def test_a_folder_in_use_is_refused_and_left_alone(tmp_path: Path, present: str) -> None:
    (tmp_path / present).write_bytes(b"precious")
    with pytest.raises(ClusterFolderError, match=f"{present} exists"):
        make_cluster(tmp_path, "desk", "first", NOW)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {present: b"precious"}


def test_no_cluster_is_made_with_a_bad_name_or_where_none_can_be(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        make_cluster(tmp_path / "desk", "desk", "", NOW)
    assert not (tmp_path / "desk").exists()
    with pytest.raises(ClusterFolderError, match="gossamer node init"):
        open_membership(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(ClusterFolderError, match="cannot be made"):
        make_cluster(tmp_path / "file" / "desk", "desk", "first", NOW)


def test_keys_of_others_do_not_fit(tmp_path: Path) -> None:
    member = make_cluster(tmp_path, "desk", "first", NOW)
    for path in (member.folder.peer_key, member.folder.authority_key):
        path.unlink()
        save_identity(make_identity(), path)
    with pytest.raises(ClusterFolderError, match=r"another key than peer\.key"):
        open_membership(tmp_path)
    with pytest.raises(ClusterFolderError, match=r"does not fit ca\.pem"):
        load_signer(member.folder, member.authority)


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("ca.pem", b"", "holds no certificate"),
        ("ca.pem", b"x" * 10_000, "too large"),
        ("peer.pem", b"nonsense", "holds no certificate"),
        ("revoked.json", b"{}", "malformed"),
        ("ca.pem", None, "cannot be read"),
    ],
)
def test_broken_files_are_named(
    tmp_path: Path, name: str, content: bytes | None, complaint: str
) -> None:
    make_cluster(tmp_path, "desk", "first", NOW)
    (tmp_path / name).unlink()
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ClusterFolderError, match=f"{name} .*{complaint}"):
        open_membership(tmp_path)


def test_a_key_that_is_open_or_not_there_is_not_used(tmp_path: Path) -> None:
    with made_cluster(tmp_path / "a") as cluster:
        other = cluster.admit("other")
    with pytest.raises(ClusterFolderError, match=r"holds no ca\.key"):
        load_signer(ClusterFolder(other.folder.path), other.authority)
    other.folder.peer_key.chmod(0o644)
    with pytest.raises(KeyFileError, match="chmod 600"):
        open_membership(other.folder.path)
