"""What is expected of a table of a run that is read back.

Results of older versions may lack a column: what hangs on it is then left out and said. A column
that nothing can do without is refused where it is missing, and so is one of another type; whole
numbers of any width will do, and may be where a real number is expected.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

WHOLE: Final = "whole numbers"
REAL: Final = "numbers"
TEXT: Final = "texts"


@attrs.frozen
class Expected:
    """A table of a run.

    Attributes:
        needed: columns that have to be there, and what they hold.
        welcome: columns that may be missing.
    """

    needed: Mapping[str, str]
    welcome: Mapping[str, str] = attrs.field(factory=dict)
