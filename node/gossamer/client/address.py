"""Where the local socket of a node is.

A running node leaves in its folder what its clients need: a Unix socket, or, for loopback TCP, a
file of mode 600 with address and token. Where the folder's path is too long for a Unix socket, it
lies in XDG_RUNTIME_DIR, under a name that follows from the path.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import anyio
import anyio.abc
from attrs import frozen

from gossamer.client.errors import LocalSocketError, NodeNotRunningError

SOCKET_NAME: Final = "client.sock"
TOKEN_NAME: Final = "client.token"
# Of the path of a Unix socket; 103 on the BSDs, and 107 on Linux.
PATH_BYTES: Final = 103
_TOKEN_FILE_LIMIT: Final = 512


@frozen
class LocalAddress:
    """Where the local socket of a folder's peer is.

    Attributes:
        folder: the peer's folder.
        path: of the Unix socket, None for TCP.
        host, port: of the TCP socket; port 0 is any.
    """

    folder: Path
    path: Path | None
    host: str = ""
    port: int = 0

    @property
    def token_file(self) -> Path:
        """Holds the address and the token of a TCP socket."""
        return self.folder / TOKEN_NAME

    def __str__(self) -> str:
        return str(self.path) if self.path is not None else f"{self.host}:{self.port}"


def unix_paths(folder: Path, environment: Mapping[str, str] = os.environ) -> list[Path]:
    """The places for a Unix socket of the peer in ``folder`` that are short enough, best first."""
    path = folder.absolute() / SOCKET_NAME
    places = [path]
    if runtime := environment.get("XDG_RUNTIME_DIR"):
        digest = hashlib.sha256(os.fsencode(path)).hexdigest()[:16]
        places.append(Path(runtime) / f"gossamer-{digest}.sock")
    return [one for one in places if len(os.fsencode(one)) <= PATH_BYTES]


def find_address(folder: Path) -> LocalAddress:
    """Where the node in ``folder`` listens by what it has left there; no configuration is read."""
    paths = unix_paths(folder)
    found = [path for path in paths if path.exists()]
    if not found and (folder / TOKEN_NAME).exists():
        return LocalAddress(folder, None)
    return LocalAddress(folder, next(iter(found or paths), None))


async def knock(address: LocalAddress) -> tuple[anyio.abc.SocketStream, str | None]:
    """Connect to the socket; give the stream and the token to show.

    Raises:
        NodeNotRunningError: nobody listens there.
        LocalSocketError: this user may not use it.
    """
    try:
        if address.path is not None:
            return await anyio.connect_unix(address.path), None
        host, port, token = _read_token(address.token_file)
        return await anyio.connect_tcp(host, port), token
    except (FileNotFoundError, ConnectionRefusedError, ConnectionResetError) as error:
        raise NodeNotRunningError(address.folder, error.strerror or "nobody answers") from None
    except PermissionError:
        reason = "belongs to another user, expected one of this user's"
        raise LocalSocketError(address, reason) from None
    except OSError as error:
        raise NodeNotRunningError(address.folder, error.strerror or str(error)) from None


def _read_token(path: Path) -> tuple[str, int, str]:
    if not path.exists():
        raise FileNotFoundError(2, "no client.token is there", str(path))
    with path.open("rb") as file:
        if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
            reason = f"can be used by others, expected mode 600; run: chmod 600 {path}"
            raise LocalSocketError(path, reason)
        content = file.read(_TOKEN_FILE_LIMIT)
    try:
        host, port, token = content.decode("ascii").split()
        return host, int(port), token
    except ValueError:
        reason = "holds no address and token, expected the file that a running node writes"
        raise LocalSocketError(path, reason) from None
