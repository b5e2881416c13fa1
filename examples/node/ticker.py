"""A script without an event loop: it publishes quotes and says what became of each."""

from __future__ import annotations

import sys

from gossamer.client import connect

QUOTES = [("IBM", 79.5), ("IBM", 81.0), ("IBM", -3.0)]


def main(folder: str) -> None:
    with connect(folder) as node:
        dear = node.subscribe("price > 80")
        events = [{"symbol": name, "price": price, "day": "2026-11-20"} for name, price in QUOTES]
        for (symbol, price), outcome in zip(QUOTES, node.publish_each(events), strict=True):
            print(symbol, price, outcome.fate)
        print("dear:", next(dear).values["price"])


if __name__ == "__main__":
    main(sys.argv[1])
