"""What several subcommands have in common: arguments that name a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gossamer.command.paths import local_path

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
