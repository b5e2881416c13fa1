"""`gossamer node backup`: a peer's folder as one file, whether its node runs or not."""

from __future__ import annotations

import os
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO, Final

from gossamer.command.main import installed_version
from gossamer.node.broker.journal import QUEUE_ID
from gossamer.node.commands.backup.archive import (
    Item,
    Manifest,
    item_of,
    read_archive,
    write_archive,
)
from gossamer.node.commands.running.running import runs_here
from gossamer.node.config.file import CONFIG_NAME, load
from gossamer.node.config.node import NodeConfig
from gossamer.node.errors import CommandError
from gossamer.node.local.history import FILE_NAME as HISTORY
from gossamer.node.local.history import LOG_ID
from gossamer.node.security.certificates import date_text
from gossamer.node.security.cluster import ClusterFolder, open_membership
from gossamer.node.security.identity import PRIVATE, PUBLIC, key_text
from gossamer.node.store.store import copy_database, go_on_from

SCHEMA: Final = "schema.toml"


def back_up(folder: Path | None, target: Path) -> list[str]:
    """Write the folder of a peer to the file ``target``; return what there is to say of it.

    State files are copied as they are at one instant each. The one of deliveries to clients comes
    first and the peer's own last, so that what the peer has noted is never ahead of its clients.

    Raises:
        CommandError: there is a file already, or it cannot be written; nothing was.
        NodeError: the folder holds no usable node.
    """
    config = load(folder).config
    place = config.identity.folder
    if os.path.lexists(target):
        raise CommandError(target, "is there already, expected a new file")
    if not place.is_dir():
        raise CommandError(place, "is no folder, expected that of a node")
    with _aside(target) as (file, scratch):
        items = tuple(_copied(place, scratch))
        if not items:
            raise CommandError(place, "holds nothing of a node, expected its configuration or keys")
        manifest = _manifest(config, items)
        write_archive(file, manifest, scratch)
    size = target.stat().st_size
    told = [f"backed up {len(items)} files of {place} to {target} ({size:,} bytes)"]
    if any(one.name.endswith(".key") for one in items):
        told.append("it holds private keys: whoever has it can be this peer; keep it as such")
    left_out = _left_out(place, {one.name for one in items})
    return [*told, *([f"left out: {', '.join(left_out)}"] if left_out else [])]


def _files(place: Path) -> list[Path]:
    """The files of a node in ``place``, those that only a running one has left out."""
    folder = ClusterFolder(place)
    plain = (
        *(place / CONFIG_NAME, place / SCHEMA),
        *(folder.peer_key, folder.peer_certificate, folder.previous_certificate, folder.event_key),
        *(folder.authority_certificate, folder.authority_key),
        *(folder.revoked, folder.proof, folder.cluster_info, folder.schema),
    )
    return [*plain, place / HISTORY, folder.state]


# Beside a node while it runs, or after it was killed: what they hold is in the copies.
_PASSING: Final = ("node.lock", "client.sock", "client.token", "-wal", "-shm", "-journal")


def _left_out(place: Path, taken: set[str]) -> list[str]:
    return sorted(
        one.name
        for one in place.iterdir()
        if one.name not in taken and not one.name.endswith(_PASSING)
    )


def _copied(place: Path, scratch: Path) -> Iterator[Item]:
    """Copy the files of a node to ``scratch``, and say what they are."""
    for source in _files(place):
        if not source.exists():
            continue
        copy = scratch / source.name
        if source.suffix == ".db":
            os.close(os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE))
            copy_database(source, copy)
            mode = PRIVATE
        else:
            mode = stat.S_IMODE(source.stat().st_mode) & PUBLIC
            copy.write_bytes(_read(source))
        yield item_of(copy, source.name, mode)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise CommandError(path, f"cannot be read: {error.strerror}") from None


def _manifest(config: NodeConfig, items: tuple[Item, ...]) -> Manifest:
    place = config.identity.folder
    key, peer, cluster = "", config.identity.name, ""
    if not config.listen.plain_text:
        member = open_membership(place)
        key, cluster = key_text(member.identity.key), member.authority.name
        peer = peer or member.certificate.name
    return Manifest(
        key=key,
        peer=peer,
        cluster=cluster,
        software=f"gossamer {installed_version()}",
        made_at=time.time(),
        folder=str(place.absolute()),
        items=items,
    )


@contextmanager
def _aside(target: Path) -> Iterator[tuple[IO[bytes], Path]]:
    """A file that becomes ``target`` once it is whole, and a folder for copies beside it."""
    aside = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    try:
        descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
    except OSError as error:
        raise CommandError(target, f"cannot be written: {error.strerror}") from None
    try:
        with (
            open(descriptor, "wb") as file,
            tempfile.TemporaryDirectory(prefix=".", dir=target.parent) as scratch,
        ):
            yield file, Path(scratch)
            file.flush()
            os.fsync(file.fileno())
        os.link(aside, target)  # which, unlike a rename, replaces nothing
    except FileExistsError:
        raise CommandError(target, "is there already, expected a new file") from None
    except OSError as error:
        raise CommandError(target, f"cannot be written: {error.strerror}") from None
    finally:
        aside.unlink(missing_ok=True)


# `gossamer node restore`: a peer's folder from a backup, as a whole or not at all.


def restore(backup: Path, folder: Path) -> list[str]:
    """Make ``folder`` what it was when ``backup`` was made; return what there is to say of it.

    Raises:
        CommandError: the backup cannot be used, the folder is there, or the peer runs on this
            machine; nothing was written.
        NodeError: what the backup holds is no usable node.
    """
    _check_free(folder)
    made: list[Path] = []

    def place(manifest: Manifest) -> Path:
        holder = runs_here(manifest.key) if manifest.key else None
        if holder is not None:
            reason = f"is of a peer that runs in {holder}, expected it to be stopped"
            raise CommandError(backup, reason)
        made.append(_made_aside(folder))
        return made[0]

    try:
        manifest = read_archive(backup, place)
        expires = _check(made[0], manifest)
        _go_on(made[0])
        os.rename(made[0], folder)
    except OSError as error:
        if error.filename is not None and Path(error.filename) == backup:
            raise CommandError(backup, f"cannot be read: {error.strerror}") from None
        raise CommandError(folder, f"cannot be written: {error.strerror or error}") from None
    finally:
        for one in made:
            shutil.rmtree(one, ignore_errors=True)
    return _summary(manifest, folder, expires)


def _check_free(folder: Path) -> None:
    if not os.path.lexists(folder):
        return
    if not folder.is_dir() or any(folder.iterdir()):
        raise CommandError(folder, "is there already, expected a new or an empty folder")


def _made_aside(folder: Path) -> Path:
    aside = folder.absolute().with_name(f".{folder.absolute().name}.{secrets.token_hex(8)}")
    aside.parent.mkdir(parents=True, exist_ok=True)
    aside.mkdir(mode=0o700)
    return aside


def _check(made: Path, manifest: Manifest) -> float | None:
    """Refuse what no node could run from; return when the certificate expires."""
    load(made)
    if not manifest.key:
        return None
    member = open_membership(made)
    found = key_text(member.identity.key)
    if found != manifest.key:
        raise CommandError(made, f"has the key of peer {found}, expected {manifest.key}")
    return member.certificate.not_after


def _go_on(made: Path) -> None:
    """Let what goes back in time go on from there."""
    now = time.time()
    for path, forgotten in ((ClusterFolder(made).state, QUEUE_ID), (made / HISTORY, LOG_ID)):
        if path.exists():
            go_on_from(path, now, [forgotten])


def _summary(manifest: Manifest, folder: Path, expires: float | None) -> list[str]:
    when = f"{datetime.fromtimestamp(manifest.made_at).astimezone():%Y-%m-%d %H:%M}"
    who = f"peer {manifest.peer!r} ({manifest.key})" if manifest.key else "the node"
    told = [f"restored {who} as of {when} to {folder}"]
    if expires is not None and expires < time.time():
        told.append(
            f"its certificate expired on {date_text(expires)}: gossamer node renew {folder}"
        )
    return [
        *told,
        "a peer may run once only. It does not run on this machine as this user; whether it does "
        "on another one cannot be known here: make sure that it does not",
        "what came or was acknowledged since the backup is not in it: applications with a name may "
        "get some events twice, and miss those that only this peer held; a broker begins anew",
    ]
