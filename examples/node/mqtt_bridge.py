"""A bridge to and from MQTT: what is published on one side and wanted on the other crosses it.

    pip install '.[mqtt]'
    python examples/node/mqtt_bridge.py demo/peer1 127.0.0.1:1883 --wanted 'price > 80'

Messages of the topic `gossamer/in`, each a JSON object of an event's values, are published in the
cluster; events that match `--wanted` go out to `gossamer/out/SYMBOL`. Both ways nothing is lost,
and something may come twice: a message is acknowledged to the MQTT broker once other peers hold the
event (QoS 1, a session that the broker keeps), and an event to the node once the broker has it.
One bridge has one name, on both sides; what is no event is named and dropped. What a bridge of its
own carried in, it carries out as well where it matches.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from paho.mqtt import client as mqtt
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode

from gossamer.client import BlockingClient, NodeError, connect

IN, OUT = "gossamer/in", "gossamer/out"
QOS = 1
# What MQTT gives a meaning to in topics.
SPECIAL = str.maketrans({"/": "_", "+": "_", "#": "_"})


def values_of(payload: bytes) -> dict[str, Any]:
    """The values of an event in a message.

    Raises:
        ValueError: it is no JSON object.
    """
    found = json.loads(payload)
    if not isinstance(found, dict):
        raise ValueError(f"{str(found)[:40]!r}, expected an object of attributes and values")
    return found


def make_mqtt(name: str, node: BlockingClient) -> mqtt.Client:
    """A client of the MQTT broker that publishes in the cluster what comes."""
    made = mqtt.Client(
        CallbackAPIVersion.VERSION2, client_id=name, clean_session=False, manual_ack=True
    )

    def on_connect(
        client: mqtt.Client, _data: object, _flags: object, code: ReasonCode, _: Properties | None
    ) -> None:
        if code.is_failure:
            print(f"the MQTT broker refuses: {code}", file=sys.stderr)
            return
        client.subscribe(IN, QOS)
        print(f"connected to the MQTT broker, and to peer {node.peer}", flush=True)

    def on_message(client: mqtt.Client, _data: object, message: mqtt.MQTTMessage) -> None:
        try:
            node.publish(values_of(message.payload))
        except (NodeError, ValueError) as error:
            # It would be refused again, or its fate is unknown: coming again would not help it.
            print(f"dropped {message.payload[:80]!r}: {error}", file=sys.stderr, flush=True)
        client.ack(message.mid, message.qos)

    made.on_connect = on_connect
    made.on_message = on_message
    return made


def run(folder: str, host: str, port: int, wanted: str, name: str) -> None:
    """Carry messages and events across, until interrupted; both ends are found again."""
    with connect(folder) as node:
        other = make_mqtt(name, node)
        other.connect(host, port)
        other.loop_start()
        try:
            with node.subscribe(wanted, name=name) as events:
                for event in events:
                    values = {key: number(one) for key, one in event.values.items()}
                    topic = str(values.get("symbol", "event")).translate(SPECIAL)
                    sent = other.publish(f"{OUT}/{topic}", json.dumps(values), QOS)
                    sent.wait_for_publish()
                    events.acknowledge(event)
        finally:
            other.disconnect()
            other.loop_stop()


def number(value: Any) -> Any:
    """A value as JSON has it: exact fractions are floats, dates are texts."""
    return value if isinstance(value, str | int | bool) else _shown(value)


def _shown(value: Any) -> Any:
    return value.isoformat() if hasattr(value, "isoformat") else float(value)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder")
    parser.add_argument("broker", help="HOST:PORT of the MQTT broker")
    parser.add_argument("--wanted", default="price > 0")
    parser.add_argument("--name", default="mqtt-bridge")
    given = parser.parse_args()
    host, _, port = given.broker.rpartition(":")
    try:
        run(given.folder, host or "127.0.0.1", int(port), given.wanted, given.name)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
