"""Paths of the command line: this machine's, or refused in one sentence before anything is made."""

from __future__ import annotations

import os
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
import typer

from gossamer.command.main import main
from gossamer.command.paths import StorageError, local_path
from gossamer.sim.errors import ResultsError
from gossamer.sim.results.results import check_destination
from support.installed_command import ENTRY_POINTS, install

URLS = ("s3a://bucket/w", "hdfs://host:8020/w", "hdfs:/w", "abfss://c@a.net/w", "gs://b/w")
# Modules that hold commands, `gossamer.node.cli.starting` apart, which hands on to one of them.
MODULES = {
    line.split("=")[1].strip().partition(":")[0]
    for line in ENTRY_POINTS.splitlines()
    if ":" in line
} - {"gossamer.node.cli.starting", "gossamer.spark.sweep.running"}
COMMANDS = (
    "sim run URL",
    "sim run a.toml --out URL",
    "sim run a.toml --trace URL",
    "sim replay URL",
    "sim check URL",
    "sim figures vinifera --out URL",
    "sim bench --out URL",
    "sim compare URL",
    "node init URL",
    "node run URL",
    "node replay URL",
    "batch URL",
    "sub price>0 --folder URL",
)
# Which know other storage, though not all.
SPARK_COMMANDS = (
    "spark workload vinifera --out URL",
    "spark workload churn --from URL --out w",
    "spark sweep URL --out s",
    "spark sweep s.toml --out URL",
    "spark sweep s.toml --resume --out URL",
    "spark crunch URL --out c",
    "spark crunch here URL --out c",
    "spark crunch here --out URL",
)


@pytest.mark.parametrize(
    ("command", "url"), [*product(COMMANDS, URLS), *product(SPARK_COMMANDS, ["ftp://host/w"])]
)
def test_storage_elsewhere_is_refused_and_nothing_made(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
    url: str,
) -> None:
    if command.startswith("spark"):
        pytest.importorskip("pyspark", reason="needs Spark: pip install '.[spark]'")
    install(tmp_path / "installed", monkeypatch)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    assert main(command.replace("URL", url).split()) == 2
    told = capsys.readouterr()
    scheme = url.partition(":")[0]
    assert told.err == (
        f"gossamer: {url} is on storage called {scheme}, expected a folder of this machine or "
        "mounted on it (a folder whose name looks like that can be given by its absolute path)\n"
    )
    assert told.out == ""
    assert list((tmp_path / "work").iterdir()) == []


def paths_of(annotation: Any) -> bool:
    return annotation is Path or any(paths_of(part) for part in get_args(annotation))


def test_every_path_of_every_command_is_read_the_same_way() -> None:
    found = [
        (command.callback.__name__, name, settings.parser)
        for module in map(import_module, sorted(MODULES))
        for app in vars(module).values()
        if isinstance(app, typer.Typer)
        for command in app.registered_commands
        if command.callback is not None
        for name, hint in get_type_hints(command.callback, include_extras=True).items()
        for settings in getattr(hint, "__metadata__", ())
        if paths_of(hint.__origin__)
    ]
    assert {"run", "figures", "init", "batch"} <= {command for command, _, _ in found}
    assert [one for one in found if one[2] is not local_path] == []


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("file:///a/b%20c", "/a/b c"),
        ("file:/a", "/a"),
        ("file://localhost/a", "/a"),
        ("FILE:///a", "/a"),
        ("a/b", "a/b"),
        ("a:b/c", "a:b/c"),
        ("./s3a:/w", "s3a:/w"),
        ("/s3a:/w", "/s3a:/w"),
        ("c:/w", "c:/w"),
    ],
)
def test_paths_of_this_machine_are_read(text: str, path: str) -> None:
    assert os.fspath(local_path(text)) == path


def test_files_of_other_machines_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for text in ("file://host/a", "file:////a", "file://"):
        with pytest.raises(StorageError, match="is not a file of this machine, expected a path"):
            local_path(text)
    monkeypatch.chdir(tmp_path)
    for url in (*URLS, "file:///w"):
        with pytest.raises(ResultsError, match="expected a"):
            check_destination(Path(url))
    assert list(tmp_path.iterdir()) == []
    check_destination((tmp_path / "s3a:" / "w").absolute())
