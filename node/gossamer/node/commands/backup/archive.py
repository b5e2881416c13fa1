"""The file that a peer's folder is backed up to: a compressed tar with a manifest at its beginning.

The manifest, JSON, names each file with its mode, size and SHA-256, so that a backup that was cut
off or changed is found out before anything is put in place. It is no signature: who can write to
the file can change both.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import tarfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

import attrs

from gossamer.node.errors import CommandError
from gossamer.node.security.identity import PRIVATE, PUBLIC

FORMAT: Final = 1
MANIFEST: Final = "manifest.json"
# Far more than a manifest takes.
MANIFEST_BYTES: Final = 1 << 20
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_CHUNK: Final = 1 << 20


@attrs.frozen
class Item:
    """A file in a backup: name without a folder, rights, bytes, and SHA-256 in hexadecimal."""

    name: str
    mode: int
    size: int
    digest: str


@attrs.frozen(kw_only=True)
class Manifest:
    """What a backup says of itself.

    Attributes:
        key: of the peer, 16 hexadecimal digits; "" of one without certificates.
        peer, cluster: their names.
        software: that made it.
        made_at: Unix seconds.
        folder: where the peer was, for people.
        items: its files.
    """

    key: str
    peer: str
    cluster: str
    software: str
    made_at: float
    folder: str
    items: tuple[Item, ...]

    def to_bytes(self) -> bytes:
        """As JSON."""
        return json.dumps({"format": FORMAT, **attrs.asdict(self)}, indent=1).encode()


def item_of(path: Path, name: str, mode: int) -> Item:
    """What a manifest says of the file at ``path``.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return Item(name, mode, file.tell(), digest)


def write_archive(target: IO[bytes], manifest: Manifest, folder: Path) -> None:
    """Write a backup of the files of ``manifest``, which are in ``folder``.

    Raises:
        OSError: they cannot be read, or it not be written.
    """
    with tarfile.open(fileobj=target, mode="w:gz", compresslevel=6) as tar:
        data = manifest.to_bytes()
        tar.addfile(_entry(MANIFEST, PUBLIC, len(data), manifest.made_at), io.BytesIO(data))
        for one in manifest.items:
            with (folder / one.name).open("rb") as file:
                tar.addfile(_entry(one.name, one.mode, one.size, manifest.made_at), file)


def read_archive(path: Path, place: Callable[[Manifest], Path]) -> Manifest:
    """Read a backup, and put its files into the folder that ``place`` gives for its manifest.

    Raises:
        CommandError: it is none, was cut off or changed; files may have been written.
        OSError: files cannot be written.
    """
    with _opened(path) as tar:
        manifest = _manifest(path, tar)
        folder = place(manifest)
        for one in manifest.items:
            member = tar.next()
            if member is None or member.name != one.name or not member.isreg():
                found = "its end" if member is None else repr(member.name)
                raise CommandError(path, f"has {found} where {one.name!r} was expected")
            _extract(path, tar, member, one, folder)
        if tar.next() is not None:
            raise CommandError(path, "has more files than its manifest, expected those")
    return manifest


def _entry(name: str, mode: int, size: int, made_at: float) -> tarfile.TarInfo:
    found = tarfile.TarInfo(name)
    found.mode, found.size, found.mtime = mode, size, int(made_at)
    return found


@contextmanager
def _opened(path: Path) -> Iterator[tarfile.TarFile]:
    try:
        with path.open("rb") as file, tarfile.open(fileobj=file, mode="r:gz") as tar:
            yield tar
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise CommandError(path, f"is no whole backup of a peer ({error})") from None
    except OSError as error:
        if error.errno is None:  # what gzip says of bytes that are none of its own
            raise CommandError(path, f"is no backup of a peer ({error})") from None
        raise


def _manifest(path: Path, tar: tarfile.TarFile) -> Manifest:
    member = tar.next()
    if member is None or member.name != MANIFEST or member.size > MANIFEST_BYTES:
        raise CommandError(path, f"is no backup of a peer, expected {MANIFEST} at its beginning")
    file = tar.extractfile(member)
    assert file is not None, "it is no folder"
    try:
        return _read_manifest(json.loads(file.read()))
    except (ValueError, KeyError, TypeError) as error:
        reason = f"has a manifest that cannot be read ({type(error).__name__}: {error})"
        raise CommandError(path, reason) from None


def _read_manifest(found: Mapping[str, Any]) -> Manifest:
    if found["format"] != FORMAT:
        raise ValueError(f"format {found['format']!r}, expected {FORMAT}")
    items = tuple(_read_item(one) for one in found["items"])
    if len({one.name for one in items}) != len(items):
        raise ValueError("a file is named twice")
    texts = {name: str(found[name]) for name in ("key", "peer", "cluster", "software", "folder")}
    return Manifest(**texts, made_at=float(found["made_at"]), items=items)


def _read_item(found: Mapping[str, Any]) -> Item:
    name, digest = str(found["name"]), str(found["digest"])
    if _NAME.fullmatch(name) is None or name == MANIFEST:
        raise ValueError(f"{name!r} is no name of a file")
    if _DIGEST.fullmatch(digest) is None:
        raise ValueError(f"{digest!r} is no SHA-256")
    # Nobody else's rights come back, whatever the manifest says.
    return Item(name, int(found["mode"]) & PUBLIC, int(found["size"]), digest)


def _extract(
    path: Path, tar: tarfile.TarFile, member: tarfile.TarInfo, item: Item, folder: Path
) -> None:
    source = tar.extractfile(member)
    assert source is not None, "it is a file"
    target, digest, size = folder / item.name, hashlib.sha256(), 0
    with target.open("xb") as file:
        target.chmod(PRIVATE)
        while size <= item.size and (chunk := source.read(_CHUNK)):
            size += len(chunk)
            digest.update(chunk)
            file.write(chunk)
    if size != item.size or digest.hexdigest() != item.digest:
        raise CommandError(path, f"is damaged: {item.name!r} is not what the manifest says")
    target.chmod(item.mode)
