"""Finding a peer's folder, its configuration and its local socket."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from gossamer.client.address import LocalAddress, find_address
from gossamer.node.config.file import (
    FILE_VARIABLE,
    PREFIX,
    LoadedConfig,
    load_config,
    parse_setting,
)
from gossamer.node.errors import ConfigurationError
from gossamer.node.local.address import is_locked, local_address

CONFIG_NAME: Final = "node.toml"
FOLDER_VARIABLE: Final = PREFIX + "IDENTITY_FOLDER"


def load(folder: Path | None, changes: Iterable[str] | None = None) -> LoadedConfig:
    """The configuration of the peer in ``folder``.

    Args:
        folder: holds node.toml, where there is one; None takes the environment's, or the
            current folder.
        changes: of ``--set``, each ``name=value``.

    Raises:
        ConfigurationError: it cannot be read, or is impossible.
    """
    flags: dict[str, object] = dict(map(parse_setting, changes or ()))
    if folder is None:
        if os.environ.get(FILE_VARIABLE):
            return load_config(None, flags=flags)
        folder = Path(os.environ.get(FOLDER_VARIABLE, "."))
    path = folder / CONFIG_NAME
    if path.exists():
        return load_config(path, flags=flags)
    return load_config(None, flags={"identity.folder": folder, **flags})


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
