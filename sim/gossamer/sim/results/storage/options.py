"""Credentials and endpoints of storage, in the words of Hadoop's options for Spark.

One set of options serves Spark's connectors and PyArrow: ``spark.hadoop.fs.s3a.endpoint`` and its
kin. Where none are given PyArrow looks where its libraries do: the environment (``AWS_...``,
``AZURE_...``, ``GOOGLE_APPLICATION_CREDENTIALS``), files of profiles, and the role of the machine.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

import attrs

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
