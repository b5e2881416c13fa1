"""`gossamer node service`: a systemd unit that runs the node of a folder.

The unit restarts a node that fails, however often: a user's manager does not wait for the network,
so that an address to listen at may be missing at first. It gives it ten seconds to stop, which
takes two at most, and reloads it by a command that ends when the node has answered, and fails where
it refuses.
One of the user's own manager needs no rights; one of the system's runs as the folder's owner.
"""

from __future__ import annotations

import os
import pwd
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from gossamer.node.config.file import load
from gossamer.node.errors import CommandError
from gossamer.node.security.identity import PUBLIC, write_file

SYSTEM_UNITS: Final = Path("/etc/systemd/system")

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}")
_UNIT: Final = """\
[Unit]
Description=gossamer node {name}
{after}# Where its address or its disk is not there yet, it is started again until it is.
StartLimitIntervalSec=0

[Service]
Type=exec
ExecStart={command}
ExecReload={reload}
{user}Restart=on-failure
RestartSec=5
# Ctrl-C ends a node with 130: no reason to start it again.
SuccessExitStatus=130
TimeoutStopSec=10
UMask=0077
LimitNOFILE=65536
NoNewPrivileges=yes
{hardened}
[Install]
WantedBy={target}
"""
_HARDENED: Final = """\
PrivateTmp=yes
ProtectSystem=full
ProtectKernelTunables=yes
ProtectControlGroups=yes
RestrictSUIDSGID=yes
"""


def unit_text(folder: Path, name: str, *, system: bool) -> str:
    """The unit of the node in ``folder``.

    Args:
        folder: of the node; it is there.
        name: for people.
        system: whether it is for the system's manager, or for the user's.
    """
    place = str(folder.absolute())
    command = (sys.executable, "-m", "gossamer.command.main", "node")
    owner = pwd.getpwuid(folder.stat().st_uid).pw_name
    return _UNIT.format(
        name=name.replace("%", "%%"),
        after="Wants=network-online.target\nAfter=network-online.target\n" if system else "",
        command=_line(*command, "run", place),
        reload=_line(*command, "reload", place),
        user=f"User={owner}\n" if system else "",
        hardened=_HARDENED if system else "",
        target="multi-user.target" if system else "default.target",
    )


def service(folder: Path | None, name: str | None, *, system: bool, install: bool) -> list[str]:
    """The unit of the node in ``folder`` as lines, or where it was installed and what comes next.

    Args:
        folder: of the node; None is the current one.
        name: of the unit, without ``gossamer-`` and ``.service``; None takes the node's.
        system: whether it is for the system's manager, or for the user's.
        install: whether to write it where that manager looks for units.

    Raises:
        ConfigurationError: the node's configuration is impossible.
        CommandError: the name is none, or the unit cannot be written, or another one is there.
    """
    config = load(folder).config
    place = config.identity.folder
    called = name or config.identity.name or place.absolute().name
    if _NAME.fullmatch(called) is None:
        raise CommandError(called, "is no name of a unit, expected letters, digits and _.@-")
    if not place.is_dir():
        raise CommandError(place, "is no folder, expected that of a node")
    text = unit_text(place, called, system=system)
    if not install:
        return text.splitlines()
    path = (SYSTEM_UNITS if system else user_units()) / f"gossamer-{called}.service"
    if sys.platform != "linux":
        reason = "is read by systemd, which this system has not, expected Linux for --install"
        raise CommandError(path, reason)
    _write(path, text)
    control = "systemctl" if system else "systemctl --user"
    return [
        f"installed {path}",
        f"start it now and with the machine: {control} daemon-reload && "
        f"{control} enable --now {path.name}",
        f"remove it: {control} disable --now {path.name} && rm {path}",
        *([] if system else ["keep it running while you are logged out: loginctl enable-linger"]),
    ]


def user_units(environment: Mapping[str, str] = os.environ) -> Path:
    """Where the user's own manager looks for units."""
    home = environment.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(home) / "systemd" / "user"


def _write(path: Path, text: str) -> None:
    """Put the unit at ``path``, unless a different one is there."""
    try:
        if path.exists() and path.read_text(encoding="utf-8") != text:
            reason = "is there already and differs, expected none; remove it, or use --name"
            raise CommandError(path, reason)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, text.encode(), PUBLIC)
    except OSError as error:
        raise CommandError(path, f"cannot be written: {error.strerror}") from None


def _line(*words: str) -> str:
    return " ".join(map(_quoted, words))


def _quoted(word: str) -> str:
    """A word of a command line as systemd reads it."""
    text = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return text if re.fullmatch(r"[\w./:@+=-]+", text) else f'"{text}"'
