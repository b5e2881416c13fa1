"""Standalone rules: compiled by themselves, once, and called by their address from all loops.

What calls one knows it by a symbol that stands for its name and the types of its arguments. The
symbol is given the address of the rule's code before the caller is linked, be it that the caller
has just been compiled or that it was read from where the host keeps code. So a caller's code has
nothing of the rule's in it, and stays good when the rule is edited.

`native_code` makes object code of rules for processes that never load the compiler: rules that take
structs and whole numbers and return a whole number need nothing of it when they run.

Imported only by hosts that compile.
"""

from __future__ import annotations

import hashlib
import logging
import pickle
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import llvmlite.binding  # type: ignore[import-untyped]
import numba
import numba.core.cgutils
import numba.core.compiler_lock
import numba.core.imputils
import numba.core.types
import numba.core.typing.templates
import numba.core.typing.typeof

from gossamer.protocol.kernel import keyed_code, rules
from gossamer.protocol.kernel.code_keys import code_keys
from gossamer.protocol.kernel.errors import RuleCompilationError
from gossamer.protocol.kernel.keyed_code import file_name
from gossamer.protocol.kernel.linking.object_code import Standalone
from gossamer.protocol.kernel.rules import Rule, StandaloneRule, find_rule

_log = logging.getLogger(__name__)

_binding: Any = llvmlite.binding
_lock: Any = numba.core.compiler_lock.global_compiler_lock
cgutils: Any = numba.core.cgutils
imputils: Any = numba.core.imputils
templates: Any = numba.core.typing.templates
types: Any = numba.core.types
_typeof: Any = numba.core.typing.typeof.typeof

PREFIX = "gossamer.standalone"


class StandaloneCode(NamedTuple):
    """The machine code of a standalone rule for arguments of some types.

    Attributes:
        symbol: of the function in the object code.
        returned: the type of what it returns.
        content: an object file.
        called: the standalone rules that it calls.
    """

    symbol: str
    returned: Any
    content: bytes
    called: tuple[Called, ...]

    def under(self, name: str) -> Standalone:
        """The object code for those who know it by a name."""
        return Standalone(name, self.symbol, self.content, [one.symbol for one in self.called])


class Called(NamedTuple):
    """A standalone rule as compiled code calls it.

    Attributes:
        module, name: where the rule stands.
        arguments: the types that it is called with.
        returned: the type of what it returns.
    """

    module: str
    name: str
    arguments: tuple[Any, ...]
    returned: Any

    @property
    def symbol(self) -> str:
        """The symbol by which callers know it."""
        kinds = hashlib.sha256(repr(self.arguments).encode()).hexdigest()[:24]
        return f"{PREFIX}.{self.module}.{self.name}.{kinds}"

    def link(self) -> None:
        """Give the symbol its address in this process.

        Raises:
            ValueError: the rule returns something else by now.
        """
        if code_of(self.rule(), self.arguments).returned != self.returned:
            raise ValueError(f"{self.name} returns another type than its callers expect")

    def rule(self) -> StandaloneRule:
        """The rule."""
        found = find_rule(self.module, self.name)
        assert isinstance(found, StandaloneRule)
        return found


# By the key of a rule's code and the types of its arguments, what this process has of it.
_known: dict[tuple[str, tuple[Any, ...]], StandaloneCode] = {}
_symbols: dict[str, Called] = {}
_functions: dict[StandaloneRule, Any] = {}


def function_type(rule: StandaloneRule) -> Any:
    """What the compiler takes a standalone rule for: a function whose code is elsewhere."""
    if rule not in _functions:

        class Call(templates.AbstractTemplate):  # type: ignore[misc]
            key = rule

            def generic(self, args: Any, _kws: Any) -> Any:
                arguments = tuple(map(_argument, args))
                return templates.signature(code_of(rule, arguments).returned, *arguments)

        imputils.builtin_registry.lower(rule, types.VarArg(types.Any))(_calling(rule))
        _functions[rule] = types.Function(Call)
    return _functions[rule]


def code_of(rule: StandaloneRule, arguments: tuple[Any, ...]) -> StandaloneCode:
    """The code of a rule, compiled or read, linked, and known to what is linked from now on.

    Raises:
        RuleCompilationError: it depends on something whose content cannot be told.
    """
    with _lock:
        keys = code_keys(rule.source)
        if keys is None:
            made = rule.source.__code__
            raise RuleCompilationError(
                rule.source.__qualname__,
                made.co_filename,
                made.co_firstlineno,
                "a standalone rule refers to something that can be told in this process alone, "
                "such as a function pointer; mark it with `rule`",
            )
        asked = keys.whole, arguments
        if asked not in _known:
            name = file_name(rule.source.__qualname__, keys.own, arguments)
            _known[asked] = _kept_or_made(rule, arguments, name)
        code = _known[asked]
        for one in code.called:
            one.link()
        called = Called(rule.source.__module__, rule.source.__qualname__, arguments, code.returned)
        _symbols[called.symbol] = called
        code.under(called.symbol).link()
        return code


def objects_of(called: Iterable[Called]) -> list[Standalone]:
    """The object code of standalone rules and of all that they call, each after those."""
    found: dict[str, Standalone] = {}
    for one in called:
        code = code_of(one.rule(), one.arguments)
        for inside in objects_of(code.called):
            found.setdefault(inside.name, inside)
        found[one.symbol] = code.under(one.symbol)
    return list(found.values())


def called_by(library: Any) -> tuple[Called, ...]:
    """The standalone rules that the code in a library calls, each linked before."""
    return called_in(library._final_module)


def called_in(module: Any) -> tuple[Called, ...]:
    """The standalone rules that a module of LLVM calls."""
    names = sorted(one.name for one in module.functions if one.is_declaration)
    return tuple(_symbols[name] for name in names if name.startswith(f"{PREFIX}."))


def _argument(kind: Any) -> Any:
    """The type as which an argument is passed: whole numbers are of 64 bits."""
    kind = types.unliteral(kind)
    return types.int64 if isinstance(kind, types.Integer) else kind


def _calling(rule: StandaloneRule) -> Any:
    """What the compiler puts in place of a call."""

    def lower(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        called = Called(
            rule.source.__module__,
            rule.source.__qualname__,
            signature.args,
            signature.return_type,
        )
        convention = context.call_conv
        kind = convention.get_function_type(signature.return_type, signature.args)
        function = cgutils.get_or_insert_function(builder.module, kind, called.symbol)
        status, result = convention.call_function(
            builder, function, signature.return_type, signature.args, values
        )
        with cgutils.if_unlikely(builder, status.is_error):
            convention.return_status_propagate(builder, status)
        return result

    return lower


def _kept_or_made(rule: StandaloneRule, arguments: tuple[Any, ...], name: str) -> StandaloneCode:
    store = rules.code_store
    if store is None:
        return _make(rule, arguments)
    found = _read(store, name)
    if found is not None:
        return found
    with store.making(name) as made_elsewhere:
        found = _read(store, name) if made_elsewhere else None
        if found is None:
            found = _make(rule, arguments)
            store.save(name, pickle.dumps(found))
    return found


def _read(store: rules.CodeStore, name: str) -> StandaloneCode | None:
    data = store.load(name)
    if data is None:
        return None
    try:
        code = pickle.loads(data)
        for one in code.called:
            one.link()
    except Exception as error:
        # Whatever stands there, the code can be made again.
        _log.warning("kept code %s cannot be read (%s): compiled anew", name, error)
        return None
    assert isinstance(code, StandaloneCode)
    return code


def _make(rule: StandaloneRule, arguments: tuple[Any, ...]) -> StandaloneCode:
    # Only here: the compiler takes standalone rules from this module, and plain compilation does
    # without the other.
    from gossamer.protocol.kernel.compiler import make_callee
    from gossamer.protocol.kernel.quicker_compiler.asked_once import answers_kept

    dispatcher = make_callee(rule.source, inline=False)
    with answers_kept():
        dispatcher.compile(arguments)
    (made,) = (one for kinds, one in dispatcher.overloads.items() if kinds == arguments)
    symbol, codegen = made.fndesc.llvm_func_name, made.library._codegen
    whole = codegen.create_library(f"{PREFIX} {symbol}")
    module = whole._final_module
    linked = made.library._get_module_for_linking().clone()
    linked.get_function(symbol).linkage = "external"
    module.link_in(linked)
    whole._optimize_final_module()
    module.verify()
    called = called_in(module)
    return StandaloneCode(
        symbol, made.signature.return_type, codegen._tm.emit_object(module), called
    )


class NativeCode(NamedTuple):
    """Object code.

    Attributes:
        symbols: by the name of a rule, the symbol of its entry: a function of C that takes the
            address of an int64 for its result, that of an unused pointer, addresses of the blocks
            of structs and int64 numbers, and returns 0.
        content: an object file for this machine.
        called: the standalone rules that it calls, each after those that itself calls.
    """

    symbols: Mapping[str, str]
    content: bytes
    called: Sequence[Standalone]


def native_code(entries: Mapping[str, tuple[Rule, Sequence[Any]]]) -> NativeCode:
    """Compile rules for arguments like those given: structs, and whole numbers.

    Args:
        entries: by name, a rule and what it might be called with.
    """
    symbols, linked = {}, None
    with _lock:
        for name, (entry, samples) in entries.items():
            made = keyed_code.make_native(entry.source)
            made.compile(tuple(_typeof(sample) for sample in samples))
            (result,) = made.overloads.values()
            symbols[name] = result.fndesc.llvm_func_name
            module = _binding.parse_bitcode(result.library._final_module.as_bitcode())
            if linked is None:
                linked = module
            else:
                linked.link_in(module)
            machine = result.library.codegen._tm
    assert linked is not None
    called = objects_of(called_in(linked))
    return NativeCode(symbols, machine.emit_object(linked), called)
