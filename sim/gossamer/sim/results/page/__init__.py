"""The page that shows a run: live while it goes on, or as a file that replays it.

- `page`: the page as one file, and what it shows of an overlay and of a course, small whatever the
  run
- `live`: the page of a run that goes on, served to this machine only
- `page.html`, `page.css`, `charts.js`, `overlay.js`, `page.js`: the page itself, put together by
  `page`; it needs no network

Commands may import from here. Begin with `page`.
"""
