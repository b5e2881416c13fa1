"""What executors have of what tasks need, compared with the driver before the first task.

What looks has to run where there is no gossamer (see `looking`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from gossamer.command.paths import foreign_storage
from gossamer.sim.errors import ScenarioError
from gossamer.spark.errors import no_session
from gossamer.spark.jobs import job_errors
from gossamer.spark.shipping import looking

_CODE: Final = "code of gossamer"
_DISTRIBUTIONS: Final = ("gossamer", "numpy", "numba", "pyarrow", "scipy")
_COLUMNS: Final = "host string, name string, found string"
_ADVICE: Final = "'gossamer spark package' makes what executors need"


def versions_here() -> dict[str, str]:
    """What this process has, by name; what is missing has no entry."""
    found = {}
    for name in _DISTRIBUTIONS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found | {_CODE: code_digest()}


def code_digest() -> str:
    """A digest of the parts of the package that tasks run."""
    import gossamer.protocol
    import gossamer.sim
    import gossamer.spark

    digest = hashlib.sha256()
    for package in (gossamer.protocol, gossamer.sim, gossamer.spark):
        for name, content in _sources(package):
            digest.update(name.encode() + b"\\0" + content + b"\\0")
    return digest.hexdigest()[:12]


def _sources(package: Any) -> list[tuple[str, bytes]]:
    """The modules of a package, also of one in a ZIP archive."""
    loader = package.__spec__.loader
    archive = getattr(loader, "archive", None)
    if archive is None:
        folder = Path(package.__file__).parent
        return [
            (path.relative_to(folder).as_posix(), path.read_bytes())
            for path in sorted(folder.rglob("*.py"))
        ]
    import zipfile

    prefix = package.__name__.replace(".", "/") + "/"
    with zipfile.ZipFile(archive) as opened:
        names = sorted(name for name in opened.namelist() if name.startswith(prefix))
        return [
            (name.removeprefix(prefix), opened.read(name)) for name in names if name.endswith(".py")
        ]


def require_same_versions(session: Any, tasks: int) -> None:
    """See whether executors have what the driver has.

    Args:
        session: of Spark.
        tasks: how many look; as many as run at a time, so that all executors do.

    Raises:
        SimulationError: one lacks the package, or has another version of it or what it needs.
        JobError: no executor can be asked.
    """
    expected = versions_here()
    with job_errors("asking executors for their versions"), _sent_as_it_is(looking):
        asked = session.range(0, tasks, 1, tasks).mapInArrow(looking.look, _COLUMNS)
        rows = asked.distinct().collect()
    found: dict[str, dict[str, str]] = {}
    for row in rows:
        found.setdefault(row["host"], {})[row["name"]] = row["found"]
    reasons = [differs(host, expected, found[host]) for host in sorted(found)]
    reason = next(filter(None, reasons), None)
    if reason is not None:
        raise no_session(str(session.conf.get("spark.master", "")), reason)


@contextmanager
def _sent_as_it_is(module: ModuleType) -> Iterator[None]:
    """Let functions of a module go to executors with their code, not by their names."""
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        cloudpickle.unregister_pickle_by_value(module)


def differs(host: str, expected: Mapping[str, str], found: Mapping[str, str]) -> str | None:
    """What an executor has that is not what the driver has, in words; None if nothing."""
    if "" in found:
        return f"where executors have no gossamer (on {host}: {found['']}); {_ADVICE}"
    for name, wanted in expected.items():
        there = found.get(name)
        if there != wanted:
            have = f"have {name} {there}" if there else f"have no {name}"
            return f"where executors {have} (on {host}), expected {wanted} as here; {_ADVICE}"
    return None


# Files for executors: ``--py-files`` are put on the import path, ``--archives`` unpacked.


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
