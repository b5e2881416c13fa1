"""The page that a peer serves to browsers: the overlay as this peer sees it, live and read-only.

- `snapshot`: what the page shows, filled in by the runtime
- `server`: HTTP/1.1 over trio, for this page, `/state.json`, `/events`, `/metrics`, `/healthz`
- `index.html`, `page.css`, `page.js`, `layout.js`: the page itself; it needs no other network
"""
