"""What each part of gossamer needs beside the core: libraries of its extra, and its system.

The parts say so when they are imported, in one sentence, before anything else fails.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Final

# What installs an extra: messages that miss a library name the command that brings it.


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


# By part, its extra and the modules that it brings; pyproject.toml names the distributions.
_NODE: Final = (
    "anyio",
    "cbor2",
    "cryptography",
    "h11",
    "prometheus_client",
    "psutil",
    "trio",
    "zeroconf",
)
_SIM: Final = ("cbor2", "matplotlib", "networkx", "psutil", "pyarrow", "scipy")
NEEDS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = MappingProxyType(
    {
        "gossamer.client": ("node", ("anyio", "cbor2")),
        "gossamer.node": ("node", _NODE),
        "gossamer.sim": ("sim", _SIM),
        "gossamer.spark": ("spark", _SIM),  # Spark itself is looked for where a session is made
    }
)
# Where there are no Unix sockets, file locks and signals as all of these parts use them.
UNSUPPORTED: Final[Mapping[str, str]] = MappingProxyType(
    {"win32": "Windows", "emscripten": "a browser", "wasi": "WASI"}
)


class MissingLibraryError(ImportError):
    """Libraries of an extra are not installed; nothing was begun.

    Attributes:
        part: the package that needs them.
        extra: of pyproject.toml.
        libraries: the modules that are missing.
    """

    def __init__(self, part: str, extra: str, libraries: tuple[str, ...]) -> None:
        self.part = part
        self.extra = extra
        self.libraries = libraries
        are = "which is" if len(libraries) == 1 else "which are"
        listed = ", ".join(libraries)
        super().__init__(
            f"{part} needs {listed}, {are} not installed: {install_hint(extra)}", name=part
        )


class UnsupportedSystemError(ImportError):
    """The part does not run on this operating system; nothing was begun.

    Attributes:
        part: the package.
        system: the name of the system.
    """

    def __init__(self, part: str, system: str) -> None:
        self.part = part
        self.system = system
        super().__init__(f"{part} does not run on {system}: use Linux, macOS or WSL 2", name=part)


def check_requirements(part: str) -> None:
    """Raise unless the part of that name can run here; cheap, imports nothing.

    Raises:
        UnsupportedSystemError: not on this operating system.
        MissingLibraryError: a library of its extra is not installed.
    """
    system = UNSUPPORTED.get(sys.platform)
    if system is not None:
        raise UnsupportedSystemError(part, system)
    extra, libraries = NEEDS[part]
    missing = tuple(library for library in libraries if not _is_there(library))
    if missing:
        raise MissingLibraryError(part, extra, missing)


def _is_there(library: str) -> bool:
    try:
        return find_spec(library) is not None
    except (ImportError, ValueError):  # refused by a finder, or a module that was made by hand
        return library in sys.modules
