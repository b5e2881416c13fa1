"""Places of object stores and of Hadoop, read and written by the file systems of PyArrow.

Python workers of Spark cannot reach the connectors of their Java, so that whatever is written, and
all that is no table of Spark's, goes this way, in the driver as in tasks. A file is made on the
machine first and sent whole: what a store shows under a name is a whole file.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import attrs

from gossamer.sim.errors import ResultsError
from gossamer.sim.results.storage.place import Listed, Place

# Credentials and endpoints of storage, in the words of Hadoop's options for Spark.
#
# One set of options serves Spark's connectors and PyArrow: ``spark.hadoop.fs.s3a.endpoint`` and its
# kin. Where none are given PyArrow looks where its libraries do: the environment (``AWS_...``,
# ``AZURE_...``, ``GOOGLE_APPLICATION_CREDENTIALS``), files of profiles, and the role of the
# machine.


_PREFIX: Final = "spark.hadoop.fs.s3a."
_KNOWN: Final = (
    "access.key",
    "secret.key",
    "session.token",
    "endpoint",
    "endpoint.region",
    "connection.ssl.enabled",
)
_ENDPOINTS: Final = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
_REGIONS: Final = ("AWS_REGION", "AWS_DEFAULT_REGION")
_CONNECTING_S: Final = 5
_ANSWERING_S: Final = 30
_ATTEMPTS: Final = 5


@attrs.frozen
class Access:
    """How storage is reached; never shown, as there may be a secret among it.

    Attributes:
        given: pairs of option and value, those of `_KNOWN` that were given.
    """

    given: tuple[tuple[str, str], ...] = attrs.field(default=(), repr=False)

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Access:
        """What the options of Spark say of S3."""
        named = ((name, options.get(_PREFIX + name)) for name in _KNOWN)
        return cls(tuple((name, value) for name, value in named if value))

    def endpoint(self) -> str | None:
        """The address of the server of S3, where it is not Amazon's."""
        found = dict(self.given).get("endpoint")
        if found is None:
            return next((os.environ[name] for name in _ENDPOINTS if os.environ.get(name)), None)
        if "://" in found:
            return found
        plain = dict(self.given).get("connection.ssl.enabled", "true").lower() == "false"
        return f"{'http' if plain else 'https'}://{found}"

    def of_s3(self, bucket: str) -> dict[str, Any]:
        """The arguments of PyArrow's file system of S3 for a bucket.

        Raises:
            OSError: nobody tells the region of the bucket.
        """
        from pyarrow.fs import AwsStandardS3RetryStrategy

        given, endpoint = dict(self.given), self.endpoint()
        chosen = {
            "access_key": given.get("access.key"),
            "secret_key": given.get("secret.key"),
            "session_token": given.get("session.token"),
            "endpoint_override": endpoint,
            "region": self._region(bucket, endpoint),
        }
        return {name: value for name, value in chosen.items() if value} | {
            "connect_timeout": _CONNECTING_S,
            "request_timeout": _ANSWERING_S,
            "retry_strategy": AwsStandardS3RetryStrategy(max_attempts=_ATTEMPTS),
            # A small file is one request then, and there whole or not at all.
            "allow_delayed_open": True,
        }

    def _region(self, bucket: str, endpoint: str | None) -> str | None:
        found = dict(self.given).get("endpoint.region")
        if found:
            return found
        if endpoint is not None or any(os.environ.get(name) for name in _REGIONS):
            return next((os.environ[name] for name in _REGIONS if os.environ.get(name)), None)
        from pyarrow.fs import resolve_s3_region

        return str(resolve_s3_region(bucket))


# By scheme, the one that PyArrow knows it by.
SCHEMES: Final[Mapping[str, str]] = {
    "s3": "s3",
    "s3a": "s3",
    "gs": "gs",
    "abfs": "abfs",
    "abfss": "abfss",
    "hdfs": "hdfs",
}
_FORMS: Final = {
    "s3": "BUCKET",
    "gs": "BUCKET",
    "abfs": "CONTAINER@ACCOUNT.dfs.core.windows.net",
    "abfss": "CONTAINER@ACCOUNT.dfs.core.windows.net",
    "hdfs": "HOST:PORT",
}
_CHUNK: Final = 1 << 22
_CODE: Final = re.compile(r"AWS Error ([A-Z_]+)")
_REFUSED: Final = frozenset(
    {
        "ACCESS_DENIED",
        "INVALID_ACCESS_KEY_ID",
        "INVALID_CLIENT_TOKEN_ID",
        "INVALID_SIGNATURE",
        "MISSING_AUTHENTICATION_TOKEN",
        "SIGNATURE_DOES_NOT_MATCH",
        "UNRECOGNIZED_CLIENT",
    }
)
_LONGEST: Final = 200


@attrs.frozen(order=True)
class RemotePlace(Place):
    """A place that a URL names.

    Attributes:
        scheme: as the user gave it.
        authority: bucket, host and port, or container and account.
        path: below that, without slashes at its ends.
        access: how the storage is reached.
    """

    scheme: str
    authority: str
    path: str
    access: Access = attrs.field(default=Access(), order=False)

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2] or self.authority

    def __truediv__(self, name: str) -> RemotePlace:
        return attrs.evolve(self, path="/".join(filter(None, (self.path, name.strip("/")))))

    def beside(self, name: str) -> RemotePlace:
        return attrs.evolve(self, path=self.path.rpartition("/")[0]) / name

    def shown(self) -> str:
        return f"{self.scheme}://{self.authority}/{self.path}".rstrip("/")

    def absolute(self) -> RemotePlace:
        """A URL is the same everywhere."""
        return self

    def exists(self) -> bool:
        from pyarrow.fs import FileType

        with self._failures():
            return bool(self._system().get_file_info(self.key()).type == FileType.File)

    def modified(self) -> float:
        """When the file was written, in seconds by the clock of the storage."""
        with self._failures():
            return float(self._system().get_file_info(self.key()).mtime.timestamp())

    def read_bytes(self) -> bytes:
        with self._failures(), self._system().open_input_stream(self.key()) as stream:
            return bytes(stream.read())

    def write_bytes(self, content: bytes) -> None:
        with self._failures():
            stream = self._system().open_output_stream(self.key())
            stream.write(content)
            stream.close()  # not by `with`, which would keep what an error has cut short

    def upload(self, file: Path) -> int:
        """Send a file of this machine; its bytes.

        Raises:
            ResultsError: it is not there whole.
        """
        with self._failures():
            stream = self._system().open_output_stream(self.key())
            with file.open("rb") as source:
                while chunk := source.read(_CHUNK):
                    stream.write(chunk)
            stream.close()
            size, sent = self._system().get_file_info(self.key()).size, file.stat().st_size
        if size != sent:
            raise ResultsError(self, f"has {size} bytes, expected the {sent} that were sent")
        return sent

    def source(self) -> Any:
        """The file, open for reading wherever one likes."""
        with self._failures():
            return self._system().open_input_file(self.key())

    def files(self) -> list[Listed]:
        from pyarrow.fs import FileSelector, FileType

        selector = FileSelector(self.key(), allow_not_found=True, recursive=True)
        with self._failures():
            found = self._system().get_file_info(selector)
        start = len(self.key()) + 1
        names = [(one.path[start:], one.size) for one in found if one.type == FileType.File]
        return [Listed(*one) for one in sorted(names)]

    @contextmanager
    def fetched(self) -> Iterator[Path]:
        """A copy of the file on this machine, gone at the end."""
        if not self.exists():
            raise ResultsError(self, "does not exist, expected a file")
        with tempfile.TemporaryDirectory(prefix="gossamer-fetched-") as folder:
            copy = Path(folder) / self.name
            with (
                self._failures(),
                self._system().open_input_stream(self.key()) as stream,
                copy.open("wb") as target,
            ):
                while chunk := stream.read(_CHUNK):
                    target.write(chunk)
            yield copy

    def copy_to(self, other: RemotePlace) -> None:
        """Give a file a second name in the same storage, which does that itself."""
        with self._failures():
            self._system().copy_file(self.key(), other.key())

    def delete(self) -> None:
        """Remove a file; nothing happens where there is none."""
        with self._failures():
            try:
                self._system().delete_file(self.key())
            except FileNotFoundError:
                return

    def key(self) -> str:
        """The path as PyArrow's file system knows it."""
        if self.scheme == "hdfs":
            return f"/{self.path}"
        bucket = self.authority.partition("@")[0]
        return f"{bucket}/{self.path}".rstrip("/")

    def _system(self) -> Any:
        return _file_system(self.scheme, self.authority, self.access)

    @contextmanager
    def _failures(self) -> Iterator[None]:
        """Name the place and what is wrong with it; a file that is not there is no failure."""
        try:
            yield
        except FileNotFoundError:
            raise
        except (OSError, NotImplementedError) as error:
            raise ResultsError(self, failure_text(error, self)) from error


def remote_place(url: str, options: Mapping[str, str]) -> RemotePlace:
    """The place that a URL names.

    Raises:
        ResultsError: it has no bucket, or more than bucket and path.
    """
    scheme, _, rest = url.partition(":")
    authority, _, path = rest.removeprefix("//").partition("/")
    form = _FORMS[SCHEMES[scheme.lower()]]
    has_account = "@" in form
    if not rest.startswith("//") or not authority or ("@" in authority) != has_account:
        raise ResultsError(_without_secrets(url), f"is no place, expected {scheme}://{form}/PATH")
    if "?" in path and scheme.lower() in ("s3", "s3a"):
        expected = "expected credentials and endpoint as --conf spark.hadoop.fs.s3a..."
        raise ResultsError(_without_secrets(url), f"has a query, {expected}")
    parts = [part for part in path.split("/") if part]
    if any(part in (".", "..") for part in parts) or not parts:
        raise ResultsError(url, f"is no folder of a store, expected {scheme}://{form}/PATH")
    return RemotePlace(scheme.lower(), authority, "/".join(parts), Access.of(options))


def _without_secrets(url: str) -> str:
    """A URL without what may be a password in it."""
    return re.sub(r"//[^/@]*@", "//...@", url.partition("?")[0])


def failure_text(error: BaseException, place: RemotePlace) -> str:
    """What a failure of storage means, in words that follow the name of a place."""
    text = " ".join(str(error).split())
    code = _CODE.search(text)
    name = code[1] if code else ""
    if name == "NO_SUCH_BUCKET":
        return f"cannot be used, as there is no bucket {place.authority}"
    if name in _REFUSED or "Forbidden" in text or "HTTP status 403" in text:
        return "is refused to these credentials"
    if name == "NETWORK_CONNECTION" or "curlCode" in text:
        where = place.access.endpoint() or "its address"
        return f"cannot be reached: nobody answers at {where}, or connections break"
    if name == "SLOW_DOWN" or "TooManyRequests" in text:
        return "cannot be used, as its server is overloaded"
    if "libhdfs" in text or "libjvm" in text or "HADOOP" in text:
        return "cannot be used: PyArrow finds no libhdfs, expected HADOOP_HOME and CLASSPATH"
    return f"cannot be used ({text[:_LONGEST].rstrip('.')})"


@lru_cache(maxsize=16)
def _file_system(scheme: str, authority: str, access: Access) -> Any:
    """PyArrow's file system of a store, one in each process.

    Raises:
        OSError: the store, or what reads it, is not there.
    """
    from pyarrow.fs import FileSystem, S3FileSystem

    if SCHEMES[scheme] == "s3":
        return S3FileSystem(**access.of_s3(authority))
    system, _ = FileSystem.from_uri(f"{SCHEMES[scheme]}://{authority}/")
    return system
