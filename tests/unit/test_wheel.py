"""What is released: a wheel and an archive of sources that work where no checkout is."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from zipfile import ZipFile

import pytest

from support.checkout import ROOT

pytestmark = [pytest.mark.campaign, pytest.mark.xdist_group("wheel")]

PACKAGES: Final = sorted(path.parent for path in ROOT.glob("*/gossamer/*/__init__.py"))
# Scripts that are whole programs. Protocols in examples/cookbook have no annotations: their
# language gives them their types.
PROGRAMS: Final = [
    path
    for name in ("brokers", "embedding", "node", "notebook", "own_tables", "scot", "trees")
    for path in sorted((ROOT / "examples" / name).rglob("*.py"))
]
SCENARIO: Final = """
name = "small"
nodes = 60
rounds = 30
[events]
per_round = 1
[[system]]
name = "baseline"
"""


def run(command: Sequence[object], folder: Path) -> str:
    """Run a command that must succeed, away from the checkout; return what it printed."""
    done = subprocess.run(
        list(map(str, command)), cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The wheel and the archive, the first built of the second."""
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "build", "--quiet", "--no-isolation", "--outdir", folder, ROOT]
    run(build, folder)
    (wheel,), (archive,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, archive


@pytest.fixture(scope="module")
def python(released: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with the wheel, and the libraries of this one."""
    folder = tmp_path_factory.mktemp("installed") / "venv"
    run([sys.executable, "-m", "venv", "--without-pip", folder], ROOT)
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps"]
    run([*pip, released[0]], folder)
    packages = run([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], folder)
    # Directories named by a file are searched last, and files within them are not read.
    libraries = sysconfig.get_path("purelib")
    Path(packages.strip(), "libraries.pth").write_text(f"{libraries}\n", encoding="utf-8")
    return python


def test_every_package_is_typed_and_whole_in_the_wheel(released: tuple[Path, Path]) -> None:
    wheel, archive = released
    names = set(ZipFile(wheel).namelist())
    for package in PACKAGES:
        here = package.parent.parent
        files = {path.relative_to(here).as_posix() for path in package.rglob("*.py")}
        assert files <= names
        assert f"gossamer/{package.name}/py.typed" in names
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"gossamer"}
    with tarfile.open(archive) as sources:
        files = {name.partition("/")[2] for name in sources.getnames()}
    assert {"pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE", "SECURITY.md"} <= files


def test_an_installed_wheel_simulates_and_makes_a_cluster(python: Path, tmp_path: Path) -> None:
    gossamer = python.parent / "gossamer"
    where = "import gossamer.sim, gossamer.node; print(gossamer.sim.__file__)"
    assert str(python.parents[1]) in run([python, "-c", where], tmp_path)
    (tmp_path / "small.toml").write_text(SCENARIO, encoding="utf-8")
    run([gossamer, "sim", "run", "small.toml", "--out", "results", "--no-plots"], tmp_path)
    assert (tmp_path / "results" / "summary.json").is_file()
    run([gossamer, "node", "init", "cluster"], tmp_path)
    assert "cluster" in run([gossamer, "node", "check", "cluster"], tmp_path)


def test_scripts_are_typed_strictly_against_an_installed_wheel(
    python: Path, tmp_path: Path
) -> None:
    installed = [path for path in PROGRAMS if not _lacks_libraries(path)]
    assert len(installed) > 10
    (tmp_path / "mypy.ini").write_text("[mypy]\nignore_missing_imports = true\n", "utf-8")
    mypy = [sys.executable, "-m", "mypy", "--strict", "--python-executable", python]
    run([*mypy, "--config-file", "mypy.ini", *installed], tmp_path)


def _lacks_libraries(path: Path) -> bool:
    """Whether a script needs libraries of an extra that this environment is without."""
    text = path.read_text(encoding="utf-8")
    return "import uvicorn" in text or "from paho" in text
