"""What installs an extra: messages that miss a library name the command that brings it."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Final

# The folder that holds the package `gossamer`; in a checkout that is shared/.
_PACKAGES: Final = Path(__file__).resolve().parents[2]


def install_hint(extra: str, packages: Path = _PACKAGES) -> str:
    """The command that installs an extra of gossamer, to be copied into a shell.

    A checkout installs itself, as its README does: by ``.``, or by its path from another folder.

    Args:
        extra: name of an optional set of dependencies of pyproject.toml.
        packages: the folder that holds this package.
    """
    checkout = packages.parent
    if packages.name != "shared" or not (checkout / "pyproject.toml").is_file():
        return f"pip install 'gossamer[{extra}]'"
    here = "." if _is_current(checkout) else str(checkout)
    return f"pip install {shlex.quote(f'{here}[{extra}]')}"


def _is_current(folder: Path) -> bool:
    try:
        return Path.cwd().resolve() == folder
    except OSError:  # the working directory is gone
        return False
