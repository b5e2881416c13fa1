"""Files for executors: ``--py-files`` are put on the import path, ``--archives`` unpacked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gossamer.command.paths import foreign_storage
from gossamer.sim.errors import ScenarioError


def check_files(option: str, files: Sequence[str]) -> None:
    """Refuse files of this machine that are not there; those elsewhere are Spark's to find.

    Args:
        option: of the command line.
        files: paths or URLs; the name to unpack to may follow after a ``#``.

    Raises:
        ScenarioError: one is not there.
    """
    for file in files:
        path = file.partition("#")[0]
        if foreign_storage(path) is None and not Path(path).is_file():
            raise ScenarioError(None, option, file, "a file")


def send_files(session: Any, py_files: Sequence[str], archives: Sequence[str]) -> None:
    """Let executors have files before the first job."""
    if not py_files and not archives:
        return
    try:
        context = session.sparkContext
    except Exception:  # a Spark Connect session has no context, and says so in many ways
        session.addArtifacts(*py_files, pyfile=True)
        session.addArtifacts(*archives, archive=True)
        return
    for file in py_files:
        context.addPyFile(file)
    for archive in archives:
        context.addArchive(archive)
