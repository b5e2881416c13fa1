"""The objects of a stack of plain protocols: one a node and part, samplers below them, timers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import MethodType
from typing import Any

from gossamer.sim.custom.conditions import Conditions
from gossamer.sim.custom.language.context import TICKS_A_SECOND
from gossamer.sim.custom.language.declarations import Declarations, settings_with
from gossamer.sim.custom.library import View
from gossamer.sim.custom.node import Node, first_half
from gossamer.sim.custom.plain_entries import Fires, PlainSampler, timer_handler
from gossamer.sim.custom.protocol import Part, parts_of, seed_of


class NodeClass:
    """The class of the nodes of a run: its settings are those of the run, all else is the class's.

    Initialisers, controls, observers and measures have it as ``cls``.
    """

    def __init__(self, owner: type, settings: Mapping[str, Any]) -> None:
        self.__dict__.update(settings, _owner=owner, _settings=frozenset(settings))

    def __getattr__(self, name: str) -> Any:
        owner = self.__dict__["_owner"]
        found = inspect.getattr_static(owner, name, None)
        if isinstance(found, classmethod):
            return MethodType(found.__func__, self)
        return getattr(owner, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__dict__["_settings"]:
            owner = self.__dict__["_owner"].__name__
            raise AttributeError(f"{owner}.{name} is a setting, which the scenario sets")
        setattr(self.__dict__["_owner"], name, value)


class Stack:
    """What a stack of plain protocols consists of; its ``host`` is the driver.

    Attributes:
        parts: those below before those above them.
        objects: by path of a part, its nodes.
        samplers: by path.
        fires: timers, in the order of parts.
    """

    def __init__(
        self, declared: Declarations, settings: Mapping[str, Any], conditions: Conditions, host: Any
    ) -> None:
        self._host = host
        self.parts = list(parts_of(declared))
        self._settings = {
            part.path: settings_with(part.declared, part.settings, f"{part.path[1:]}.")
            for part in self.parts
            if part.sampler is None and part.path
        }
        self._settings[""] = dict(settings)
        self.samplers: dict[str, PlainSampler] = {}
        self.objects: dict[str, list[Any]] = {}
        for part in self.parts:
            if part.sampler is not None:
                above = self._settings[part.path.rpartition(".")[0]]
                seed = seed_of(conditions.seed, part.path)
                self.samplers[part.path] = PlainSampler(part, conditions.nodes, above, seed)
            else:
                self.objects[part.path] = []
        self._add_nodes(conditions)
        self.fires = list(self._timers(conditions))

    def class_of(self, declared: Declarations) -> NodeClass:
        """The class of the nodes of a part, with its settings."""
        (path, *_) = (part.path for part in self.parts if part.declared is declared)
        return NodeClass(declared.owner, self._settings[path])

    def grow(self, conditions: Conditions) -> None:
        """Have more nodes; of those that there are nothing changes but how many they know of."""
        for sampler in self.samplers.values():
            sampler.grow(conditions.nodes)
        for objects in self.objects.values():
            for node in objects:
                node.nodes = conditions.nodes
        self._add_nodes(conditions)
        self._renew_views()

    def restore(self, objects: Mapping[str, list[Any]]) -> None:
        """Have nodes that were kept; samplers are restored by themselves."""
        for path, kept in objects.items():
            self.objects[path][:] = kept
            for node in kept:
                node._host = self._host
        self._renew_views()

    def _add_nodes(self, conditions: Conditions) -> None:
        """Make the objects of all rows that there are none of yet."""
        first = len(self.objects[""])
        for part in self.parts:
            if part.sampler is None:
                self.objects[part.path] += self._make_nodes(part, conditions, first)
        for path, objects in self.objects.items():
            above, _, name = path.rpartition(".")
            if path:
                for me in range(first, conditions.nodes):
                    self.objects[above][me].__dict__[name] = objects[me]
        for objects in self.objects.values():
            for node in objects[first:]:
                node.__init__()

    def _make_nodes(self, part: Part, conditions: Conditions, first: int) -> list[Node]:
        kind, seed = part.declared.owner, seed_of(conditions.seed, part.path)
        attributes = {name: conditions.attributes[name] for name in part.declared.attributes}
        made = []
        for me in range(first, conditions.nodes):
            node: Any = object.__new__(kind)
            node.me, node._host, node._draws = me, self._host, 0
            node._base = first_half(seed, me)
            node.nodes = conditions.nodes
            node.__dict__.update(self._settings[part.path])
            for name, values in attributes.items():
                node.__dict__[name] = values[me].item()
            self._view(part, node)
            made.append(node)
        return made

    def _view(self, part: Part, node: Any) -> None:
        for name in part.declared.samplers:
            sampler = self.samplers[f"{part.path}.{name}"]
            node.__dict__[name] = View(sampler.state, node.me, node.draw)

    def _renew_views(self) -> None:
        for part in self.parts:
            for node in self.objects.get(part.path, ()):
                self._view(part, node)

    def _timers(self, conditions: Conditions) -> Iterator[Fires]:
        round_s = conditions.round_ticks / TICKS_A_SECOND
        handler: Callable[[Any], None]
        for part in self.parts:
            if part.sampler is not None:
                (timer,) = part.declared.timers.values()
                handler = partial(self._host.sample, self.samplers[part.path])
                yield Fires(timer, round_s, self.objects[""], handler)
                continue
            for timer in part.declared.timers.values():
                if conditions.engine == "cycle":
                    timer.check_cycle()
                period = timer.period
                seconds = self._settings[part.path][period] if isinstance(period, str) else period
                if timer.rounds is not None:
                    seconds = float(seconds or 0) * round_s
                handler = timer_handler(part, timer.name)
                yield Fires(timer, float(seconds or 0), self.objects[part.path], handler)
