"""What several subcommands have in common: settings of Typer, and arguments that name a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final

import typer

from gossamer.command.paths import local_path

SETTINGS: Final[dict[str, Any]] = {
    "add_completion": False,
    "pretty_exceptions_enable": False,
}

Folder = Annotated[
    Path | None,
    typer.Argument(
        metavar="[FOLDER]",
        help="The peer's folder; the current one if none.",
        parser=local_path,
    ),
]
FolderOption = Annotated[
    Path | None,
    typer.Option(
        "--folder",
        "-f",
        metavar="FOLDER",
        help="The peer's folder; the current one if none.",
        parser=local_path,
    ),
]
