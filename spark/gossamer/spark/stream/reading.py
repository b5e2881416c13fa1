"""Lines of `gossamer sub --into` as frames that grow with the files.

Files appear whole, by a rename, and are never changed: Spark's checkpoint tells which have been
read, so that each is read once.
"""

from __future__ import annotations

from typing import Any, Final

from gossamer.sim.results.storage.place import Place, PlaceError
from gossamer.spark.storage.frames import folder_address

# Of a subscriber's folder.
_FILES: Final = "*/*.jsonl"
# Text that is no such line is kept as it came, and counted.
DAMAGED: Final = "damaged"
_COLUMNS: Final = (
    "id string, subscriber string, publisher string, published_at double, received_at double, "
    f"values string, {DAMAGED} string"
)


def growing_lines(session: Any, folder: Place, files_a_batch: int) -> Any:
    """All lines below a folder, as they come; what is no JSON object has only `DAMAGED`.

    Args:
        session: of Spark. All its workers need to see the folder.
        folder: that of ``--into``.
        files_a_batch: that are read at a time, at most.

    Raises:
        PlaceError: Spark has no connector for the storage, or the name holds letters that stand
            for patterns.
    """
    address = folder_address(session, folder)
    if address is None:
        raise PlaceError(folder, "cannot be followed, expected storage that Spark has a jar for")
    # Spark reads such files twice, although it takes their names for what they are.
    if "\\" in address:
        raise PlaceError(folder, "cannot be followed, expected a name without any of {}[]*?\\")
    source = session.readStream.schema(_COLUMNS).option("columnNameOfCorruptRecord", DAMAGED)
    return source.option("maxFilesPerTrigger", files_a_batch).json(f"{address}/{_FILES}")


def require_files(folder: Place) -> None:
    """See whether a folder is one that subscribers write into.

    Raises:
        PlaceError: it is not there, or nothing is in it.
    """
    if not folder.files():
        expected = "expected files of a subscriber, as 'gossamer sub --into' writes them"
        raise PlaceError(folder, f"holds nothing to follow, {expected}")


def sound(lines: Any, *needed: str) -> Any:
    """Lines that have what is needed of an event."""
    wanted = " and ".join(f"{name} is not null" for name in ("id", "published_at", *needed))
    return lines.where(f"{DAMAGED} is null and {wanted}")
