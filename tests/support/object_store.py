"""A server of S3 in a process of its own, that can be told to fail: moto's, behind a front."""

from __future__ import annotations

import importlib.util
import json
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import attrs
import pytest

from support.checkout import ROOT

BUCKET: Final = "lake"
KEY, SECRET = "the-key", "the-secret"
_CONTROL: Final = "/_faults"
_FAILURES: Final = {
    "error": ("500 Internal Server Error", b"InternalError", b"Told to fail."),
    "refused": ("403 Forbidden", b"InvalidAccessKeyId", b"The access key is not known."),
}


@attrs.frozen
class ObjectStore:
    endpoint: str

    def options(self, **changes: str) -> dict[str, str]:
        """Options of Spark by which it is reached; changes name options of ``fs.s3a``."""
        given = {
            "access.key": KEY,
            "secret.key": SECRET,
            "endpoint": self.endpoint,
            "endpoint.region": "us-east-1",
        } | {name.replace("_", "."): value for name, value in changes.items()}
        return {f"spark.hadoop.fs.s3a.{name}": value for name, value in given.items()}

    def conf(self, **changes: str) -> list[str]:
        """The same for the command line."""
        return [f"--conf={key}={value}" for key, value in self.options(**changes).items()]

    def fail(
        self, *, method: str, contains: str, how: str, times: int, seconds: float = 0.0
    ) -> None:
        """Let requests of a method whose path contains a text fail, after those told of before.

        By an "error" (status 500), as "refused" (403, which is not tried again), "cut" (the
        connection is closed), or "slow", which takes so many seconds.
        """
        rule = {"method": method, "contains": contains, "how": how}
        self._control({"rules": [rule | {"times": times, "seconds": seconds}]})

    def heal(self) -> int:
        """Let nothing fail any more; how many requests have failed since this was called last."""
        return int(self._control({"rules": []})["failed"])

    def _control(self, told: dict[str, Any]) -> dict[str, Any]:
        content = json.dumps(told).encode()
        request = urllib.request.Request(self.endpoint + _CONTROL, content, method="PUT")
        with urllib.request.urlopen(request, timeout=30) as answer:
            return dict(json.load(answer))


@contextmanager
def object_store() -> Iterator[ObjectStore]:
    if importlib.util.find_spec("moto") is None:
        pytest.skip("needs a server of S3: pip install 'moto[server]'")
    server = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "support.object_store"],
        cwd=ROOT / "tests",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert server.stdout is not None
        endpoint = server.stdout.readline().strip()
        assert endpoint.startswith("http://"), endpoint
        yield ObjectStore(endpoint)
    finally:
        server.communicate()  # its input ends, and it with that


class _Front:
    """Fails requests as it is told, and hands all others on."""

    def __init__(self, server: Callable[..., Iterable[bytes]]) -> None:
        self._server = server
        self._rules: list[dict[str, Any]] = []
        self._failed = 0
        self._guard = threading.Lock()

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        if path == _CONTROL:
            return self._told(environ, start)
        is_known = f"Credential={KEY}/" in environ.get("HTTP_AUTHORIZATION", "")
        rule = self._rule(environ["REQUEST_METHOD"], path) if is_known else {"how": "refused"}
        how = rule and rule["how"]
        if how == "cut":
            environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
            raise ConnectionAbortedError
        if how in _FAILURES:
            status, code, message = _FAILURES[how]
            start(status, [("Content-Type", "application/xml")])
            return [b"<Error><Code>%s</Code><Message>%s</Message></Error>" % (code, message)]
        if rule:  # slow
            time.sleep(float(rule["seconds"]))
        return self._server(environ, start)

    def _told(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        told = json.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
        with self._guard:
            failed = self._failed
            if told["rules"]:
                self._rules += told["rules"]
            else:
                self._rules, self._failed = [], 0
        start("200 OK", [("Content-Type", "application/json")])
        return [json.dumps({"failed": failed}).encode()]

    def _rule(self, method: str, path: str) -> dict[str, Any] | None:
        with self._guard:
            for rule in self._rules:
                fits = rule["method"] == method and rule["contains"] in path
                if fits and rule["times"] > 0:
                    rule["times"] -= 1
                    self._failed += 1
                    return rule
        return None


def _serve() -> None:
    """Serve until standard input ends; the address is the first line on standard output."""
    import logging

    import boto3
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
    front = _Front(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, front, threaded=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    endpoint = f"http://127.0.0.1:{server.port}"
    keys = {"aws_access_key_id": KEY, "aws_secret_access_key": SECRET}
    client = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1", **keys)
    client.create_bucket(Bucket=BUCKET)
    print(endpoint, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    _serve()
