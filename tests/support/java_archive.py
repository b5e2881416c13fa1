"""The classes that Spark loads, kept as Java shares them: with the file it starts in half the time.

Most of the five seconds of processor time that a session of Spark takes to start are spent on
loading and verifying the same classes. Java can keep them in an archive; it is made once for each
Java and Spark, in the folder of the caches, and left out where that does not work.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, Final

from gossamer.compiled.store import cache_root
from support.checkout import ROOT

# Compiling thoroughly is not worth it for processes that live for seconds.
BRIEF: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_MAKING_S: Final = 300


@cache
def short_lived() -> str:
    """Java's options for processes that live for seconds."""
    archive = _class_archive()
    # Java that cannot use the archive says so, and goes on without.
    return BRIEF if archive is None else f"{BRIEF} -XX:SharedArchiveFile={archive} -Xlog:disable"


def _class_archive() -> Path | None:
    """The archive, made if there is none; None while another process makes it."""
    from gossamer.spark.java import find_java_home

    with tempfile.TemporaryDirectory() as scratch:
        home = find_java_home(Path(scratch))
        folder = cache_root().absolute() / "java"
        file = folder / f"spark-{_key(home)}.jsa"
        if file.exists():
            return file
        if any(letter.isspace() for letter in str(file)):
            return None  # options are parted by blanks
        folder.mkdir(parents=True, exist_ok=True)
        with file.with_suffix(".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return None
            if not file.exists():
                _make(file, home, Path(scratch))
        return file if file.exists() else None


def _key(home: Path) -> str:
    """What tells archives apart: an archive is for one Java and one Spark."""
    import pyspark

    told = subprocess.run([home / "bin" / "java", "-version"], capture_output=True, check=True)
    parts = (told.stderr, pyspark.__version__.encode(), str(pyspark.__file__).encode())
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


def _make(file: Path, home: Path, scratch: Path) -> None:
    """Run a session whose Java writes the archive when it ends."""
    tops = [str(ROOT / name) for name in ("node", "sim", "shared", "spark", "tests")]
    changes = {
        "JAVA_HOME": str(home),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join([*tops, os.environ.get("PYTHONPATH", "")]),
        "SPARK_LOCAL_HOSTNAME": "localhost",
        "TMPDIR": str(scratch),
    }
    partial = file.with_suffix(".tmp")
    partial.unlink(missing_ok=True)
    done = subprocess.run(
        [sys.executable, "-m", "support.java_archive", str(partial), str(scratch)],
        env=os.environ | changes,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=_MAKING_S,
    )
    if done.returncode == 0 and partial.exists():
        partial.replace(file)


def _same(batches: Iterable[Any]) -> Iterable[Any]:
    yield from batches


def _use(session: Any, folder: Path) -> None:
    """What most tests have Spark do."""
    rows = session.range(0, 1000, 1, 4)
    rows.mapInArrow(_same, "id long").write.parquet(str(folder / "rows"))
    read = session.read.parquet(str(folder / "rows"))
    read.groupBy((read.id % 7).alias("key")).sum("id").orderBy("key").collect()
    read.join(read.groupBy("id").count(), "id").count()
    read.toPandas()


def _run(file: Path, scratch: Path) -> None:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    options = {
        "spark.driver.extraJavaOptions": f"{BRIEF} -XX:ArchiveClassesAtExit={file} -Xlog:disable",
        "spark.driver.host": "127.0.0.1",
        "spark.local.dir": str(scratch / "local"),
        "spark.master": "local[2]",
        "spark.sql.warehouse.dir": (scratch / "warehouse").as_uri(),
        "spark.ui.enabled": "false",
    }
    builder = SparkSession.builder
    for key, value in options.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    _use(session, scratch)
    gateway: Any = SparkContext._gateway
    session.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()


if __name__ == "__main__":
    _run(Path(sys.argv[1]), Path(sys.argv[2]))
