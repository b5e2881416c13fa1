"""The node.toml that `init` and `join` write: few settings, with comments that name the others."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import attrs

from gossamer.node.config.families import families, family_names
from gossamer.node.config.folder import CONFIG_NAME
from gossamer.node.errors import ClusterFolderError
from gossamer.node.security.identity import write_file

_TEXT: Final = """\
# This peer's configuration. 'gossamer node check {folder}' shows every setting with its value and
# where it comes from; docs/node.md explains them. Over this file go variables such as
# GOSSAMER_NODE_DELIVERY_RETENTION_S, and over those options such as --set delivery.retention_s=60.

# lan: peers of one local network find each other by multicast
# wan: peers far apart; list some of them in discovery.peers
# local: peers of one machine, loopback only, any free ports
preset = {preset}

[identity]
# What people call this peer, in logs and on the page.
name = {name}

[listen]
# Where other peers reach this one; every address of this machine unless you name some.
{addresses}
# Where those who want to join are answered, by the peer that holds ca.key.
{join_addresses}

[discovery]
# Look for peers by multicast DNS.
{multicast}
# Peers to try first, such as ["192.168.1.7:7710"].
{peers}

[delivery]
# How long events are kept for subscribers that are away, seconds.
# retention_s = 7200

[page]
# The page for browsers, and /metrics for Prometheus; port 0 is any free one.
{page}

[node]
# peer, or broker: see docs/broker-node.md.
# role = "broker"
# Whether a peer takes events by compiled rules: "auto" once it is busy, "always", "never".
# compiled = "auto"

[broker]
# Brokers to connect to; it is enough that one end of a link names the other.
# neighbours = ["192.168.1.7:7710"]
# covering = "incremental"
# The family of brokers, {overlays}: see docs/broker-node.md.
# overlay = "tree"

{families}
[local]
# The socket for applications of this machine: "" is a Unix socket in this folder.
# address = "127.0.0.1:7713"
"""


@attrs.frozen(kw_only=True)
class FirstConfig:
    """What differs from the preset in a new node.toml; None leaves the preset's.

    Attributes:
        preset: lan, wan or local.
        name: of the peer.
        addresses, join_addresses: where to listen.
        multicast: whether to look for peers by multicast.
        peers: to try first.
        page: address of the page.
    """

    preset: str
    name: str
    addresses: Sequence[str] | None = None
    join_addresses: Sequence[str] | None = None
    multicast: bool | None = None
    peers: Sequence[str] | None = None
    page: str | None = None


def write_config(folder: Path, first: FirstConfig) -> None:
    """Write node.toml, unless there is one.

    Raises:
        ClusterFolderError: it cannot be written.
    """
    path = folder / CONFIG_NAME
    if path.exists():
        return
    text = _TEXT.format(
        overlays=", ".join(family_names()),
        families="".join(f"{one.example}\n" for one in families() if one.example),
        folder=folder,
        preset=json.dumps(first.preset),
        name=json.dumps(first.name, ensure_ascii=False),
        addresses=_line("addresses", first.addresses, ["0.0.0.0:7710", "[::]:7710"]),
        join_addresses=_line("join_addresses", first.join_addresses, ["0.0.0.0:7712", "[::]:7712"]),
        multicast=_line("multicast", first.multicast, True),
        peers=_line("peers", first.peers or None, []),
        page=_line("address", first.page, "127.0.0.1:7711"),
    )
    try:
        write_file(path, text.encode())
    except OSError as error:
        raise ClusterFolderError(path, f"cannot be written: {error.strerror}") from error


def _line(name: str, value: object, example: object) -> str:
    """A setting, or what it would look like as a comment; TOML writes these values as JSON does."""
    if value is None:
        return f"# {name} = {json.dumps(example)}"
    return f"{name} = {json.dumps(value)}"
