"""The configuration of the peer in a folder: its node.toml, and the layers over that."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from gossamer.node.config.file import (
    FILE_VARIABLE,
    PREFIX,
    LoadedConfig,
    load_config,
    parse_setting,
)

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
