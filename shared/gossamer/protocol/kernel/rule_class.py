"""Classes whose rules and numbers other rules may read by name, such as a message's ``send``."""

from __future__ import annotations

from collections.abc import Mapping

from gossamer.protocol.kernel.rules import Rule


class RuleClass(type):
    """The class of such classes; compiled code takes what they hold when it is made."""

    def compiled_attributes(cls) -> Mapping[str, Rule | int]:
        """The rules and whole numbers of the class itself, by name, in order of their names."""
        held = {name: vars(cls)[name] for name in sorted(vars(cls)) if name[0] != "_"}
        return {
            name: value
            for name, value in held.items()
            if isinstance(value, Rule) or type(value) is int
        }
