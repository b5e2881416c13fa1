"""What the commands print, and that what they leave behind works."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gossamer.node.errors import ClusterFolderError, TokenTextError
from gossamer.node.security.cluster import open_membership
from gossamer.node.security.identity import key_text
from gossamer.node.security.joining.commands import admit_here, init_cluster, invite, join, revoke
from gossamer.node.security.joining.tokens import read_token
from gossamer.node.store import Store
from support.clusters import made_cluster

HERE = (("127.0.0.1", 7401),)


def test_init_makes_a_cluster_and_names_what_to_keep(tmp_path: Path) -> None:
    text = init_cluster(tmp_path / "desk", "desk", "first")
    member = open_membership(tmp_path / "desk")
    assert member.authority.cluster in text
    assert f"'first' ({key_text(member.identity.key)})" in text
    assert f"{tmp_path}/desk/ca.key offline" in text
    with Store(member.folder.state) as store:
        store.bind(member.identity.key, 0.0)
        assert [one.name for one in store.admissions.certificates()] == ["first"]


def test_invite_prints_a_token_and_nothing_else(tmp_path: Path) -> None:
    init_cluster(tmp_path, "desk", "first")
    text = invite(tmp_path, HERE)
    assert re.fullmatch(r"gossamer1-[a-z2-7]+", text)
    assert read_token(text).addresses == HERE


def test_a_member_without_the_authority_can_neither_invite_nor_revoke(tmp_path: Path) -> None:
    with made_cluster(tmp_path / "first") as cluster:
        folder = cluster.admit("kitchen").folder.path
    with pytest.raises(ClusterFolderError, match="where cluster 'desk' was made"):
        invite(folder, HERE)
    with pytest.raises(ClusterFolderError, match="where cluster 'desk' was made"):
        revoke(folder, "first")


def test_revoke_names_who_is_revoked(tmp_path: Path) -> None:
    init_cluster(tmp_path / "first", "desk", "first")
    admit_here(tmp_path / "first", [(tmp_path / "kitchen", "kitchen")])
    kitchen = open_membership(tmp_path / "kitchen")
    text = revoke(tmp_path / "first", "kitchen")
    assert f"peer {key_text(kitchen.identity.key)} is revoked" in text
    revoked = open_membership(tmp_path / "first").revoked
    assert revoked.forbids(kitchen.identity.key, 0)


def test_a_member_that_nothing_is_known_of_any_more_is_revoked_by_its_key(tmp_path: Path) -> None:
    """As after the state file was lost, or moved away as the doctor advises."""
    init_cluster(tmp_path / "first", "desk", "first")
    admit_here(tmp_path / "first", [(tmp_path / "kitchen", "kitchen")])
    (tmp_path / "first" / "state.db").unlink()
    with pytest.raises(ClusterFolderError, match="issued nothing to 'kitchen'"):
        revoke(tmp_path / "first", "kitchen")
    kitchen = open_membership(tmp_path / "kitchen")
    key = kitchen.identity.key
    with pytest.raises(ClusterFolderError, match="if the record was lost, its key"):
        revoke(tmp_path / "first", key_text(key))
    text = revoke(tmp_path / "first", key_text(key), unrecorded=True)
    assert f"peer {key_text(key)} is revoked" in text
    assert "no certificate of it is on record here" in text
    revoked = open_membership(tmp_path / "first").revoked
    assert revoked.forbids(key, kitchen.certificate.serial)
    assert revoked.entries[0].not_after >= kitchen.certificate.not_after


def test_joining_with_a_mistyped_token_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(TokenTextError, match="copy it again"):
        join("gossamer1-aaaaaaaa", tmp_path / "new", "kitchen")
    assert not (tmp_path / "new").exists()
