"""Where the local socket is, and that only this user can open it.

A Unix socket has mode 600 and lies in the peer's folder, or where its path would be too long for
a socket, in XDG_RUNTIME_DIR. A loopback TCP socket is open to everybody on the machine, so its
clients show a token; a file of mode 600 holds the port and the token.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import trio
from attrs import frozen

from gossamer.client.link import PATH_BYTES, SOCKET_NAME, LocalAddress, unix_paths
from gossamer.node.config.checks import parse_address
from gossamer.node.config.node import Local
from gossamer.node.errors import ClusterFolderError, CommandError, ListenFailed, LocalSocketError
from gossamer.node.security.identity import PRIVATE, write_file

LOCK_NAME: Final = "node.lock"
TOKEN_BYTES: Final = 24
# Longer than a command holds the lock that looks whether a node has it.
LOOK_S: Final = 0.5
# Between two looks whether a node that stops still has it.
LOOK_AGAIN_S: Final = 0.01
BACKLOG: Final = 16


@frozen
class Door:
    """An open local socket.

    Attributes:
        listener: to accept clients at.
        address: where it is; the port is the real one.
        token: that clients have to show, None for a Unix socket.
    """

    listener: trio.SocketListener
    address: LocalAddress
    token: str | None = None


def local_address(
    folder: Path, local: Local, environment: Mapping[str, str] = os.environ
) -> LocalAddress:
    """Where the socket of the peer in ``folder`` is.

    Raises:
        LocalSocketError: no place is short enough for a Unix socket.
    """
    if local.address:
        return LocalAddress(folder, None, *parse_address(local.address, 0))
    paths = unix_paths(folder, environment)
    if paths:
        return LocalAddress(folder, paths[0])
    path = folder.absolute() / SOCKET_NAME
    raise LocalSocketError(
        path,
        f"has {len(os.fsencode(path))} bytes, expected at most {PATH_BYTES} for a socket; "
        "set XDG_RUNTIME_DIR, or local.address = '127.0.0.1:0'",
    )


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep any other node out of ``folder``; the lock ends with the process, however that ends.

    Raises:
        CommandError: one runs there.
        ClusterFolderError: the folder cannot be written to.
    """
    path = folder / LOCK_NAME
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE)
    except OSError as error:
        raise ClusterFolderError(path, f"cannot be opened: {error.strerror}") from error
    try:
        if not _take_lock(descriptor):
            raise CommandError(f"a node runs in {folder} already, expected one at a time")
        yield
    finally:
        os.close(descriptor)


def is_locked(folder: Path) -> bool:
    """Whether a node runs in ``folder``; keeps one that starts meanwhile waiting for an instant."""
    return is_held(folder / LOCK_NAME)


def is_held(path: Path) -> bool:
    """Whether a process has the lock of a file; False where there is none."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


async def until_unlocked(folder: Path, patience_s: float) -> None:
    """Wait until no node runs in ``folder``: the one that stops has closed all its files there.

    Raises:
        CommandError: one ran there at every look for so many seconds.
    """
    with trio.move_on_after(patience_s) as patience:
        while is_locked(folder):
            await trio.sleep(LOOK_AGAIN_S)
    if patience.cancelled_caught:
        raise CommandError(
            f"the node in {folder} was told to stop, and after {patience_s:g} s one runs there "
            "still, or again; its log says more"
        )


def _take_lock(descriptor: int) -> bool:
    """Take the lock of a node; a command that looks whether there is one may have it just now."""
    deadline = time.monotonic() + LOOK_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(LOOK_S / 10)
        else:
            return True


def open_door(address: LocalAddress) -> Door:
    """Open the socket; call it inside `locked`, since a socket that is left over is replaced.

    Raises:
        ListenFailed: the system refuses.
    """
    try:
        if address.path is not None:
            return Door(_listen_unix(address.path), address)
        return _open_tcp(address)
    except OSError as error:
        raise ListenFailed(str(address), error.strerror or str(error)) from None


def close_door(door: Door) -> None:
    """Close the socket and remove its files."""
    door.listener.socket.close()
    (door.address.path or door.address.token_file).unlink(missing_ok=True)


def _listen_unix(path: Path) -> trio.SocketListener:
    path.unlink(missing_ok=True)
    opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    # The mode has to be right from the first instant: whoever connects once stays connected.
    mask = os.umask(0o777 & ~PRIVATE)
    try:
        opened.bind(os.fspath(path))
        opened.listen(BACKLOG)
    except BaseException:
        opened.close()
        raise
    finally:
        os.umask(mask)
    return trio.SocketListener(trio.socket.from_stdlib_socket(opened))


def _open_tcp(address: LocalAddress) -> Door:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    opened = socket.socket(family, socket.SOCK_STREAM)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind((address.host, address.port))
        opened.listen(BACKLOG)
        host, port = opened.getsockname()[:2]
        token = secrets.token_hex(TOKEN_BYTES)
        write_file(address.token_file, f"{host}\n{port}\n{token}\n".encode(), PRIVATE)
    except BaseException:
        opened.close()
        raise
    listener = trio.SocketListener(trio.socket.from_stdlib_socket(opened))
    return Door(listener, LocalAddress(address.folder, None, host, port), token)
