"""A dashboard: a web page of the latest quotes that follows them, by FastAPI.

    pip install '.[dashboard]'
    python examples/node/dashboard.py demo/peer1 --wanted 'price > 0' --port 8000

then open http://127.0.0.1:8000/. `GET /quotes` is the latest quote of each symbol as JSON, `GET
/stream` every quote as it comes (server-sent events), and `POST /quotes` publishes one. A browser
that reads too slowly misses quotes, and holds up nobody else.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import HTMLResponse, StreamingResponse

from gossamer.client import NodeError, ReceivedEvent, open_client

WAITING = 256
PAGE = """<!DOCTYPE html><title>Quotes</title><meta charset="utf-8">
<h1>Quotes</h1><table><thead><tr><th>symbol<th>price<th>at</thead><tbody id="rows"></tbody></table>
<script>
const rows = new Map();
function show(quote) {
  if (!rows.has(quote.symbol)) {
    const row = document.getElementById("rows").insertRow();
    rows.set(quote.symbol, [row.insertCell(), row.insertCell(), row.insertCell()]);
  }
  const words = [quote.symbol, quote.price, new Date(quote.at * 1000).toLocaleTimeString()];
  rows.get(quote.symbol).forEach((cell, i) => { cell.textContent = words[i]; });
}
fetch("quotes").then((answer) => answer.json()).then((quotes) => quotes.forEach(show));
new EventSource("stream").onmessage = (event) => show(JSON.parse(event.data));
</script>"""


def plain(quote: ReceivedEvent) -> dict[str, Any]:
    """A quote as JSON has it."""
    values = {name: float(one) if name == "price" else one for name, one in quote.values.items()}
    return {"at": quote.published_at, **values}


def make_app(folder: str, wanted: str) -> FastAPI:
    """The dashboard of the node in ``folder``."""
    latest: dict[str, dict[str, Any]] = {}
    watchers: set[asyncio.Queue[dict[str, Any]]] = set()

    async def follow(quotes: Any) -> None:
        async for quote in quotes:
            found = plain(quote)
            latest[found["symbol"]] = found
            for watcher in watchers:
                if not watcher.full():
                    watcher.put_nowait(found)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with open_client(folder) as node, node.subscribe(wanted) as quotes:
            app.state.node = node
            following = asyncio.create_task(follow(quotes))
            yield
            following.cancel()

    app = FastAPI(title="Quotes", lifespan=lifespan)

    @app.get("/", response_class=HTMLResponse)
    async def page() -> str:
        return PAGE

    @app.get("/quotes")
    async def quotes() -> list[dict[str, Any]]:
        return [latest[symbol] for symbol in sorted(latest)]

    @app.post("/quotes")
    async def publish(request: Request) -> dict[str, str]:
        try:
            return {"id": await app.state.node.publish(await request.json())}
        except (NodeError, ValueError) as error:
            raise HTTPException(422, str(error)) from None

    @app.get("/stream")
    async def stream() -> StreamingResponse:
        async def lines() -> AsyncIterator[str]:
            watcher: asyncio.Queue[dict[str, Any]] = asyncio.Queue(WAITING)
            watchers.add(watcher)
            try:
                while True:
                    yield f"data: {json.dumps(await watcher.get())}\n\n"
            finally:
                watchers.discard(watcher)

        return StreamingResponse(lines(), media_type="text/event-stream")

    return app


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder")
    parser.add_argument("--wanted", default="price > 0")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    given = parser.parse_args()
    uvicorn.run(make_app(given.folder, given.wanted), host=given.host, port=given.port)


if __name__ == "__main__":
    main()
