"""The page of a run that goes on, served to browsers of this machine only.

The address has a random part, without which nothing is answered: other users of the machine do not
know it, and pages of other origins cannot read it. Whoever asks is told what was taken last; nobody
who asks waits for the run, and the run waits for nobody.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from gossamer.sim.errors import SimulationError
from gossamer.sim.results.page.page import (
    drawn_course,
    drawn_overlay,
    page_html,
    with_styles,
)
from gossamer.sim.study.records import Table
from gossamer.sim.study.watching import Floats, Watched

HOST: Final = "127.0.0.1"
# Wall-clock time between looks at a system: at least so much, and so many times what a look takes.
LEAST_PAUSE_S: Final = 0.5
_PATIENCE: Final = 40
# Browsers ask every second; who asked so lately is told of the end.
_LATELY_S: Final = 3.0
_REQUEST_S: Final = 10.0
_HEADERS: Final = (
    ("Cache-Control", "no-store"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Referrer-Policy", "no-referrer"),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
)

Places = Callable[[Table], Mapping[str, Floats]]


class LivePage:
    """What the page shows at present; watches a run and answers its server.

    Args:
        title, facts: of the page.
        places: where nodes of an overlay lie, see `gossamer.sim.study.contract.Study.places`.
        clock: the time in seconds.
    """

    def __init__(
        self,
        title: str,
        facts: str,
        places: Places,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._about = {"title": title, "facts": facts, "live": True}
        self._places = places
        self._clock = clock
        self._systems: dict[str, dict[str, Any]] = {}
        self._next_s: dict[str, float] = {}
        self._ended = False
        self._told_end = threading.Event()
        self._asked_s = -float("inf")
        self._lock = threading.Lock()
        self._version = 0

    def __call__(self, run: Watched) -> None:
        """Look at a system, if it is time to; called by its thread."""
        begun = self._clock()
        if begun < self._next_s.get(run.name, begun) and not run.is_finished:
            return
        overlay = run.overlay()
        overlays = (
            []
            if overlay is None
            else [drawn_overlay(overlay, self._places(overlay.nodes), run.round)]
        )
        shown = {"course": drawn_course(run.course()), "overlays": overlays}
        entry = {"name": run.name, **shown, "round": run.round, "rounds": run.rounds}
        with self._lock:
            self._systems[run.name] = entry
            self._version += 1
        now = self._clock()
        self._next_s[run.name] = now + max(LEAST_PAUSE_S, _PATIENCE * (now - begun))

    def end(self) -> None:
        """Say that the run has ended; waits a little for browsers that look to be told."""
        with self._lock:
            self._ended = True
            self._version += 1
            looked_at = self._clock() - self._asked_s < _LATELY_S
        if looked_at:
            self._told_end.wait(_LATELY_S)

    def html(self) -> str:
        """The page, about which nothing is known yet."""
        return page_html({**self._about, "ended": False, "systems": []}, connects=True)

    def state(self, have: int) -> bytes | None:
        """What the page shows, as JSON; None where a browser has this version already."""
        with self._lock:
            self._asked_s = self._clock()
            version, ended = self._version, self._ended
            systems = [self._systems[name] for name in sorted(self._systems)]
        if have == version:
            return None
        run = {**self._about, "ended": ended, "systems": with_styles(systems)}
        told = json.dumps({"version": version, "run": run}, allow_nan=False)
        if ended:
            self._told_end.set()
        return told.encode()


@contextmanager
def served(page: LivePage, port: int = 0) -> Iterator[str]:
    """Serve a page until the end of the block; gives its address.

    Args:
        page: what is served.
        port: to listen on; a free one if 0.

    Raises:
        SimulationError: the port is taken.
    """
    token = secrets.token_urlsafe(16)
    try:
        server = _Server((HOST, port), _handler(page, token))
    except OSError as error:
        reason = error.strerror or str(error)
        raise SimulationError(
            f"--live-port is {port}, expected a port that is free: {reason}"
        ) from error
    thread = threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True)
    thread.start()
    try:
        yield f"http://{HOST}:{server.server_address[1]}/{token}/"
        page.end()
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing: a browser that goes away in the middle is no concern of the run."""


def _handler(page: LivePage, token: str) -> type[BaseHTTPRequestHandler]:
    """A class of handlers of requests for this page."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = _REQUEST_S
        server_version, sys_version = "gossamer", ""

        def do_GET(self) -> None:
            """Answer the two things that can be asked for."""
            path, query = urlsplit(self.path)[2:4]
            host = (self.headers.get("Host") or "").rpartition(":")[0]
            given = path.split("/")[1] if path.startswith("/") else ""
            if host not in (HOST, "localhost") or not _same(given, token):
                self._answer(HTTPStatus.NOT_FOUND, "text/plain", b"not found\n")
            elif path == f"/{token}/":
                self._answer(HTTPStatus.OK, "text/html; charset=utf-8", page.html().encode())
            elif path == f"/{token}/state":
                self._answer_state(parse_qs(query).get("have", ["-1"])[0])
            else:
                self._answer(HTTPStatus.NOT_FOUND, "text/plain", b"not found\n")

        def _answer_state(self, have: str) -> None:
            told = page.state(int(have) if have.isdecimal() and len(have) < 16 else -1)
            if told is None:
                self._answer(HTTPStatus.NO_CONTENT, None, b"")
            else:
                self._answer(HTTPStatus.OK, "application/json", told)

        def _answer(self, status: HTTPStatus, kind: str | None, body: bytes) -> None:
            self.send_response(status)
            for name, value in _HEADERS:
                self.send_header(name, value)
            if kind is not None:
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: the terminal shows the run."""

    return Handler


def _same(given: str, token: str) -> bool:
    return secrets.compare_digest(given.encode(), token.encode())
