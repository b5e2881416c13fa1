"""Join tokens as texts, and what the commands of a cluster print and leave behind."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from gossamer.node.errors import ClusterFolderError, TokenTextError
from gossamer.node.security.cluster import open_membership
from gossamer.node.security.identity import key_text
from gossamer.node.security.joining.commands import admit_here, init_cluster, invite, join, revoke
from gossamer.node.security.joining.tokens import PREFIX, Token, read_token, token_id
from gossamer.node.store import Store
from support.clusters import made_cluster

TOKEN = Token("ab" * 16, b"f" * 32, 12345, (("192.168.1.20", 7401), ("fe80::1", 7401)), b"s" * 16)
ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"


def test_a_token_comes_back_from_its_text_that_shells_leave_alone() -> None:
    """Space around it does not matter, and neither text nor identifier shows the secret."""
    for text in (TOKEN.to_text(), f"  {TOKEN.to_text()}\n"):
        assert read_token(text) == TOKEN
    assert set(TOKEN.to_text().removeprefix(PREFIX)) <= set(ALPHABET)
    assert "ssss" not in repr(TOKEN)
    assert token_id(TOKEN.secret) != token_id(b"t" * 16)
    assert TOKEN.secret not in token_id(TOKEN.secret)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "begins with gossamer1-"),
        ("hello", "begins with gossamer1-"),
        ("gossamer2-aaaa", "of version 2, expected 1"),
        (PREFIX, "character is wrong or missing"),
        (PREFIX + "a", "character is missing"),
        (PREFIX + "0" * 8, "does not belong"),
        (PREFIX + "a" * 5000, "too long"),
        (TOKEN.to_text().upper(), "begins with"),
        (PREFIX + TOKEN.to_text().removeprefix(PREFIX).upper(), "capital letters"),
        (TOKEN.to_text()[:-1], "character is"),
        (TOKEN.to_text() + "a", "character is"),
        (PREFIX + "ü" * 8, "does not belong"),
    ],
)
def test_what_is_no_token_is_refused_with_the_reason(text: str, complaint: str) -> None:
    with pytest.raises(TokenTextError, match=complaint):
        read_token(text)


def test_every_last_character_but_the_right_one_is_refused() -> None:
    """With some lengths the last one has bits that stand for nothing."""
    for host in ("h", "ho", "hos", "host", "hosts"):
        text = evolve(TOKEN, addresses=((host, 7401),)).to_text()
        accepted = []
        for letter in ALPHABET:
            with suppress(TokenTextError):
                accepted.append(read_token(text[:-1] + letter).to_text())
        assert accepted == [text]


@pytest.mark.parametrize(
    ("name", "impossible", "words"),
    [
        ("cluster", ["ab" * 15], "does not hold"),
        ("fingerprint", [b"f" * 31], "does not hold"),
        ("inviter", [1 << 62], "does not hold"),
        ("secret", [b"s" * 17], "does not hold"),
        ("addresses", [(), (("h", 1),) * 9, (("", 1),), (("h", 0),)], "cannot be right"),
        ("addresses", [(("h", 65_536),), (("h" * 256, 1),)], "cannot be right"),
    ],
)
def test_no_token_has_an_impossible_part(name: str, impossible: list[Any], words: str) -> None:
    for part in impossible:
        with pytest.raises(TokenTextError, match=words):
            read_token(evolve(TOKEN, **{name: part}).to_text())


# Commands

HERE = (("127.0.0.1", 7401),)


def test_init_names_what_to_keep_and_invite_prints_a_token(tmp_path: Path) -> None:
    text = init_cluster(tmp_path / "desk", "desk", "first")
    member = open_membership(tmp_path / "desk")
    assert member.authority.cluster in text
    assert f"'first' ({key_text(member.identity.key)})" in text
    assert f"{tmp_path}/desk/ca.key offline" in text
    with Store(member.folder.state) as store:
        store.bind(member.identity.key, 0.0)
        assert [one.name for one in store.admissions.certificates()] == ["first"]
    text = invite(tmp_path / "desk", HERE)
    assert re.fullmatch(r"gossamer1-[a-z2-7]+", text)
    assert read_token(text).addresses == HERE


def test_a_member_without_the_authority_can_neither_invite_nor_revoke(tmp_path: Path) -> None:
    with made_cluster(tmp_path / "first") as cluster:
        folder = cluster.admit("kitchen").folder.path
    with pytest.raises(ClusterFolderError, match="where cluster 'desk' was made"):
        invite(folder, HERE)
    with pytest.raises(ClusterFolderError, match="where cluster 'desk' was made"):
        revoke(folder, "first")


def test_revoke_names_who_is_revoked_by_its_key_where_nothing_else_is_known(tmp_path: Path) -> None:
    """As after the state file was lost, or moved away as the doctor advises."""
    first = tmp_path / "first"
    init_cluster(first, "desk", "first")
    admit_here(first, [(tmp_path / name, name) for name in ("kitchen", "garden")])
    kitchen, garden = (open_membership(tmp_path / name) for name in ("kitchen", "garden"))
    said = f"peer {key_text(garden.identity.key)} is revoked"
    assert said in revoke(first, "garden")
    assert open_membership(first).revoked.forbids(garden.identity.key, 0)
    (first / "state.db").unlink()
    key = kitchen.identity.key
    for who, words in (
        ("kitchen", "issued nothing to 'kitchen'"),
        (key_text(key), "if the record was lost, its key"),
    ):
        with pytest.raises(ClusterFolderError, match=words):
            revoke(first, who)
    text = revoke(first, key_text(key), unrecorded=True)
    assert f"peer {key_text(key)} is revoked" in text
    assert "no certificate of it is on record here" in text
    revoked = open_membership(first).revoked
    assert revoked.forbids(key, kitchen.certificate.serial)
    (entry,) = (entry for entry in revoked.entries if entry.key == key)
    assert entry.not_after >= kitchen.certificate.not_after


def test_joining_with_a_mistyped_token_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(TokenTextError, match="copy it again"):
        join("gossamer1-aaaaaaaa", tmp_path / "new", "kitchen")
    assert not (tmp_path / "new").exists()
