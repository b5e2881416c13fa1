"""The examples of examples/node/, and its applications, do what they say, over real peers."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

from support.checkout import ROOT
from support.node_processes import PATIENCE_S, Shell, end, free_ports, say, wait_for_line
from support.pasted_blocks import shell_blocks, with_programs
from support.spark_processes import wait_for

EXAMPLES = ROOT / "examples/node"


FATES = ["IBM 79.5 acknowledged", "IBM 81.0 acknowledged", "IBM -3.0 refused"]


def test_the_examples_print_the_quotes_that_match(shell: Shell) -> None:
    schema = str(EXAMPLES / "quotes.toml")
    shell.ok("node", "init", "quotes", "--schema", schema, "--preset", "local")
    assert run(shell, "embedded_peer.py", "quotes") == "IBM 81.5\n"
    with shell.node("quotes"):
        assert run(shell, "watch_and_publish.py", "quotes") == "IBM 81\nIBM 82.25\n"
        assert run(shell, "ticker.py", "quotes").splitlines() == [*FATES, "dear: 81"]
        found = run(shell, "aio_watcher.py", "quotes").splitlines()
        assert sorted(found) == ["cheap: IBM 12", "dear: IBM 81.5"]


@pytest.mark.campaign
@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_the_commands_of_the_readme_run_as_they_are_pasted(tmp_path: Path) -> None:
    """All at once, so that nothing waits for what a person would have read meanwhile."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    shell = with_programs(Shell(tmp_path))
    blocks = shell_blocks((EXAMPLES / "README.md").read_text(encoding="utf-8"))
    (block,) = ["\n".join(one) for one in blocks if one[0].startswith("gossamer node init quotes")]
    process = shell.start(command=["bash", "-e"], stdin=subprocess.PIPE)
    last = "trap 'kill $(jobs -p) || true' EXIT\n"  # where a command fails, the node is to end too
    out, err = process.communicate(f"{last}{block}\nwait\n", timeout=2 * PATIENCE_S)
    assert process.returncode == 0, err
    *fates, first, second = out.splitlines()[-7:]
    assert fates == ["IBM 82.25", *FATES, "dear: 81"]
    assert sorted([first, second]) == ["cheap: IBM 12", "dear: IBM 81.5"]
    assert not (tmp_path / "quotes").exists()


@contextmanager
def two_peers(shell: Shell, schema: str | None = None) -> Iterator[None]:
    more = [] if schema is None else ["--schema", str(EXAMPLES / schema)]
    shell.ok("node", "init", "demo", "--peers", "2", "--port", str(free_ports(2)), *more)
    with shell.node("demo/peer1"), shell.node("demo/peer2"):
        yield


def start(shell: Shell, name: str, *arguments: str, **options: Any) -> subprocess.Popen[str]:
    return shell.start(command=[sys.executable, "-u", str(EXAMPLES / name), *arguments], **options)


def run(shell: Shell, name: str, *arguments: str) -> str:
    code, out, err = end(start(shell, name, *arguments))
    assert code == 0, err
    return out


def test_a_screen_shows_the_quotes_of_a_feed(shell: Shell) -> None:
    with two_peers(shell):
        shown = ["screen", "demo/peer1", "price > 0", "--count", "4"]
        screen = start(shell, "stock_ticker.py", *shown)
        wait_for_line(screen, "watching", printed=True)
        feed = ["feed", "demo/peer2", "IBM", "HPQ", "--count", "2", "--pause", "0"]
        assert run(shell, "stock_ticker.py", *feed) == ""
        code, out, err = end(screen)
    assert code == 0, err
    assert sorted(line.split()[0] for line in out.splitlines()) == ["HPQ", "HPQ", "IBM", "IBM"]


def test_a_guard_sees_the_fire_and_its_end(shell: Shell) -> None:
    with two_peers(shell, "sensors.toml"):
        guard = start(shell, "sensor_grid.py", "guard", "demo/peer1", "--quiet", "0.5")
        wait_for_line(guard, "watching", printed=True)
        sensors = ["sensors", "demo/peer2", "--side", "4", "--rounds", "3"]
        (burnt,) = run(shell, "sensor_grid.py", *sensors).splitlines()
        code, out, err = end(guard)
    assert code == 0, err
    place = burnt.removeprefix("it burnt at ")
    alarm, over = out.splitlines()
    assert alarm.startswith(f"{place} is at ")
    assert over == f"{place} is below 60 again"


def test_a_chat_says_what_is_said_in_the_room_and_who_is_meant(shell: Shell) -> None:
    with two_peers(shell, "chat.toml"):
        pipes = {"stdin": subprocess.PIPE}
        ada = start(shell, "chat.py", "demo/peer1", "ada", "garden", **pipes)
        wait_for_line(ada, "ada is in garden", printed=True)
        bob = start(shell, "chat.py", "demo/peer2", "bob", "cellar", **pipes)
        wait_for_line(bob, "bob is in cellar", printed=True)
        say(bob, "nobody hears this\nis @ada there?\n")
        wait_for_line(ada, "bob in cellar: is @ada there?", printed=True)
        for one in (ada, bob):
            out, err = one.communicate("/quit\n", timeout=PATIENCE_S)
            assert one.returncode == 0, err
            assert "nobody hears this" not in out


def test_the_collector_keeps_what_was_logged_over_a_restart(shell: Shell) -> None:
    file = shell.folder / "errors.jsonl"
    with two_peers(shell, "logs.toml"):
        collect = ["collect", "demo/peer1", str(file), "--level", "ERROR"]
        collector = start(shell, "log_shipping.py", *collect)
        wait_for_line(collector, "collecting", printed=True)
        collector.kill()
        end(collector)
        assert run(shell, "log_shipping.py", "try", "demo/peer2") == "dropped: 0\n"
        run(shell, "log_shipping.py", *collect, "--count", "4")
    found = [json.loads(line) for line in file.read_text().splitlines()]
    expected = [f"order {number} cannot be paid" for number in (0, 25, 50, 75)]
    assert sorted(one["message"] for one in found) == expected


def test_a_cache_forgets_what_was_changed(shell: Shell) -> None:
    with two_peers(shell, "cache.toml"):
        out = run(shell, "cache_invalidation.py", "demo/peer1", "demo/peer2")
    first, second = out.splitlines()
    assert first == "100 lookups, 1 read of the database"
    assert second == "the cache has what was written"


def test_the_job_of_a_worker_that_is_stopped_goes_to_another_one(shell: Shell) -> None:
    """At another peer; a job whose command fails is reported after all attempts."""
    for name, text in (("one", "first"), ("two", "second"), ("three", "bad")):
        (shell.folder / name).write_text(f"{text}\n")
    command = 'read -r line; test "$line" != bad && echo "$line" | tr a-z A-Z'
    with two_peers(shell, "jobs.toml"):
        hangs = ("--", "sh", "-c", "touch taken; exec sleep 600")
        first = start(shell, "work_queue.py", "work", "demo/peer1", "upper", *hangs)
        wait_for_line(first, "waiting for jobs", printed=True)
        files = ("one", "two", "three", "--out", "done")
        submitter = start(shell, "work_queue.py", "submit", "demo/peer2", "upper", *files)
        wait_for((shell.folder / "taken").exists)
        does = ("--attempts", "2", "--", "sh", "-c", command)
        second = start(shell, "work_queue.py", "work", "demo/peer2", "upper", *does)
        wait_for_line(second, "waiting for jobs", printed=True)
        assert end(first, signal.SIGTERM)[0] == 130
        code, out, err = end(submitter)
        end(second, signal.SIGTERM)
    assert code == 1, err
    assert sorted(out.splitlines()) == ["one done", "three failed", "two done"]
    assert "three: exit code 1" in err
    kept = {file.name: file.read_text() for file in (shell.folder / "done").iterdir()}
    assert kept == {"one": "FIRST\n", "two": "SECOND\n"}


def test_the_service_runs_its_command_until_it_ends_well(shell: Shell) -> None:
    address = str(shell.folder / "notify.sock")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager, two_peers(shell):
        manager.bind(address)
        manager.settimeout(PATIENCE_S)
        # Fails once, then keeps what it is given.
        command = "test -e tried && cat >> kept && echo >> kept || { touch tried; exit 3; }"
        told = {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "200000"}
        arguments = ("demo/peer1", "price > 80", "--pause", "0.1", "--", "sh", "-c", command)
        service = start(shell, "on_event.py", *arguments, env=shell.environment | told)
        assert manager.recv(1000).startswith(b"READY=1")
        event = shell.published("demo/peer2", "symbol=IBM", "price=81", "volume=1")
        assert manager.recv(1000) == b"WATCHDOG=1"
        kept = shell.folder / "kept"
        deadline = time.monotonic() + PATIENCE_S
        while not kept.exists() and time.monotonic() < deadline:
            assert manager.recv(1000) == b"WATCHDOG=1"
        code, _, err = end(service, signal.SIGTERM)
    assert code == 0, err
    assert json.loads(kept.read_text())["id"] == event.strip()
    assert "attempt 1 ended with 3" in err


def test_the_unit_of_the_service_is_one() -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    command = ["systemd-analyze", "verify", "--user", str(EXAMPLES / "on-event.service")]
    done = subprocess.run(command, capture_output=True, text=True)
    said = [line for line in done.stderr.splitlines() if "on-event.service" in line]
    assert not [line for line in said if "Unknown" in line or "Invalid" in line], done.stderr


def test_the_notebook_runs_to_its_last_cell(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = json.loads((EXAMPLES / "quotes.ipynb").read_text(encoding="utf-8"))["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert all(not cell.get("outputs") for cell in cells), "what it printed is not kept"
    monkeypatch.setenv("MPLBACKEND", "agg")
    check = "assert [price for _, price in found] == [81.0, 80.5, 82.25, 83.0], found"
    with two_peers(shell):
        environment = shell.environment | {"GOSSAMER_FOLDER": "demo/peer1"}
        command = [sys.executable, "-c", "\n".join([*sources, check])]
        code, _, err = end(shell.start(command=command, env=environment))
    assert code == 0, err


def answer_of(url: str, posted: bytes | None = None) -> bytes:
    with urllib.request.urlopen(url, posted, PATIENCE_S) as answer:
        return bytes(answer.read())


def test_the_dashboard_shows_and_publishes_quotes(shell: Shell) -> None:
    pytest.importorskip("fastapi", reason="FastAPI is not installed (extra dashboard)")
    pytest.importorskip("uvicorn", reason="uvicorn is not installed (extra dashboard)")
    port = free_ports(1) + 20
    url, arguments = f"http://127.0.0.1:{port}", ("demo/peer1", "--port", str(port))
    with two_peers(shell):
        dashboard = start(shell, "dashboard.py", *arguments, stderr=subprocess.STDOUT)
        try:
            wait_for_line(dashboard, "Uvicorn running", printed=True)
            stream = urllib.request.urlopen(f"{url}/stream", timeout=PATIENCE_S)
            quote = json.dumps({"symbol": "IBM", "price": 81.5, "volume": 1}).encode()
            assert len(json.loads(answer_of(f"{url}/quotes", quote))["id"]) == 16
            with stream:
                line = stream.readline().decode()
            assert json.loads(line.removeprefix("data: "))["price"] == 81.5
            assert [one["symbol"] for one in json.loads(answer_of(f"{url}/quotes"))] == ["IBM"]
            assert b"EventSource" in answer_of(f"{url}/")
            with pytest.raises(urllib.error.HTTPError) as refused:
                answer_of(f"{url}/quotes", b'{"price": "dear"}')
            with refused.value:
                assert refused.value.code == 422
        finally:
            end(dashboard, signal.SIGTERM)


MQTT_BROKER = """
import asyncio, sys
from amqtt.broker import Broker

async def main():
    config = {
        "listeners": {"default": {"type": "tcp", "bind": f"127.0.0.1:{sys.argv[1]}"}},
        "plugins": {"amqtt.plugins.authentication.AnonymousAuthPlugin": {"allow_anonymous": True}},
    }
    broker = Broker(config)
    await broker.start()
    print("ready", flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


def test_the_bridge_carries_messages_both_ways(shell: Shell) -> None:
    mqtt = pytest.importorskip("paho.mqtt.client", reason="paho-mqtt is missing (extra mqtt)")
    pytest.importorskip("amqtt", reason="amqtt is not installed, which is the MQTT broker here")
    port = free_ports(1) + 21
    broker = shell.start(command=[sys.executable, "-c", MQTT_BROKER, str(port)])
    try:
        wait_for_line(broker, "ready", printed=True)
        with two_peers(shell):
            bridge = start(shell, "mqtt_bridge.py", "demo/peer1", f"127.0.0.1:{port}")
            wait_for_line(bridge, "connected to the MQTT broker", printed=True)
            come: Queue[tuple[str, Any]] = Queue()
            subscribed = threading.Event()
            other = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id="tester")
            other.on_message = lambda _c, _d, got: come.put((got.topic, json.loads(got.payload)))
            other.on_subscribe = lambda *_: subscribed.set()
            other.connect("127.0.0.1", port)
            other.subscribe("gossamer/out/#", 1)
            other.loop_start()
            assert subscribed.wait(PATIENCE_S)
            quote = {"symbol": "IBM/A", "price": 81.5, "volume": 1}
            other.publish("gossamer/in", "no event", 1)
            other.publish("gossamer/in", json.dumps(quote), 1)
            assert come.get(timeout=PATIENCE_S) == ("gossamer/out/IBM_A", quote)
            shell.published("demo/peer2", "symbol=HPQ", "price=20", "volume=2")
            other_quote = {"symbol": "HPQ", "price": 20, "volume": 2}
            assert come.get(timeout=PATIENCE_S) == ("gossamer/out/HPQ", other_quote)
            other.disconnect()
            other.loop_stop()
            code, _, err = end(bridge, signal.SIGINT)
            assert "dropped b'no event'" in err
            assert code == 130
    finally:
        broker.kill()
        end(broker)
