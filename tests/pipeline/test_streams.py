"""Deliveries of live nodes followed: windows are right, and exact though the command is killed."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from gossamer.sim.errors import ResultsError
from gossamer.sim.results.storage.place import LocalPlace
from gossamer.spark.commands.cli import app
from gossamer.spark.errors import JobError
from gossamer.spark.storage.lineage import read_lineage
from gossamer.spark.stream import due, following
from support import spark_processes
from support.spark_results import windows_in
from support.waiting import started_by

SCHEMA = {
    "symbol": {"type": "string", "minimum": ""},
    "price": {"type": "float", "minimum": 0, "maximum": 1000},
}
BEGIN = 1_800_000_000
WRONG = {"subscriber": "a", "expression": "cost > 1", "schema": SCHEMA, "since": 0}


def subscribe(folder: Path, name: str, expression: str, since: float = BEGIN) -> None:
    """What `gossamer sub --into` says of a subscription."""
    told = {"subscriber": name, "expression": expression, "schema": SCHEMA, "since": since}
    (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / name / "subscription.json").write_text(json.dumps(told))


def event(number: int, published_at: float, price: float = 1.0) -> dict[str, Any]:
    values = {"symbol": "IBM", "price": price}
    return {"id": f"{number:016x}", "published_at": published_at, "values": values}


def delivery(of: Mapping[str, Any], subscriber: str, latency: float) -> dict[str, Any]:
    return {**of, "subscriber": subscriber, "received_at": of["published_at"] + latency}


def write_lines(folder: Path, name: str, number: int, lines: Sequence[object]) -> None:
    """A file of a subscriber, which appears whole."""
    (folder / name).mkdir(parents=True, exist_ok=True)
    part = folder / name / f".{name}-{number:05}.jsonl.part"
    texts = (line if isinstance(line, str) else json.dumps(line) for line in lines)
    part.write_text("".join(f"{text}\n" for text in texts))
    part.rename(folder / name / f"{name}-{number:05}.jsonl")


def lines_kept(out: Path) -> Iterator[dict[str, Any]]:
    for files in following.batches_of(LocalPlace(out), following.DELIVERIES).values():
        for file in files:
            yield from pq.ParquetFile(file.source()).read().to_pylist()


def follow(got: Path, **changes: Any) -> following.StreamSettings:
    """Settings that read the deliveries there are, in windows of ten seconds."""
    windows = due.WindowSettings(window_s=10, late_s=60)
    given = {"published": None, "windows": windows, "once": True, **changes}
    return following.StreamSettings(deliveries=LocalPlace(got), **given)


@attrs.frozen
class Followed:
    """A stream of two subscribers that was followed once."""

    got: Path
    out: Path
    settings: following.StreamSettings
    events: list[dict[str, Any]]
    made: list[dict[str, Any]]  # deliveries to the one to everything, all but of the third event


@pytest.fixture(scope="module")
def followed(session: Any, tmp_path_factory: pytest.TempPathFactory) -> Followed:
    """The stream; the second of its subscribers came late."""
    folder = tmp_path_factory.mktemp("followed")
    got, published, out = (folder / name for name in ("got 1", "published", "out"))
    subscribe(got, "all", "price >= 0")
    subscribe(got, "dear", "price >= 500", since=BEGIN + 5)
    events = [event(n, BEGIN + n, min(100.0 * n, 900.0)) for n in range(20)]
    write_lines(published, "record", 1, events)
    made = [delivery(one, "all", 0.01 * n) for n, one in enumerate(events) if n != 3]
    write_lines(got, "all", 1, [*made, made[0], "no JSON", '{"id": "half"}'])
    write_lines(got, "dear", 1, [delivery(one, "dear", 0.5) for one in events[6:8]])
    settings = follow(got, published=LocalPlace(published))
    following.follow_stream(session, settings, LocalPlace(out))
    return Followed(got, out, settings, events, made)


def test_windows_tell_rates_hits_and_latencies(followed: Followed) -> None:
    windows = windows_in(followed.out, BEGIN)
    assert set(windows) == {(0, "all"), (10, "all"), (0, "dear"), (10, "dear")}
    wanted = {"due": 10, "delivered": 9, "hit_ratio": 0.9, "rate_per_s": 0.9}
    wanted |= {"latency_p50_s": 0.05, "latency_max_s": 0.09}
    assert {name: windows[0, "all"][name] for name in wanted} == pytest.approx(wanted)
    counts = [(windows[at, "dear"]["due"], windows[at, "dear"]["delivered"]) for at in (0, 10)]
    assert counts == [(5, 2), (10, 0)]
    kept = list(lines_kept(followed.out))
    assert len(kept) == len(followed.made) + 3 + 2
    assert [one["damaged"] for one in kept if one["damaged"]] == ["no JSON"]


def test_late_and_repeated_deliveries(session: Any, followed: Followed, tmp_path: Path) -> None:
    got, out = followed.got, tmp_path / "out"
    shutil.copytree(followed.out, out)
    late = [delivery(followed.events[3], "all", 30.0), followed.made[5]]
    write_lines(got, "all", 2, [*late, delivery(event(99, BEGIN + 500), "all", 0.1)])
    following.follow_stream(session, followed.settings, LocalPlace(out))
    assert windows_in(out, BEGIN)[0, "all"]["delivered"] == 10
    assert windows_in(out, BEGIN)[500, "all"]["delivered"] == 1
    write_lines(got, "all", 3, [delivery(event(7_000, BEGIN + 9), "all", 491.0)])
    following.follow_stream(session, followed.settings, LocalPlace(out))
    assert windows_in(out, BEGIN)[0, "all"]["delivered"] == 10  # beyond the watermark
    assert "0" * 12 + "1b58" in {one["id"] for one in lines_kept(out)}


@pytest.mark.parametrize(
    "given_up",
    [
        ("windows/batch=1",),
        pytest.param(("deliveries/batch=0", "windows/batch=1"), marks=pytest.mark.campaign),
    ],
)
def test_counts_are_exact_though_batches_are_given_up_half_way(
    session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given_up: tuple[str, ...]
) -> None:
    from pyspark.sql.readwriter import DataFrameWriter

    got, out = tmp_path / "got", tmp_path / "out"
    subscribe(got, "a", "price >= 0")
    made = [delivery(event(n, BEGIN + n / 10), "a", 0.2) for n in range(200)]
    for number in range(4):  # files of five seconds, with some again as after it was killed
        some = made[50 * number : 50 * number + 50]
        write_lines(got, "a", number, some + some[:number])
    left = [*given_up]
    whole = DataFrameWriter.parquet

    def broken(writer: Any, folder: str) -> None:
        whole(writer, folder)
        if left and folder.endswith(left[0]):
            left.pop(0)
            (Path(folder.removeprefix("file://")) / "_SUCCESS").unlink()
            raise ConnectionAbortedError

    monkeypatch.setattr(DataFrameWriter, "parquet", broken)
    settings = follow(got, windows=due.WindowSettings(window_s=10, late_s=600), files_a_batch=2)
    for _ in given_up:
        with pytest.raises(JobError, match="following the stream"):
            following.follow_stream(session, settings, LocalPlace(out))
    following.follow_stream(session, settings, LocalPlace(out))
    assert left == []
    kept = [one["id"] for one in lines_kept(out)]
    assert (len(set(kept)), len(kept)) == (200, 200 + 0 + 1 + 2 + 3)
    windows = windows_in(out, BEGIN)
    assert {at: row["delivered"] for at, row in windows.items()} == {(0, "a"): 100, (10, "a"): 100}
    assert all(row["due"] is None and row["hit_ratio"] is None for row in windows.values())
    other = spark_processes.run_spark_here(
        "stream", str(got), "--out", str(out), "--window", "30", "--once"
    )
    assert other.returncode == 2
    assert "was begun with window_s 10, not 30; expected the same to go on" in other.stderr


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        ("{", "is not the description of a subscription"),
        ('{"subscriber": "a"}', "has no expression, expected the description of a subscription"),
        (json.dumps(WRONG), "has an impossible expression or schema"),
    ],
)
def test_unreadable_subscribers_are_refused(tmp_path: Path, told: str, sentence: str) -> None:
    (tmp_path / "a").mkdir()
    nobody = "has no subscribers, expected folders with subscription"
    with pytest.raises(ResultsError, match=nobody):
        due.subscribers_of(LocalPlace(tmp_path))
    (tmp_path / "a" / "subscription.json").write_text(told)
    with pytest.raises(ResultsError, match=sentence):
        due.subscribers_of(LocalPlace(tmp_path))


def test_other_things_and_names_of_patterns_are_refused(session: Any, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine").write_text("1")
    with pytest.raises(ResultsError, match=r"holds files \(mine\), expected a new folder"):
        following.was_begun(LocalPlace(tmp_path / "other"), {"window_s": 1})
    subscribe(tmp_path / "got [1]", "a", "price > 1")
    with pytest.raises(ResultsError, match="expected a name without any of"):
        following.follow_stream(session, follow(tmp_path / "got [1]"), LocalPlace(tmp_path / "out"))
    assert not list(tmp_path.rglob("stream.json"))


@pytest.mark.campaign
@spark_processes.needs_spark
def test_the_end_of_java_is_reported_in_a_sentence(tmp_path: Path) -> None:
    got, published, out = (tmp_path / name for name in ("got", "published", "out"))
    subscribe(got, "a", "price >= 0")
    events = [event(n, BEGIN + n) for n in range(9)]
    write_lines(published, "record", 1, events)
    write_lines(got, "a", 1, [delivery(one, "a", 0.1) for one in events])
    folders = ("stream", str(got), "--published", str(published), "--out", str(out))

    def end_java(process: subprocess.Popen[str]) -> None:
        # What is due is found by Python, whose tasks send Java counts.
        spark_processes.wait_in(process, lambda: any(out.glob("windows/*/_SUCCESS")))
        (java,) = started_by(process.pid, "pyspark-shell")
        java.kill()

    done = spark_processes.run_spark_meanwhile(
        end_java, spark_processes.HUNG_S, *folders, "--every", "0.1", "--memory", "1g"
    )
    assert done.returncode == 2
    (sentence,) = spark_processes.sentences(done.stderr)
    assert sentence.removeprefix("gossamer: following the stream: ") in (
        "the cluster ended the session, or is gone",
        "a worker was lost while it was at work",
    )


@spark_processes.needs_spark
def test_nothing_to_follow_or_another_stream_is_refused_before_spark_starts(tmp_path: Path) -> None:
    got, out = tmp_path / "got", tmp_path / "out"
    # Nobody could start Spark at this address.
    options = ["--window", "7", "--master", "spark://127.0.0.1:1"]

    def refusal() -> str:
        done = CliRunner().invoke(app, ["stream", str(got), "--out", str(out), *options])
        assert isinstance(done.exception, ResultsError)
        return str(done.exception)

    assert "holds nothing to follow, expected files of a subscriber" in refusal()
    assert list(tmp_path.iterdir()) == []
    (got / "a").mkdir(parents=True)
    (got / "a" / "1.jsonl").write_text("{}\n")
    out.mkdir()
    (out / "stream.json").write_text(json.dumps({"deliveries": str(got), "published": None}))
    assert "was begun with window_s None, not 7; expected the same" in refusal()


@pytest.mark.campaign
@spark_processes.needs_spark
def test_an_interrupted_command_says_how_to_go_on(tmp_path: Path) -> None:
    got, out, scratch = (tmp_path / name for name in ("got", "out", "scratch"))
    scratch.mkdir()
    subscribe(got, "a", "price >= 0")
    write_lines(got, "a", 1, [delivery(event(1, BEGIN), "a", 0.2)])
    command = ("stream", str(got), "--out", str(out), "--every", "0.1", "--memory", "1g")

    def interrupt(process: subprocess.Popen[str]) -> None:
        spark_processes.wait_in(process, lambda: any(out.glob("windows/batch=*/_SUCCESS")))
        process.send_signal(signal.SIGINT)

    done = spark_processes.run_spark_meanwhile(interrupt, 60.0, *command, TMPDIR=str(scratch))
    sentence = f"gossamer: ended; the same command goes on in {out}"
    assert (done.returncode, spark_processes.sentences(done.stderr)) == (130, [sentence])
    assert list(scratch.iterdir()) == []
    assert not list(tmp_path.rglob("*.lock"))
    assert windows_in(out, BEGIN)[0, "a"]["delivered"] == 1


@pytest.mark.campaign
def test_a_server_of_spark_connect_follows_and_goes_on(server: str, tmp_path: Path) -> None:
    got, all_of_them, out = (tmp_path / name for name in ("got", "published", "out"))
    subscribe(got, "dear", "price >= 500")
    events = [event(n, BEGIN + n, 100.0 * n) for n in range(10)]
    command = ("stream", str(got), "--published", str(all_of_them), "--out", str(out), "--once")
    for number, (first, end) in enumerate(((0, 7), (7, 10)), start=1):
        write_lines(all_of_them, "record", number, events[first:end])
        dear = [one for one in events[first:end] if one["values"]["price"] >= 500]
        write_lines(got, "dear", number, [delivery(one, "dear", 0.5) for one in dear])
        spark_processes.run_spark_well(*command, "--window", "10", "--master", server)
    assert read_lineage(LocalPlace(out))["command"]["name"] == "gossamer spark stream"
    (window,) = windows_in(out, BEGIN).values()
    assert (window["due"], window["delivered"], window["hit_ratio"]) == (5, 5, 1.0)
    assert len(list(lines_kept(out))) == 5
