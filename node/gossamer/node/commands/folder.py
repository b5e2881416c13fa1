"""Where the local socket of a peer's folder is, by its configuration."""

from __future__ import annotations

import os
from pathlib import Path

from gossamer.client.link import LocalAddress, find_address
from gossamer.node.config.file import FOLDER_VARIABLE, load
from gossamer.node.errors import ConfigurationError
from gossamer.node.local.address import is_locked, local_address


def address_of(folder: Path | None) -> LocalAddress:
    """Where the local socket of the peer in ``folder`` is; see `load`.

    A node that runs there is found although its configuration was made impossible meanwhile: it
    goes on with the one that it began with.

    Raises:
        ConfigurationError: its configuration is impossible, and no node runs.
        LocalSocketError: no place is short enough for a Unix socket.
    """
    try:
        config = load(folder).config
    except ConfigurationError:
        here = Path(os.environ.get(FOLDER_VARIABLE, ".")) if folder is None else folder
        if not is_locked(here):
            raise
        return find_address(here)
    return local_address(config.identity.folder, config.local)
