"""Protocols of rules: a class of columns and handlers, for a million nodes.

A `Protocol` is a population: its columns are arrays with a row a node, and its handlers are rules
(`gossamer.protocol.kernel.rules`) that take one record as node ``me``. In a handler ``self`` is the
state, a struct of the columns, the settings and the layers, and nothing else: helpers are rules of
the module. Handlers write row ``me`` only; whatever another node is to know is sent to it.

    on_start(self, me, net, contact)          when the node comes up; contact is -1 or a row
    on_leave(self, me, net)                   when it is about to leave; not when it crashes
    on_<timer>(self, me, net)
    on_<message>(self, me, net, sender, *fields)
    on_unreachable(self, me, net, to, kind)   a message came back, as over TCP
"""

from __future__ import annotations

import functools
import inspect
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from gossamer.protocol.kernel.draws import mix
from gossamer.protocol.kernel.errors import StructError
from gossamer.protocol.kernel.rules import Rule
from gossamer.protocol.kernel.struct import Struct
from gossamer.protocol.peer.record_table.records import SAMPLE_TIMER
from gossamer.protocol.peer.sampling.sampler import FAMILY, SamplerState, make_sampler
from gossamer.protocol.peer.settings.config import SAMPLERS
from gossamer.sim.custom.language.declarations import (
    Declarations,
    ProtocolType,
    check_annotations,
    check_declared,
    declarations_of,
    settings_with,
)
from gossamer.sim.custom.language.members import Column, Sampler, Timer, is_width, size_from
from gossamer.sim.custom.language.messages import MessageClass
from gossamer.sim.custom.language.places import declaration_error, in_another_order, place_of

_DTYPES: Mapping[type, Any] = {bool: np.bool_, int: np.int64, float: np.float64}
# What every state has of its own, so that nothing else may be called so.
_TAKEN = ("nodes", "seed", "draws", "life", "rates", "refused", "handles")


class Protocol(metaclass=ProtocolType):
    """Base class of protocols that are written as rules; see the module.

    A call of a class, such as ``Rumor(fanout=2)``, is the protocol with these settings.
    """

    if TYPE_CHECKING:  # that classes take their settings is not seen in their type

        def __init__(self, **settings: Any) -> None: ...

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls._declarations = declarations_of(cls, Protocol)
        check_declared(cls.declared, Protocol)
        check_annotations(cls.declared)
        _check(cls.declared)


@functools.cache
def handler_rule(function: Callable[..., Any]) -> Rule:
    """The rule of a handler, the same whenever it is asked for."""
    return Rule(function, function, inline=True)


@attrs.frozen
class Part:
    """One protocol of a stack.

    Attributes:
        path: how its state is reached from that of the stack: "" or ".ring.newscast".
        declared: by the protocol; of a sampler its timer and nothing else.
        sampler: as declared; None of a protocol.
        settings: of a layer, those that differ from its defaults.
    """

    path: str
    declared: Declarations
    sampler: Sampler | None = None
    settings: Mapping[str, Any] = attrs.field(factory=dict)

    @property
    def sampler_names(self) -> dict[int, str]:
        """The names of a sampler's messages, by kind."""
        if self.sampler is None:
            return {}
        name = self.sampler.name
        records = FAMILY[SAMPLERS.index(name)].records
        words = {kind.number: kind.name.lower().removeprefix("sample_") for kind in records}
        return {kind: f"{name}_{word}" for kind, word in words.items()}

    def state_in(self, state: object) -> Any:
        """The state of this part in that of the stack."""
        for name in self.path.split(".")[1:]:
            state = getattr(state, name)
        return state


def parts_of(
    declared: Declarations, path: str = "", settings: Mapping[str, Any] | None = None
) -> Iterator[Part]:
    """The protocols of a stack, those below before those above them."""
    for name, one in declared.layers.items():
        yield from parts_of(one.protocol.declared, f"{path}.{name}", one.settings)
    for name, sampler in declared.samplers.items():
        timer = Timer(rounds=1)
        timer.name, timer.kind = "sample", SAMPLE_TIMER
        inside = Declarations(SamplerState, declared.place, timers={"sample": timer})
        yield Part(f"{path}.{name}", inside, sampler)
    yield Part(path, declared, None, settings or {})


def seed_of(seed: int, path: str) -> int:
    """The seed of the draws of one part of a stack."""
    return int(mix.interpreted(seed, zlib.crc32(path.encode()), 0)) if path else seed


def sampler_state(one: Sampler, nodes: int, settings: Mapping[str, Any], seed: int) -> SamplerState:
    """The state of a sampler as it is declared, of nodes that know nobody yet."""
    size = size_from(one.view_size, settings)
    shuffle = one.shuffle_length or max(1, size // 2)
    return make_sampler(nodes, one.name, size, shuffle, 0, seed)


def make_state(
    declared: Declarations,
    nodes: int,
    settings: Mapping[str, Any],
    seed: int,
    attributes: Mapping[str, np.ndarray[Any, Any]],
    path: str = "",
    **top: Any,
) -> Struct:
    """The state of a stack of ``nodes`` nodes; ``top`` are fields that only its top has."""
    fields: dict[str, Any] = {
        "nodes": nodes,
        "seed": seed_of(seed, path),
        "draws": np.zeros(nodes, np.int64),
        **settings,
        **{
            name: np.full(
                (nodes,) if one.width is None else (nodes, size_from(one.width, settings)),
                one.initial,
                _DTYPES[one.kind],
            )
            for name, one in declared.columns.items()
        },
        **{
            name: attributes[name].astype(_DTYPES[one.kind])
            for name, one in declared.attributes.items()
        },
        **top,
    }
    for name, one in declared.layers.items():
        below = one.protocol.declared
        inside = settings_with(below, one.settings, f"{name}.")
        fields[name] = make_state(below, nodes, inside, seed, attributes, f"{path}.{name}")
    for name, sampler in declared.samplers.items():
        fields[name] = sampler_state(sampler, nodes, settings, seed_of(seed, f"{path}.{name}"))
    shared = tuple(name for name in ("refused",) if name in fields)
    made: Any = type(
        f"{declared.owner.__name__}State",
        (Struct,),
        {"__annotations__": dict.fromkeys(fields, Any)},
        shared=shared,
    )
    try:
        state: Struct = made(**fields)
    except StructError as error:
        raise declared.error(error.field, None, error.expected, found=error.fault) from error
    return state


def arrays_of(struct: Struct, path: str = "") -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    """All arrays of a struct and those inside it, with where they are."""
    for name in struct.field_names():
        value = getattr(struct, name)
        if isinstance(value, Struct):
            yield from arrays_of(value, f"{path}.{name}")
        elif isinstance(value, np.ndarray):
            yield f"{path}.{name}", value


def bytes_a_node(declared: Declarations, settings: Mapping[str, Any]) -> int:
    """Bytes that one more node adds to the state of a stack."""
    named = [name for part in parts_of(declared) for name in part.declared.attributes]
    sizes = []
    for nodes in (2, 3):
        attributes = {name: np.zeros(nodes) for name in named}
        state = make_state(declared, nodes, settings, 1, attributes)
        sizes.append(sum(array.nbytes for _, array in arrays_of(state)))
    return sizes[1] - sizes[0]


def _check(declared: Declarations) -> None:
    for name, one in declared.columns.items():
        _check_column(declared, name, one)
    names = (*declared.columns, *declared.attributes, *declared.settings)
    for name in (*names, *declared.layers, *declared.samplers):
        if name in _TAKEN or name.startswith("_") or name == "view" or hasattr(Struct, name):
            raise declared.error(name, None, "another name", found="a name that is taken")
    for name, handler in declared.handlers.items():
        expected = _arguments(declared, name)
        given = list(inspect.signature(handler).parameters)
        if len(given) != len(expected) or in_another_order(given, expected):
            raise declaration_error(
                place_of(handler),
                f"{declared.owner.__name__}.on_{name}",
                None,
                f"({', '.join(expected)})",
                found=f"a handler of ({', '.join(given)})",
            )
    for message in declared.messages.values():
        _check_sendable(message)


def _check_column(declared: Declarations, name: str, one: Column) -> None:
    if one.kind not in _DTYPES:
        raise declared.error(name, one.kind, "a column of bool, int or float")
    is_name = isinstance(one.width, str) and one.width in declared.settings
    fits = one.width is None or is_name or is_width(one.width) or callable(one.width)
    if not fits:
        raise declared.error(name, one.width, "a width from 1, or the name of a setting")
    if type(one.initial) is not one.kind and type(one.initial) is not int:
        raise declared.error(name, one.initial, f"an initial value of {one.kind.__name__}")


def _arguments(declared: Declarations, name: str) -> list[str]:
    """The arguments that a handler takes."""
    own = {"start": ["contact"], "leave": [], "unreachable": ["to", "kind"]}.get(name)
    if own is None and name not in declared.timers:
        own = ["sender", *(field.name for field in declared.messages[name].fields)]
    return ["self", "me", "net", *(own or ())]


def _check_sendable(message: MessageClass) -> None:
    if not message.is_record:
        wrong = next(field.name for field in message.fields if field.kind is None)
        raise declaration_error(
            message.place,
            f"{message.__name__}.{wrong}",
            None,
            "int, float, bool or items(...), as rules can send nothing else",
            found="a field of another type",
        )
