"""A reader who pastes the shell blocks of a page, as they stand, into terminals of a fresh folder.

What would take its terminal (a node, `sub`, `top`) gets one of its own; everything else goes to one
shell, line by line. The reader goes on once a node is ready and a subscription made, as pages say.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from queue import Empty, Queue
from typing import IO

from attrs import define, field

from support.node_processes import COMMAND, Shell

PATIENCE_S = 90.0
# What the installation section of a page has, and tests have done already.
INSTALLATION = ("make ", ". .venv/")
_END = "the line is done"


def section(text: str, heading: str) -> str:
    """The section of that heading, down to the next one of its level or a higher one."""
    found = re.search(rf"(?m)^(#+) {re.escape(heading)}$", text)
    assert found is not None, heading
    level = len(found[1])
    rest = text[found.end() :]
    end = re.search(rf"(?m)^#{{1,{level}}} ", rest)
    return rest if end is None else rest[: end.start()]


def shell_blocks(text: str) -> list[list[str]]:
    """The lines of each indented block that has a command; those that go on are one."""
    plain = re.sub(r"(?ms)^```.*?^```$", "", text)
    blocks: list[list[str]] = [[]]
    for line in plain.splitlines():
        if line.startswith("    "):
            blocks[-1].append(line[4:])
        elif line.strip() and blocks[-1]:
            blocks.append([])
    joined = [re.sub(r"\\\n\s*", "", "\n".join(block)).splitlines() for block in blocks]
    return [
        [line for line in block if line.strip() and not line.startswith(INSTALLATION)]
        for block in joined
        if any(re.match(r"(gossamer|python|make|kill|rm|pip) ", line) for line in block)
    ]


def takes_its_terminal(line: str) -> bool:
    words = shlex.split(line)
    if words[-1] == "&":
        return False
    if words[:3] == ["gossamer", "node", "run"]:
        return True
    endless = words[:2] == ["gossamer", "sub"] and "--count" not in words
    return endless or (words[:2] == ["gossamer", "top"] and "--once" not in words)


@define(eq=False)
class Terminal:
    process: subprocess.Popen[str]
    said: list[str] = field(factory=list)  # lines of both of its streams
    _lines: Queue[str | None] = field(factory=Queue)
    _reading: threading.Thread = field(init=False)

    def __attrs_post_init__(self) -> None:
        assert self.process.stdout is not None
        self._reading = threading.Thread(target=self._read, args=(self.process.stdout,))
        self._reading.start()

    def _read(self, stream: IO[str]) -> None:
        with stream:
            for line in stream:
                self._lines.put(line)
        self._lines.put(None)

    def end(self) -> None:
        numbers = [signal.SIGTERM, signal.SIGKILL]
        if self.process.stdin is not None:
            self.process.stdin.close()
            numbers = numbers[1:]  # a shell has nothing to put in order
        for number in numbers:
            if self._reading.is_alive() or self.process.poll() is None:
                with suppress(ProcessLookupError):
                    os.killpg(self.process.pid, number)
            self._reading.join(20)
        self.process.wait()

    def wait_for(self, words: str, times: int = 1) -> str:
        while True:
            try:
                line = self._lines.get(timeout=PATIENCE_S)
            except Empty:
                raise AssertionError(f"it never said {words!r}: {self.text}") from None
            assert line is not None, f"it ended without {words!r}: {self.text}"
            self.said.append(line)
            times -= words in line
            if times == 0:
                return line

    @property
    def text(self) -> str:
        return "".join(self.said)


def with_programs(shell: Shell) -> Shell:
    """The same shell, which finds `gossamer` and `python` as where the project is installed."""
    programs = shell.folder / "programs"
    programs.mkdir()
    for name, words in (("gossamer", COMMAND), ("python", [sys.executable])):
        file = programs / name
        file.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n', encoding="utf-8")
        file.chmod(0o755)
    shell.environment["PATH"] = f"{programs}{os.pathsep}{shell.environment.get('PATH', '')}"
    return shell


class Reader:
    """Pastes blocks; use as a context, which ends all that was started."""

    def __init__(self, where: Shell) -> None:
        self.folder = where.folder
        runtime = {"XDG_RUNTIME_DIR": str(self.folder)}
        self._environment = with_programs(where).environment | runtime
        self._known: dict[str, str] = {}
        self._published: list[str] = []
        # Ports are the reader's own, where the system allows: pages name fixed ones.
        self._inside = _own_network()
        hold = "ip link set lo up 2>/dev/null; set -m; echo ready; exec bash -m"
        self.shell = self._start(["bash", "-c", hold], stdin=subprocess.PIPE)
        self.shell.wait_for("ready")
        self.terminals: dict[str, Terminal] = {}

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        for one in (*self.terminals.values(), self.shell):
            one.end()

    def paste(self, blocks: Sequence[Sequence[str]]) -> None:
        for block in blocks:
            for line in block:
                self._enter(line)

    def _enter(self, line: str) -> None:
        for name, value in self._known.items():
            line = re.sub(rf"\b{name}\b", value, line)
        if takes_its_terminal(line):
            self._open_terminal(line)
            return
        words = shlex.split(line)
        if words[0] == "kill":
            self._see_what_was_published()
        said = self._in_the_shell(line)
        if words[:2] == ["gossamer", "pub"]:
            # Beside an event, which a `sub` of the same shell prints at any moment.
            self._published = [word.partition("=")[0] for word in words[2:] if "=" in word]
            bare = [re.sub(r"\{.*\}", "", one) for one in said]
            self._known["ID"] = next(one for one in bare if one and " " not in one)
        elif words[:3] == ["gossamer", "node", "invite"]:
            self._known["TOKEN"] = said[-1]
        elif words[-1] == "&" and words[:2] == ["gossamer", "sub"]:
            self.shell.wait_for("subscribed")
        elif words[-1] == "&" and words[:3] == ["gossamer", "node", "run"]:
            self.shell.wait_for('"ready"')

    def _see_what_was_published(self) -> None:
        """Nobody ends a `sub` of the shell before it has printed the last event."""
        for name in self._published[-1:]:
            if f'"{name}": ' not in self.shell.text:
                self.shell.wait_for(f'"{name}": ')

    def _open_terminal(self, line: str) -> None:
        words = shlex.split(line)
        made = self._start(["bash", "-c", f"exec {line}"])
        self.terminals[line] = made
        if words[1] == "sub":
            made.wait_for("subscribed")
        elif words[1] == "node":
            folders = [one for one in words[3:] if (self.folder / one / "node.toml").exists()]
            made.wait_for('"event": "ready"', max(1, len(folders)))

    def _in_the_shell(self, line: str) -> list[str]:
        """Run a line to its end; what was said meanwhile."""
        stream = self.shell.process.stdin
        assert stream is not None
        before = len(self.shell.said)
        stream.write(f"{line}\necho {_END} $?\n")
        stream.flush()
        code = self.shell.wait_for(_END).rsplit(maxsplit=1)[-1]
        said = [one.strip() for one in self.shell.said[before:-1]]
        assert code == "0", f"{line!r} ended with {code}: {said}"
        return said

    def _start(self, command: Sequence[str], **options: int) -> Terminal:
        inside = self._inside
        if hasattr(self, "shell") and inside:
            inside = ["nsenter", f"--net=/proc/{self.shell.process.pid}/ns/net"]
        process = subprocess.Popen(
            [*inside, *command],
            cwd=self.folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            **options,  # type: ignore[call-overload]
        )
        return Terminal(process)


def _own_network() -> list[str]:
    """What a command begins with that has a network of its own; nothing where there can be none."""
    if os.getuid() != 0 or shutil.which("unshare") is None or shutil.which("nsenter") is None:
        return []
    probe = ["unshare", "--net", "ip", "link", "set", "lo", "up"]
    done = subprocess.run(probe, capture_output=True, check=False)
    return ["unshare", "--net"] if done.returncode == 0 else []
