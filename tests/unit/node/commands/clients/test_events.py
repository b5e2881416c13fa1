"""Events as people write them, also in batches, as files, and as rows of a workload."""

from __future__ import annotations

import io
import json
import os
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from attrs import evolve

from gossamer.client.results import Payload, ReceivedEvent
from gossamer.node.commands.clients.asking import read_batch
from gossamer.node.commands.clients.event_text import (
    KINDS,
    LISTED,
    event_of_arguments,
    event_of_line,
    line_of_event,
)
from gossamer.node.commands.clients.publishing import Report
from gossamer.node.commands.clients.subscribing import SUBSCRIPTION_FILE, EventFiles
from gossamer.node.commands.clients.table_events import opened_table
from gossamer.node.errors import EventInputError
from gossamer.protocol.content.schema import BooleanAttribute, DecimalAttribute, Schema

# Text

SCHEMA = Schema.from_mapping(
    {
        "symbol": {"type": "string"},
        "price": {"type": "float", "minimum": 0, "maximum": 10_000},
        "volume": {"type": "integer", "minimum": 0, "maximum": 10**9},
        "day": {"type": "date", "minimum": "2020-01-01", "maximum": "2030-01-01"},
        "side": {"type": "enumeration", "values": ["buy", "sell"]},
    }
)
GIVEN = ["symbol=a=b", "price=80.5", "volume=100", "day=2026-11-20", "side=buy"]
DAY = datetime(2026, 11, 20, tzinfo=UTC)
MEANT = {"symbol": "a=b", "price": 80.5, "volume": 100, "day": DAY, "side": "buy"}


def test_arguments_mean_what_the_schema_says() -> None:
    assert event_of_arguments(SCHEMA, GIVEN) == MEANT
    # A symbol of digits stays text, a price may be whole or a fraction.
    odd = event_of_arguments(SCHEMA, ["symbol=7", "price=1/3", *GIVEN[2:]])
    assert (odd["symbol"], odd["price"]) == ("7", Fraction(1, 3))
    assert "side" not in event_of_arguments(SCHEMA, GIVEN[:-1])
    with pytest.raises(EventInputError, match="a value for at least one attribute"):
        event_of_arguments(SCHEMA, [])
    schema = Schema([BooleanAttribute("open"), DecimalAttribute("fee", 0, 100, 2)])
    assert event_of_arguments(schema, ["open=true", "fee=0.1"]) == {"open": True, "fee": 0.1}
    with pytest.raises(EventInputError, match="'open' takes true or false"):
        event_of_arguments(schema, ["open=yes"])
    with pytest.raises(EventInputError, match=r"a decimal from 0 to 100 with 2 after the point"):
        event_of_arguments(schema, ["fee=0.125"])


def test_arguments_describe_a_publication_of_anything() -> None:
    said = event_of_arguments(None, ["symbol=IBM", "price=81.5", "open=true", 'code="7"', "n=1/3"])
    assert said == {"symbol": "IBM", "price": 81.5, "open": True, "code": "7", "n": Fraction(1, 3)}
    assert said["open"] is True
    for text in ('symbol = "IBM", price = 81.5', "[symbol,'IBM'],[price,81.5]"):
        assert event_of_arguments(None, [text]) == {"symbol": "IBM", "price": 81.5}
    line = '{"symbol": "IBM", "price": 81.5}'
    assert event_of_line(None, line, 1) == {"symbol": "IBM", "price": 81.5}
    for bad in (["price"], ["price=1", "price=2"], ["[price,1"]):
        with pytest.raises(EventInputError):
            event_of_arguments(None, bad)
    with pytest.raises(EventInputError, match="line 3: "):
        event_of_line(None, '{"price": [1]}', 3)


def test_an_argument_that_does_not_fit_is_named() -> None:
    for place, argument, words in (
        (1, "price", "price: expected attribute=value"),
        (1, "prize=80", "no attribute 'prize', did you mean 'price'"),
        (1, "price=dear", 'takes a number from 0 to 10000, not "dear"'),
        (1, "price=1/0", "takes a number"),
        (1, "price=nan", "takes a number"),
        (1, "price=-1", "takes a number from 0"),
        (1, "symbol=x", "symbol=x: attribute 'symbol' has a value already"),
        (2, "volume=1.5", "takes an integer"),
        (3, "day=yesterday", "takes a date"),
        (4, "side=hold", "one of the enumeration"),
    ):
        with pytest.raises(EventInputError) as caught:
            event_of_arguments(SCHEMA, [*GIVEN[:place], argument, *GIVEN[place + 1 :]])
        assert words in str(caught.value)
        assert "\n" not in str(caught.value)


def test_what_is_printed_of_an_event_can_be_published_again_without_a_payload() -> None:
    event = ReceivedEvent("1f", {**MEANT, "price": Fraction(1, 3)}, "2a", 12.5, ("sub",), 7)
    line = line_of_event(event)
    assert json.loads(line)["values"]["day"] == "2026-11-20"
    assert event_of_line(SCHEMA, line, 1) == event.values
    line = line_of_event(evolve(event, payload=Payload(b"\x00\xff", "image/png")))
    assert json.loads(line)["payload"] == {"content_type": "image/png", "base64": "AP8="}
    for text, words in (
        (line, "line 7: carries a payload, expected values only"),
        ("{", "line 7: no JSON"),
        ("[" * 100_000, "line 7: no JSON"),
        ("[1]", "line 7: no object"),
        ('{"prize": 1}', "line 7: there is no attribute 'prize'"),
        ('{"symbol": 1}', "line 7: attribute 'symbol' takes"),
        ('{"symbol": "7", "price": "80"}', "line 7: attribute 'price' takes"),
        ('{"id": "x", "values": {}}', "line 7: an event has a value for"),
    ):
        with pytest.raises(EventInputError) as caught:
            event_of_line(SCHEMA, text, 7)
        assert str(caught.value).startswith(words)


def test_a_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    batch = '# first\nsubscribe cheap price < 120.5\npublish symbol = "IBM", price = 81.5\n'
    for text in (batch, batch.partition("\n")[2]):
        found = []
        for encoding in ("utf-8", "utf-8-sig"):
            (tmp_path / "batch").write_bytes(text.encode(encoding))
            found.append([operation.line for operation in read_batch(tmp_path / "batch")])
        assert found[0] == found[1]
        assert len(found[0]) == 2


# Files that appear whole, whoever is killed


def files_of(folder: Path) -> list[str]:
    return [path.read_text() for path in sorted(folder.glob("a/*.jsonl"))]


def test_files_appear_when_they_are_full_or_old(tmp_path: Path) -> None:
    now = 10**18
    with EventFiles(tmp_path, "a", every_s=2, most=2, clock=lambda: now) as out:
        for text in ("1\n", "2\n", "3\n"):
            out.write(text)
            out.flush()
            now += 1
        assert files_of(tmp_path) == ["1\n2\n"]
        out.finish_old()
        assert len(files_of(tmp_path)) == 1
        now += 2 * 10**9
        out.finish_old()
        assert files_of(tmp_path) == ["1\n2\n", "3\n"]
        out.write("4\n")
        out.flush()
    assert files_of(tmp_path) == ["1\n2\n", "3\n", "4\n"]
    assert {path.suffix for path in (tmp_path / "a").iterdir()} == {".jsonl"}


def test_what_a_killed_process_left_is_finished_but_for_half_a_line(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / ".a-01-1.jsonl.part").write_text('1\n2\n{"id"')
    (tmp_path / "a" / ".a-02-1.jsonl.part").write_text('{"id"')
    with EventFiles(tmp_path, "a", every_s=1, most=9) as out:
        assert files_of(tmp_path) == ["1\n2\n"]
        out.write("3\n")
        with EventFiles(tmp_path, "a", every_s=1, most=9):
            assert files_of(tmp_path) == ["1\n2\n"]  # what is still being written is left alone
    assert files_of(tmp_path) == ["1\n2\n", "3\n"]


def test_a_subscription_keeps_its_beginning_while_it_stays_the_same(tmp_path: Path) -> None:
    now = 10**18
    out = EventFiles(tmp_path, "a", every_s=1, most=9, clock=lambda: now)
    out.describe("x > 1", None)
    now += 10**9
    for expression, since in (("x > 1", 1e9), ("x > 2", 1e9 + 1)):
        out.describe(expression, None)
        told = json.loads((tmp_path / "a" / SUBSCRIPTION_FILE).read_text())
        expected = {"subscriber": "a", "expression": expression, "schema": None, "since": since}
        assert told == expected
    for name in ("", "../a", ".a", "a/b"):
        with pytest.raises(EventInputError, match="--as is"):
            EventFiles(tmp_path, name, every_s=1, most=1)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


# Rows of workloads as lines

QUOTES: dict[str, Any] = {
    "event": list(range(2_500)),
    "symbol": ["IBM", "T"] * 1_250,
    "close": [80.5 + row for row in range(2_500)],
    "volume": list(range(2_500)),
}


def written(folder: Path, rows: dict[str, Any], files: int = 2) -> Path:
    table = pa.table(rows)
    (folder / "events").mkdir(parents=True)
    for part in range(files):
        first, end = (at * len(table) // files for at in (part, part + 1))
        file = folder / "events" / f"part-{part:05}.parquet"
        pq.write_table(table.slice(first, end - first), file, write_page_checksum=True)
    return folder


def lines(folder: Path, *columns: str) -> list[dict[str, Any]]:
    with opened_table(folder, columns) as file, os.fdopen(os.dup(file), "rb") as stream:
        return [json.loads(line) for line in stream]


def test_rows_come_in_order_with_the_columns_asked_for_or_all(tmp_path: Path) -> None:
    """Rows of Siena have names of their own; whoever stops reading is not waited for."""
    quotes, siena = tmp_path / "quotes", tmp_path / "siena"
    found = lines(written(quotes, QUOTES), "symbol", "price=close")
    assert len(found) == 2_500
    assert found[:2] == [{"symbol": "IBM", "price": 80.5}, {"symbol": "T", "price": 81.5}]
    assert [event["price"] for event in found] == QUOTES["close"]
    assert lines(quotes)[3] == {"symbol": "T", "close": 83.5, "volume": 3}, "not the row's number"
    with opened_table(quotes, ()) as file:
        assert os.read(file, 10)
    rows = {"event": [0, 1], "names": [["a", "b"], ["c"]], "values": [[1, 2], [3]]}
    assert lines(written(siena, rows)) == [{"a": 1, "b": 2}, {"c": 3}]


def test_what_is_wrong_is_told_before_anything_is_published(tmp_path: Path) -> None:
    with pytest.raises(EventInputError, match="holds no table events, expected a workload"):
        lines(tmp_path)
    folder = written(tmp_path, QUOTES)
    with pytest.raises(EventInputError, match=r"has no column price \(there are event, symbol,"):
        lines(folder, "price")
    second = folder / "events" / "part-00001.parquet"
    second.write_bytes(second.read_bytes()[:-20])
    with pytest.raises(EventInputError, match=r"part-00001\.parquet: is damaged"):
        lines(folder)


def said_of(*reasons: str) -> list[str]:
    """What is said of lines from 1 that are refused for these reasons."""
    report = Report(io.StringIO(), err := io.StringIO())
    for number, reason in enumerate(reasons, 1):
        report.refused(EventInputError(f"line {number}", reason))
    report.end(early=False)
    assert report.exit_code == 2
    *said, summary = err.getvalue().splitlines()
    assert f"; {len(reasons)} line" in summary
    return [one.removeprefix("gossamer: ") for one in said]


def test_ten_lines_are_named_and_further_ones_counted_by_kind_whatever_their_values() -> None:
    assert said_of(*["no JSON"] * LISTED) == [f"line {n}: no JSON" for n in range(1, 11)]
    wrong = [f"attribute 'price' takes a number, not the string \"x{n}\"" for n in range(2000)]
    said = said_of(*wrong, "no JSON (char 3)", "no JSON (char 4)", "longer than 9 bytes")
    assert said[LISTED:] == [
        "1,993 lines more:",
        f"  line 11: {wrong[10]} (and 1,989 like it)",
        "  line 2001: no JSON (char 3) (and 1 like it)",
        "  line 2003: longer than 9 bytes",
    ]
    said = said_of(*["no JSON"] * LISTED, *(f"no attribute '{'a' * n}'" for n in range(1, 400)))
    assert (len(said), said[LISTED]) == (LISTED + 1 + KINDS + 1, "399 lines more:")
    counted = 300 + KINDS - 1  # the last kind stands for those that are too many
    assert said[-1] == f"  {399 - counted} lines for other reasons"
