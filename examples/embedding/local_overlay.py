"""Three brokers in memory: a publication finds whom it concerns, and waits where a link is down."""

from gossamer.brokers import LocalOverlay


def main() -> None:
    """Publish quotes at one end, receive some of them at the other."""
    overlay = LocalOverlay([("A", "B"), ("B", "C")])
    exchange = overlay.attach("exchange", "A")
    trader = overlay.attach("trader", "C")
    exchange.advertise("present(symbol) and price > 0")
    overlay.settle()
    trader.subscribe('symbol == "IBM" and price < 120.5', "cheap")
    overlay.settle()
    for price in (130.0, 81.5):
        exchange.publish({"symbol": "IBM", "price": price})
    overlay.settle()
    print([(one.labels, one.values["price"]) for one in trader.take()])

    overlay.break_link("B", "C")
    exchange.publish({"symbol": "IBM", "price": 99.0})
    overlay.settle()
    print("while the link is down:", len(trader.take()))
    overlay.restore_link("B", "C")
    overlay.settle()
    print("afterwards:", [one.values["price"] for one in trader.take()])


if __name__ == "__main__":
    main()
