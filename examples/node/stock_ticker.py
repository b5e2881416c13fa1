"""A stock ticker: feeds publish quotes of a random walk, screens show those that match.

    python examples/node/stock_ticker.py feed demo/peer1 IBM HPQ --start 80
    python examples/node/stock_ticker.py screen demo/peer2 'symbol == "IBM" and price > 81'

A screen has a name, so that it misses nothing while it is away. The schema is the cluster's default
one: symbol, price, volume.
"""

from __future__ import annotations

import argparse
import random
import time

from gossamer.client import connect


def feed(folder: str, symbols: list[str], start: float, count: int, pause_s: float) -> None:
    """Publish ``count`` quotes of each symbol; say what was not acknowledged."""
    prices = dict.fromkeys(symbols, start)
    draws = random.Random(start)
    with connect(folder) as node:
        for _ in range(count):
            for symbol in symbols:
                prices[symbol] = round(max(0.01, prices[symbol] * draws.uniform(0.98, 1.02)), 2)
            quotes = [
                {"symbol": symbol, "price": price, "volume": draws.randrange(100, 10_000)}
                for symbol, price in prices.items()
            ]
            for quote, outcome in zip(quotes, node.publish_each(quotes), strict=True):
                if outcome.fate != "acknowledged":
                    print(f"{quote['symbol']} {quote['price']}: {outcome.fate}")
            time.sleep(pause_s)


def screen(folder: str, wanted: str, name: str, count: int | None) -> None:
    """Show quotes as they come, with how each differs from the one before."""
    before: dict[str, float] = {}
    with connect(folder) as node, node.subscribe(wanted, name=name) as quotes:
        print("watching", flush=True)
        for shown, quote in enumerate(quotes, 1):
            symbol, price = quote.values["symbol"], float(quote.values["price"])
            change = price - before.get(symbol, price)
            print(f"{symbol:<6}{price:>10.2f}{change:>+8.2f}", flush=True)
            before[symbol] = price
            quotes.acknowledge(quote)
            if shown == count:
                return


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parts = parser.add_subparsers(dest="part", required=True)
    one = parts.add_parser("feed", help="publish quotes")
    one.add_argument("folder")
    one.add_argument("symbols", nargs="+")
    one.add_argument("--start", type=float, default=80.0)
    one.add_argument("--count", type=int, default=60)
    one.add_argument("--pause", type=float, default=1.0)
    one = parts.add_parser("screen", help="show quotes")
    one.add_argument("folder")
    one.add_argument("wanted")
    one.add_argument("--name", default="screen")
    one.add_argument("--count", type=int)
    given = parser.parse_args()
    if given.part == "feed":
        feed(given.folder, given.symbols, given.start, given.count, given.pause)
    else:
        screen(given.folder, given.wanted, given.name, given.count)


if __name__ == "__main__":
    main()
