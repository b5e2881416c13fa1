"""The messages of samplers in docs/samplers.md, as they are declared.

``python -m`` reads the page and prints it with them written anew.
"""

from __future__ import annotations

import re
import sys

from gossamer.protocol.peer.record_table.page import records_of
from gossamer.protocol.peer.sampling.sampler import FAMILY
from gossamer.protocol.peer.settings.config import SAMPLERS


def with_records(page: str) -> str:
    """A page with the messages of every sampler where its comments ask for them.

    Raises:
        ValueError: there is no such place for a sampler.
    """
    for name, sampler in zip(SAMPLERS, FAMILY, strict=True):
        begin, end = f"<!-- records of {name} -->", "<!-- end -->"
        found = re.search(f"{re.escape(begin)}\n(.*?){re.escape(end)}", page, re.DOTALL)
        if found is None:
            raise ValueError(f"the page has no {begin} with an {end}, expected one a sampler")
        page = f"{page[: found.start(1)]}\n{records_of(sampler.records)}\n{page[found.end(1) :]}"
    return page


if __name__ == "__main__":
    sys.stdout.write(with_records(sys.stdin.read()))
