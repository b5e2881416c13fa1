"""Checkpoints: parts of a run that wait to be gone on with, each in a file.

A checkpoint says what it is of: the scenario, the contents of the files that this names, and the
sources of the simulator. Gone on with under any other of these, a run would be half of one thing
and half of another, so it is refused.
"""

from __future__ import annotations

import functools
import hashlib
import os
import pickle
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import attrs

import gossamer.protocol
import gossamer.sim
from gossamer.sim.errors import ScenarioError

_SUFFIX = ".checkpoint"
_CHECK_BYTES = hashlib.sha256().digest_size


@attrs.frozen
class _Origin:
    """What a checkpoint is of.

    Attributes:
        scenario: as it was run.
        inputs: by name, hashes of the files that the scenario names.
        sources: a hash of the protocol's and the simulator's sources.
    """

    scenario: Any
    inputs: dict[str, str]
    sources: str


class Checkpoints:
    """The checkpoints of one run, by the names of its parts: systems, coverings, strategies, ...

    Args:
        folder: made when the first one is saved.
        scenario: of the run; the files that it names are read now.
    """

    def __init__(self, folder: Path, scenario: Any) -> None:
        self._folder = folder
        self._origin = _Origin(scenario, _inputs(scenario), source_fingerprint())

    def save(self, part: str, content: object) -> None:
        """Write a part of the run aside and put it in place whole; an `OSError` names the file."""
        file = self._file(part)
        file.parent.mkdir(parents=True, exist_ok=True)
        aside = file.with_suffix(".tmp")
        try:
            with aside.open("wb") as stream:
                stream.write(bytes(_CHECK_BYTES))
                checked = _Checked(stream)
                for written in (self._origin, content):
                    pickle.dump(written, checked, protocol=pickle.HIGHEST_PROTOCOL)
                stream.seek(0)
                stream.write(checked.digest.digest())
            os.replace(aside, file)
        except OSError as error:
            # What a write says of a full disk names no file.
            raise OSError(error.errno, error.strerror, str(file)) from None
        finally:
            aside.unlink(missing_ok=True)

    def load(self, part: str) -> Any:
        """What was saved of a part; None where nothing was.

        Raises:
            ScenarioError: it is damaged, or of something other than the run is now.
        """
        file = self._file(part)
        if not file.exists():
            return None
        with file.open("rb") as stream:
            expected = stream.read(_CHECK_BYTES)
            if hashlib.file_digest(stream, "sha256").digest() != expected:
                whole = "one that was written whole"
                raise ScenarioError(str(file), "checkpoint", None, whole, found="damaged")
            stream.seek(_CHECK_BYTES)
            try:
                origin = pickle.load(stream)
                self._compare(file, origin)
                return pickle.load(stream)
            except (AttributeError, ImportError, TypeError):
                # Its classes are not those of these sources.
                raise _of_other_sources(file) from None

    def load_all(self, parts: Iterable[str]) -> dict[str, Any]:
        """What was saved of these parts, by name, without those that are not there; as `load`."""
        found = {part: self.load(part) for part in parts}
        return {part: content for part, content in found.items() if content is not None}

    def _file(self, part: str) -> Path:
        return self._folder / f"{part}{_SUFFIX}"

    def _compare(self, file: Path, then: _Origin) -> None:
        now = self._origin
        if then.scenario != now.scenario:
            expected = "one of the same scenario and seed"
            raise ScenarioError(str(file), "checkpoint", then.scenario.name, expected)
        if then.sources != now.sources:
            raise _of_other_sources(file)
        for name in sorted(then.inputs.keys() | now.inputs.keys()):
            if then.inputs.get(name) != now.inputs.get(name):
                expected, found = f"one of {name} as it is now", "of other content"
                raise ScenarioError(str(file), "checkpoint", name, expected, found=found)


class _Checked:
    """A stream that reckons the hash of what is written to it."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.digest = hashlib.sha256()

    def write(self, data: Any) -> int:
        self.digest.update(data)
        return self._stream.write(data)


def _of_other_sources(file: Path) -> ScenarioError:
    expected = "one of this version of gossamer; begin the run anew"
    return ScenarioError(str(file), "checkpoint", None, expected, found="of another version")


@functools.cache
def source_fingerprint() -> str:
    """A hash of the sources whose results a run consists of, as this process read them first."""
    digest = hashlib.sha256()
    for root in map(Path, (*gossamer.protocol.__path__, *gossamer.sim.__path__)):
        for path in sorted(root.rglob("*.py")):
            digest.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()


def _inputs(scenario: Any) -> dict[str, str]:
    """Hashes of the files that a scenario names, by their paths; missing files have none."""
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in _files(scenario)
        if path.is_file()
    }


def _files(part: Any) -> Iterator[Path]:
    if isinstance(part, Path):
        yield part
    elif attrs.has(type(part)):
        for field in attrs.fields(type(part)):
            value = getattr(part, field.name)
            if field.name == "file" and isinstance(value, str) and value:
                value = Path(value)
            yield from _files(value)
    elif isinstance(part, tuple | list):
        for item in part:
            yield from _files(item)
    elif isinstance(part, Mapping):
        yield from _files(list(part.values()))
