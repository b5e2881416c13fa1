"""What each part needs: libraries of its extra only, and a system that it runs on."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Iterable
from typing import Any, Final

import pytest

from gossamer.command.extras import (
    NEEDS,
    UnsupportedSystemError,
    check_requirements,
    install_hint,
)
from support.checkout import ROOT

EXTRAS: Final[dict[str, Any]] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))[
    "project"
]["optional-dependencies"]
LIBRARIES: Final = {name: set(NEEDS[f"gossamer.{name}"][1]) for name in ("node", "sim")}
# All that an extra brings which the other does not, and what neither brings.
NOT_OF_NODE: Final = {*LIBRARIES["sim"] - LIBRARIES["node"], "pandas", "pyspark"}
NOT_OF_SIM: Final = {*LIBRARIES["node"] - LIBRARIES["sim"], "pandas", "pyspark"}

# What a process without some libraries sees: they are not found, whoever looks for them.
REFUSING: Final = """
import sys

class Refusing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {refused!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
        return None

sys.path[:0] = {path!r}
sys.meta_path.insert(0, Refusing())
"""

OFFERS_ALL: Final = """
from importlib import import_module
for name in {doors!r}:
    door = import_module(name)
    for one in getattr(door, "__all__", ()):
        getattr(door, one)
"""
COMMAND: Final = "from gossamer.command.main import main\nsys.exit(main(sys.argv[1:]))\n"


def run(refused: Iterable[str], code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own in which some libraries are not installed."""
    begin = REFUSING.format(refused=sorted(refused), path=sys.path)
    return subprocess.run(
        [sys.executable, "-c", begin + code, *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


def distribution(requirement: str) -> str:
    return requirement.partition(">")[0].replace("-", "_")


@pytest.mark.parametrize("extra", sorted(LIBRARIES))
def test_the_libraries_of_an_extra_are_those_of_the_project(extra: str) -> None:
    assert {distribution(one) for one in EXTRAS[extra]} == LIBRARIES[extra]
    assert all(set(needed) <= LIBRARIES[extra] for one, needed in NEEDS.values() if one == extra)


@pytest.mark.parametrize(
    ("doors", "refused"),
    [
        (["gossamer.node", "gossamer.client", "gossamer.brokers"], NOT_OF_NODE),
        (["gossamer.node.cli.node", "gossamer.node.commands.running.running"], NOT_OF_NODE),
        (["gossamer.sim", "gossamer.sim.commands.cli", "gossamer.sim.custom"], NOT_OF_SIM),
        (["gossamer.sim.results.results", "gossamer.sim.built_in_studies"], NOT_OF_SIM),
        (["gossamer.protocol", "gossamer.brokers"], NOT_OF_SIM | NOT_OF_NODE),
        (["gossamer.command.main", "gossamer.protocol"], {"cbor2", *NOT_OF_SIM, *NOT_OF_NODE}),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_a_part_needs_no_library_of_another(doors: list[str], refused: set[str]) -> None:
    done = run(refused, OFFERS_ALL.format(doors=doors))
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "part", "missing"),
    [
        (["sim", "run", "x.toml"], "gossamer.sim", {"scipy"}),
        (["sim", "--help"], "gossamer.sim", {"matplotlib", "scipy"}),
        (["node", "run", "x"], "gossamer.node", {"trio"}),
        (["pub", "--help"], "gossamer.node", {"cryptography", "zeroconf"}),
        (["node", "replay", "x.csv"], "gossamer.sim", {"scipy"}),
    ],
)
def test_a_command_without_its_libraries_says_what_to_install(
    arguments: list[str], part: str, missing: set[str]
) -> None:
    done = run(missing, COMMAND, *arguments)
    (line,) = done.stderr.splitlines()
    extra, known = NEEDS[part]
    listed = ", ".join(one for one in known if one in missing)
    are = "is" if len(missing) == 1 else "are"
    expected = f"{part} needs {listed}, which {are} not installed: {install_hint(extra)}"
    assert (done.returncode, done.stdout, line) == (2, "", f"gossamer: {expected}")


def test_a_node_that_is_to_publish_a_table_says_what_reads_it() -> None:
    reads = (
        "from pathlib import Path\n"
        "from gossamer.command.extras import MissingLibraryError\n"
        "from gossamer.node.commands.clients.table_events import event_lines\n"
        "try:\n    list(event_lines([Path('events.parquet')], []))\n"
        "except MissingLibraryError as error:\n    print(error)\n"
    )
    done = run(NOT_OF_NODE, reads)
    expected = "'gossamer pub' of tables needs pyarrow, which is not installed"
    assert done.stdout == f"{expected}: {install_hint('sim')}\n", done.stderr


@pytest.mark.parametrize("part", sorted(NEEDS))
def test_a_part_without_its_libraries_raises_at_its_import(part: str) -> None:
    catches = (
        "from gossamer.command.extras import MissingLibraryError\n"
        f"try:\n    import {part}\n"
        "except MissingLibraryError as error:\n"
        "    print(error.part, error.extra, *error.libraries, isinstance(error, ImportError))\n"
    )
    extra, libraries = NEEDS[part]
    done = run(libraries, catches)
    assert done.stdout.split() == [part, extra, *libraries, "True"], done.stderr


@pytest.mark.parametrize("part", sorted(NEEDS))
def test_a_system_on_which_nothing_runs_is_named_at_once(
    part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_requirements(part)
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(UnsupportedSystemError) as caught:
        check_requirements(part)
    assert str(caught.value) == f"{part} does not run on Windows: use Linux, macOS or WSL 2"
    monkeypatch.setattr(sys, "platform", "darwin")
    check_requirements(part)


@pytest.mark.parametrize("command", ["sim", "node", "sub", "spark"])
def test_commands_say_so_too(command: str) -> None:
    """As on a system that has no SIGHUP, which the command's frame would listen to."""
    # Modules of the standard library go by the system as well, but are there by then.
    frame = "import shutil, signal\ndel signal.SIGHUP\nimport gossamer.command.main\n"
    windows = f"{frame}sys.platform = 'win32'\n"
    refuses_posix = run({"fcntl", "pwd", "resource"}, windows + COMMAND, command, "--help")
    (line,) = refuses_posix.stderr.splitlines()
    assert line.endswith("does not run on Windows: use Linux, macOS or WSL 2")
    assert refuses_posix.returncode == 2
    assert run((), windows + COMMAND, "--version").returncode == 0
