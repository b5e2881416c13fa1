"""Where subscriptions and events come from that are not drawn, and what is not said beside them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar, Final

import attrs

from gossamer.sim.errors import ScenarioError
from gossamer.sim.study.scenarios import check, of_type, to_path

# What only subscriptions are drawn by, what only events are, and what both are.
_OF_RANGES: Final = ("width", "width_decades", "aspect", "subscribers")
_OF_POINTS: Final = ("correlation",)
_OF_BOTH: Final = ("kind", "places", "exponent", "spread")
_OF_TIMES: Final = ("per_round", "warm_up_rounds")
_FILE: Final = of_type(Path, "the path of a Parquet file, as text", optional=True)


def _optional_path(value: Path | str | None) -> Path | None:
    return None if value is None else to_path(value)


@attrs.frozen(kw_only=True)
class TakenFrom:
    """Where subscriptions and events come from: a workload, or files of one's own.

    Attributes:
        folder: of a workload of kind "vinifera"; it has both.
        subscriptions, events: Parquet files, see `own_tables`; what there is none of is drawn.
    """

    section: ClassVar[str] = "workload."

    folder: Path | None = attrs.field(
        default=None,
        converter=_optional_path,
        validator=of_type(Path, "the path of a folder, as text", optional=True),
    )
    subscriptions: Path | None = attrs.field(
        default=None, converter=_optional_path, validator=_FILE
    )
    events: Path | None = attrs.field(default=None, converter=_optional_path, validator=_FILE)

    def __attrs_post_init__(self) -> None:
        own = self.subscriptions or self.events
        if self.folder is None and own is None:
            expected = "the folder of a workload, or a file of subscriptions or events"
            raise ScenarioError(None, "workload.folder", None, expected, found="missing")
        expected = "none beside workload.subscriptions and workload.events"
        check(self.folder is None or own is None, "workload.folder", str(self.folder), expected)


def check_left_out(
    taken: TakenFrom, subscriptions: object, events: object, event_shift: float
) -> None:
    """Refuse what draws that files replace would go by, where it is not the default."""
    if taken.subscriptions is not None:
        _check_defaults(subscriptions, _OF_RANGES, "subscriptions")
    if taken.events is not None:
        _check_defaults(subscriptions, _OF_POINTS, "events")
        _check_defaults(events, _OF_TIMES, "events")
        expected = "0, as a file says what events are"
        check(event_shift == 0, "drift.event_shift", event_shift, expected)
    if taken.subscriptions is not None and taken.events is not None:
        _check_defaults(subscriptions, _OF_BOTH, "subscriptions and events")


def check_no_publishers(events: object) -> None:
    """Refuse what publishers are drawn by, where a file names them; raises `ScenarioError`."""
    _check_defaults(events, ("publishers", "publisher_exponent"), "publishers")


def _check_defaults(section: Any, names: Iterable[str], what: str) -> None:
    fields = attrs.fields_dict(type(section))
    for name in names:
        value = getattr(section, name)
        expected = f"left out, as {what} are taken from a file"
        check(value == fields[name].default, section.section + name, value, expected)
