"""`gossamer node restore`: a peer's folder from a backup, as a whole or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
import time
from datetime import datetime
from pathlib import Path

from gossamer.node.broker.engine.journal import QUEUE_ID
from gossamer.node.commands.backup.archive import Manifest, read_archive
from gossamer.node.commands.running.only_one import runs_here
from gossamer.node.config.folder import load
from gossamer.node.errors import CommandError
from gossamer.node.local.history import FILE_NAME as HISTORY
from gossamer.node.local.history import LOG_ID
from gossamer.node.security.certificates import date_text
from gossamer.node.security.cluster import ClusterFolder, open_membership
from gossamer.node.security.identity import key_text
from gossamer.node.store.store import go_on_from


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
