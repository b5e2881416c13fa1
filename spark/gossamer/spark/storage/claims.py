"""One process at a time for a folder of a store that can neither lock nor rename.

Whoever wants a folder writes a claim of a name of its own below ``_claims``, and looks who else has
one. A store that shows what was written to whoever lists later (S3 does) shows at least one of two
processes the claim of the other, which gives way. A claim is renewed while its process works;
one that has not been for a minute, by the store's clock, or whose process on this machine is
gone, is nobody's.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import psutil

from gossamer.sim.results.storage.place import PlaceError
from gossamer.sim.results.storage.remote import RemotePlace

CLAIMS: Final = "_claims"
_RENEWED_S: Final = 10.0
_STALE_S: Final = 60.0


@contextmanager
def claimed(folder: RemotePlace) -> Iterator[None]:
    """Keep every other process from working on a folder.

    Raises:
        PlaceError: another process is at work on it, or the store refuses.
    """
    own = folder / CLAIMS / f"{uuid.uuid4().hex}.json"
    content = json.dumps(_holder()).encode()
    try:
        own.write_bytes(content)
    except PlaceError as error:
        raise PlaceError(folder, error.reason) from error
    over = threading.Event()
    renewing = threading.Thread(target=_renew, args=(own, content, over), daemon=True)
    try:
        _require_others_gone(folder, own)
        renewing.start()
        yield
    finally:
        over.set()
        if renewing.ident is not None:
            renewing.join()
        with suppress(PlaceError):
            own.delete()


def _require_others_gone(folder: RemotePlace, own: RemotePlace) -> None:
    """Remove claims that are nobody's any more.

    Raises:
        PlaceError: one is somebody's.
    """
    claims = folder / CLAIMS
    others = [claims / one.name for one in claims.files() if one.name != own.name]
    now = own.modified() if others else 0.0
    for other in others:
        try:
            told, written = json.loads(other.read_bytes()), other.modified()
        except (FileNotFoundError, AttributeError):  # it has ended in the meantime
            continue
        if now - written < _STALE_S and not _is_gone(told):
            who = f"process {told['process']} on {told['host']}"
            reason = f"is being worked on by {who}, expected to be alone with it"
            raise PlaceError(folder, f"{reason} (its last sign is {now - written:.0f} s old)")
        other.delete()


def _renew(own: RemotePlace, content: bytes, over: threading.Event) -> None:
    while not over.wait(_RENEWED_S):
        with suppress(PlaceError):  # the next time may do; the work itself will meet the fault
            own.write_bytes(content)


def _holder() -> dict[str, Any]:
    """What tells a process from all others."""
    this = psutil.Process()
    told = {"host": socket.gethostname(), "machine": _machine()}
    return told | {"process": this.pid, "begun": this.create_time()}


def _is_gone(told: dict[str, Any]) -> bool:
    """Whether a process was one of this machine, and is no more."""
    if told.get("machine") != _machine():
        return False
    try:
        return bool(psutil.Process(int(told["process"])).create_time() != told["begun"])
    except psutil.NoSuchProcess:
        return True


def _machine() -> str:
    """What tells this machine since it was started, and the container, from others."""
    try:
        started = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{started} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return socket.gethostname()
