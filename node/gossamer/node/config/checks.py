"""Checks of single settings, as attrs validators, and how addresses are written.

A check raises `ConfigError` that names the field by its section, the class attribute `SECTION` of
the instance, so that its message reads as the user wrote the file.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import attrs

from gossamer.protocol.kernel.errors import ConfigError, choice

DEFAULT_PORT: Final = 7710
DEFAULT_PAGE_PORT: Final = 7711
DEFAULT_JOIN_PORT: Final = 7712
MAX_ADDRESSES: Final = 64

_LABEL: Final = r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
# A last label of digits only is a mistyped address, never a name.
_HOST_NAME: Final = re.compile(
    rf"(?=.{{1,253}}\Z)({_LABEL}\.)*(?![0-9]+\.?\Z){_LABEL}\.?", re.ASCII
)

Check = Callable[[Any, "attrs.Attribute[Any]", Any], None]


def parse_address(text: str, default_port: int) -> tuple[str, int]:
    """Host and port of ``host``, ``host:port``, ``[ipv6]:port`` or a bare IPv6 address.

    Raises:
        ValueError: it is none of these, or the port is not in 0 to 65535.
    """
    host, port = text, str(default_port)
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            raise ValueError(text)
        port = rest[1:] or port
    elif text.count(":") == 1:
        host, _, port = text.partition(":")
    if not re.fullmatch(r"[0-9]{1,5}", port) or int(port) > 65535 or not is_host(host):
        raise ValueError(text)
    return host, int(port)


def is_host(text: str) -> bool:
    """Whether ``text`` can be a host name or an IP address, an IPv6 one with its scope."""
    address, percent, scope = text.partition("%")
    try:
        return ipaddress.ip_address(address).version == 6 or not percent
    except ValueError:
        return not (percent or scope) and _HOST_NAME.fullmatch(text) is not None


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach ``host``."""
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return host == "localhost"


def whole_number(low: int, high: int) -> Check:
    """A whole number from ``low`` to ``high``."""

    def check(instance: Any, field: attrs.Attribute[Any], value: Any) -> None:
        if type(value) is not int or not low <= value <= high:
            raise _refusal(instance, field, value, f"a whole number from {low} to {high}")

    return check


def seconds(low: float, high: float) -> Check:
    """A number of seconds from ``low`` to ``high``."""

    def check(instance: Any, field: attrs.Attribute[Any], value: Any) -> None:
        if type(value) not in (int, float) or not low <= value <= high:
            expected = f"a number of seconds from {low:g} to {high:g}"
            raise _refusal(instance, field, value, expected)

    return check


def yes_or_no(instance: Any, field: attrs.Attribute[Any], value: Any) -> None:
    """True or False, and no number in its place."""
    if type(value) is not bool:
        raise _refusal(instance, field, value, "true or false")


def short_text(limit: int) -> Check:
    """At most ``limit`` printable characters."""

    def check(instance: Any, field: attrs.Attribute[Any], value: Any) -> None:
        if not isinstance(value, str) or len(value) > limit or not value.isprintable():
            expected = f"text of at most {limit} printable characters"
            raise _refusal(instance, field, value, expected)

    return check


def one_of(choices: tuple[str, ...]) -> Check:
    """One of ``choices``."""

    def check(instance: Any, field: attrs.Attribute[Any], value: Any) -> None:
        if value not in choices:
            raise _refusal(instance, field, value, choice(value, choices))

    return check


def path(instance: Any, field: attrs.Attribute[Any], value: Any) -> None:
    """A path that the file system can hold."""
    if not isinstance(value, Path) or "\0" in str(value):
        raise _refusal(instance, field, value, "a path")


def address(lowest_port: int) -> Check:
    """An address that `parse_address` reads; port 0, any free one, only where that is asked for."""

    def check(instance: Any, field: attrs.Attribute[Any], value: Any) -> None:
        try:
            good = parse_address(value, DEFAULT_PORT)[1] >= lowest_port
        except (ValueError, AttributeError):
            good = False
        if not good:
            expected = "an address such as 192.168.1.7:7710 or [fe80::1%eth0]:7710"
            raise _refusal(instance, field, value, expected)

    return check


def loopback_or_nothing(instance: Any, field: attrs.Attribute[Any], value: Any) -> None:
    """A loopback address with its port, or empty text."""
    try:
        good = value == "" or (":" in value and is_loopback(parse_address(value, 0)[0]))
    except (ValueError, TypeError, AttributeError):
        good = False
    if not good:
        raise _refusal(instance, field, value, "a loopback address such as 127.0.0.1:0, or nothing")


def host(instance: Any, field: attrs.Attribute[Any], value: Any) -> None:
    """A host name or IP address, without a port."""
    if not isinstance(value, str) or not is_host(value):
        raise _refusal(instance, field, value, "a host name without a port")


def each(check: Check) -> Check:
    """A tuple of at most `MAX_ADDRESSES` values that pass ``check``."""

    def check_all(instance: Any, field: attrs.Attribute[Any], value: Any) -> None:
        if not isinstance(value, tuple) or len(value) > MAX_ADDRESSES:
            raise _refusal(instance, field, value, f"a list of at most {MAX_ADDRESSES} values")
        for one in value:
            check(instance, field, one)

    return check_all


def to_tuple(value: Any) -> Any:
    """Lists, which TOML has, as tuples; anything else is left to the check."""
    return tuple(value) if isinstance(value, list) else value


def to_path(value: Any) -> Any:
    """Text as a path; anything else is left to the check."""
    return Path(value) if isinstance(value, str) else value


def to_mapping(value: Mapping[str, object]) -> Mapping[str, object]:
    """A copy that nobody changes."""
    return MappingProxyType(dict(value))


def _refusal(
    instance: Any, field: attrs.Attribute[Any], value: object, expected: str
) -> ConfigError:
    return ConfigError(f"{type(instance).SECTION}.{field.name}", value, expected)
