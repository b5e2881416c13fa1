"""Where compiled rules are kept between runs.

The compiler's disk cache notices when the file that a function stands in has changed, not when one
that it calls has. The cache folder is therefore named by a hash of all sources that compiled code
comes from, and is never stale.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from pathlib import Path

import gossamer.protocol

_KEPT_FOLDERS = 3


def cache_root() -> Path:
    """The folder for all caches: $GOSSAMER_CACHE, or the user's cache folder."""
    chosen = os.environ.get("GOSSAMER_CACHE")
    if chosen:
        return Path(chosen)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home())) / "gossamer" / "cache"
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "gossamer"


def source_fingerprint() -> str:
    """A hash of the sources that compiled code comes from: those that have to do with rules."""
    digest = hashlib.sha256()
    roots = [*map(Path, gossamer.protocol.__path__), Path(__file__).parent]
    for root in roots:
        for path in sorted(root.rglob("*.py")):
            source = path.read_bytes()
            if b"rule" in source or b"Struct" in source:
                digest.update(path.relative_to(root).as_posix().encode() + source)
    return digest.hexdigest()[:16]


def keep_compiled_code() -> None:
    """Point the compiler's cache at the folder for these sources, and drop long unused ones.

    Does nothing where NUMBA_CACHE_DIR is set. A folder that cannot be written is no error: the
    compiler then compiles anew.
    """
    if os.environ.get("NUMBA_CACHE_DIR"):
        return
    from gossamer.protocol.rules import teach_compiler

    root = cache_root() / "compiled"
    folder = root / source_fingerprint()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        folder.touch()
        folders = sorted(root.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
        for old in folders[_KEPT_FOLDERS:]:
            shutil.rmtree(old, ignore_errors=True)
    except OSError:
        return
    teach_compiler().config.CACHE_DIR = str(folder)
