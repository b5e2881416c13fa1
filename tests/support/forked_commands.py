"""Commands that start at once: forked from a process that has imported all that a node needs.

Most of a second of every command is imports, and tests start commands by the thousand. Each process
that runs tests has one that waits here, imported and idle, and forks it for each command. What is
forked is made the child of the process that asks, with the streams, folder, environment and signals
of a command that was started the long way, and ends as any Python does.

Only where the kernel can give a child to its parent's parent (Linux); elsewhere commands are
started the long way. So are those of tests that are about starting.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import importlib
import io
import json
import os
import pkgutil
import platform
import signal
import socket
import subprocess
import sys
import threading
from functools import cache
from pathlib import Path
from typing import Any, Final

import typer.main

# Numbers of the system call `clone`, whose flags come first on both.
_CLONE: Final = {"x86_64": 56, "aarch64": 220}
_CLONE_PARENT: Final = 0x8000
_LONGEST: Final = 1 << 20
_TESTS: Final = Path(__file__).resolve().parents[1]

IS_POSSIBLE: Final = sys.platform == "linux" and platform.machine() in _CLONE


class ForkedCommand(subprocess.Popen[str]):
    """`gossamer` with these arguments, otherwise as any process that was started.

    Takes the arguments of a command, and of the options of `subprocess.Popen` those for streams,
    ``cwd``, ``env``, ``text`` and ``start_new_session``.
    """

    def _execute_child(self, args: Any, *more: Any) -> None:
        """In the place of what starts a program; the order of arguments is that of `Popen`."""
        (_, _, _, _, cwd, env, _, _, _, *streams) = more[:15]
        (_, _, _, _, _, _, start_new_session, *_) = more[15:]
        own = (0, 1, 2)
        given = [streams[place] for place in (0, 3, 5)]
        wanted = {
            "arguments": list(args),
            "folder": os.fspath(cwd or Path.cwd()),
            "environment": dict(os.environ if env is None else env),
            "is_apart": bool(start_new_session),
        }
        passed = [own[place] if one == -1 else one for place, one in enumerate(given)]
        self.pid = _the_forker().fork(wanted, passed)
        self._child_created = True
        self._close_pipe_fds(*streams)  # type: ignore[attr-defined]


class _Forker:
    """The process that is forked, and the socket by which it is asked to."""

    def __init__(self) -> None:
        self._ours, theirs = socket.socketpair()
        self._one_at_a_time = threading.Lock()
        path = os.pathsep.join([str(_TESTS), os.environ.get("PYTHONPATH", "")])
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "support.forked_commands", str(theirs.fileno())],
                env={**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"},
                cwd="/",
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
        atexit.register(self.close)

    def fork(self, wanted: dict[str, Any], streams: list[int]) -> int:
        message = json.dumps(wanted).encode()
        assert len(message) < _LONGEST
        with self._one_at_a_time:
            socket.send_fds(self._ours, [len(message).to_bytes(4, "big")], streams)
            self._ours.sendall(message)
            answer = self._ours.recv(4)
        assert len(answer) == 4, "the process that commands are forked from has ended"
        return int.from_bytes(answer, "big")

    def close(self) -> None:
        self._ours.close()
        self._process.wait()


@cache
def _the_forker() -> _Forker:
    return _Forker()


def _import_all() -> None:
    package = importlib.import_module("gossamer.node")
    for module in pkgutil.walk_packages(package.__path__, "gossamer.node."):
        importlib.import_module(module.name)
    command: Any = importlib.import_module("gossamer.command.main")
    if "node" in command.find_commands():
        # Which commands and options there are takes half of a short command to find out each time.
        command.find_commands = cache(command.find_commands)
        typer.main.get_command = cache(typer.main.get_command)
    # What reads the arguments imports most of itself with the first command that has some.
    for name in ("node", "pub", "sub"):
        with contextlib.redirect_stderr(io.StringIO()):
            assert command.main([name, "check", "--set", "nonsense=1"]) == 2


def _fork_to_parent() -> int:
    """As `os.fork`, but the child is a child of this process' parent."""
    python = ctypes.pythonapi
    call = ctypes.PyDLL(None).syscall
    call.restype = ctypes.c_long
    nothing = ctypes.c_long(0)
    python.PyOS_BeforeFork()
    flags = ctypes.c_long(_CLONE_PARENT | signal.SIGCHLD)
    found = int(
        call(ctypes.c_long(_CLONE[platform.machine()]), flags, nothing, nothing, nothing, nothing)
    )
    if found == 0:
        python.PyOS_AfterFork_Child()
    else:
        python.PyOS_AfterFork_Parent()
    assert found >= 0, "the system does not fork"
    return found


def _become(wanted: dict[str, Any], streams: list[int]) -> None:
    if wanted["is_apart"]:
        os.setsid()
    os.chdir(wanted["folder"])
    os.environ.clear()
    os.environ.update(wanted["environment"])
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.closerange(3, 1 + max(map(int, os.listdir("/proc/self/fd"))))
    sys.stdin = os.fdopen(0, encoding="utf-8")
    sys.stdout = os.fdopen(1, "w", encoding="utf-8")
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace")
    sys.stderr.reconfigure(line_buffering=True)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    paths = wanted["environment"].get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:] = [wanted["folder"], *filter(None, paths), *_PATHS]
    sys.argv[1:] = wanted["arguments"]


def _serve(asked: socket.socket) -> bool:
    """Fork until nobody asks any more; whether this is a command now."""
    while True:
        head, streams, _, _ = socket.recv_fds(asked, 4, 3)
        if len(head) < 4:
            return False
        missing = int.from_bytes(head, "big")
        message = b""
        while len(message) < missing:
            message += asked.recv(missing - len(message))
        child = _fork_to_parent()
        if child == 0:
            _become(json.loads(message), streams)
            return True
        for stream in streams:
            os.close(stream)
        asked.sendall(child.to_bytes(4, "big"))


if __name__ == "__main__":
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    _PATHS: Final = [path for path in sys.path if path not in ("", "/", *given)]
    _import_all()
    assert threading.active_count() == 1
    gc.freeze()
    if _serve(socket.socket(fileno=int(sys.argv[1]))):
        from gossamer.command.main import main

        # As of `python -m gossamer.command.main`, which processes that this one starts see as well.
        command = sys.modules["gossamer.command.main"]
        sys.modules["__main__"].__spec__ = command.__spec__
        sys.argv[0] = command.__file__ or ""
        sys.exit(main())
