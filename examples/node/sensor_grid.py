"""A sensor grid: sensors publish where they stand and what they measure; a guard watches an area.

    gossamer node init grid --peers 3 --port 7760 --schema examples/node/sensors.toml
    gossamer node run grid/peer1 grid/peer2 grid/peer3
    python examples/node/sensor_grid.py guard grid/peer1 --area 0 0 250 250 --above 60
    python examples/node/sensor_grid.py sensors grid/peer2 --side 10

What is wanted is an area and a threshold, so that only alarms of that area travel to the guard. It
says when a place is above the threshold for the first time, and when it is below it again.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator

from gossamer.client import connect

SIDE = 1000.0


def places(side: int) -> Iterator[tuple[float, float]]:
    """The middles of ``side`` times ``side`` squares."""
    for i in range(side):
        for j in range(side):
            yield SIDE * (i + 0.5) / side, SIDE * (j + 0.5) / side


def sensors(folder: str, side: int, rounds: int, seed: int) -> None:
    """Publish a temperature of each sensor a round; a fire breaks out at one of them."""
    draws = random.Random(seed)
    grid = list(places(side))
    fire = draws.choice(grid)
    with connect(folder) as node:
        for number in range(rounds):
            events = []
            for x, y in grid:
                burning = (x, y) == fire and rounds / 3 <= number < 2 * rounds / 3
                value = draws.gauss(90.0 if burning else 20.0, 2.0)
                events.append({"kind": "temperature", "x": x, "y": y, "value": round(value, 1)})
            lost = [one for one in node.publish_each(events) if one.fate != "acknowledged"]
            if lost:
                print(f"round {number}: {len(lost)} of {len(events)} not acknowledged")
    print(f"it burnt at {fire[0]:g} {fire[1]:g}")


def guard(folder: str, area: list[float], above: float, quiet_s: float) -> None:
    """Watch an area until nothing has come for a while; whoever is silent again is cool again."""
    left, top, right, bottom = area
    within = f"x >= {left} and x <= {right} and y >= {top} and y <= {bottom}"
    wanted = f'kind == "temperature" and value > {above} and {within}'
    burning: set[tuple[float, float]] = set()
    with connect(folder) as node, node.subscribe(wanted) as alarms:
        print("watching", flush=True)
        while True:
            try:
                alarm = alarms.receive(quiet_s if burning else 3600.0)
            except TimeoutError:
                for x, y in burning:
                    print(f"{x:g} {y:g} is below {above:g} again", flush=True)
                return
            place = float(alarm.values["x"]), float(alarm.values["y"])
            if place not in burning:
                burning.add(place)
                print(f"{place[0]:g} {place[1]:g} is at {alarm.values['value']}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parts = parser.add_subparsers(dest="part", required=True)
    one = parts.add_parser("sensors")
    one.add_argument("folder")
    one.add_argument("--side", type=int, default=10)
    one.add_argument("--rounds", type=int, default=30)
    one.add_argument("--seed", type=int, default=1)
    one = parts.add_parser("guard")
    one.add_argument("folder")
    one.add_argument("--area", type=float, nargs=4, default=[0.0, 0.0, SIDE, SIDE])
    one.add_argument("--above", type=float, default=60.0)
    one.add_argument("--quiet", type=float, default=10.0)
    given = parser.parse_args()
    if given.part == "sensors":
        sensors(given.folder, given.side, given.rounds, given.seed)
    else:
        guard(given.folder, given.area, given.above, given.quiet)


if __name__ == "__main__":
    main()
