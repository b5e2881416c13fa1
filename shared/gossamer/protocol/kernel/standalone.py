"""Standalone rules: compiled by themselves, once, and called by their address from all loops.

What calls one knows it by a symbol that stands for its name and the types of its arguments and of
what it says that it returns. The symbol is given the address of the rule's code before the caller
is linked, be it that the caller has just been compiled or that it was read from where the host
keeps code. So a caller's code has nothing of the rule's in it, and stays good when the rule is
edited; and what a caller calls is compiled after it, side by side, in any process (`make_all`).
Arrays are passed as their address and shape.

`native_code` makes object code of rules for processes that never load the compiler: rules that take
structs and whole numbers and return a whole number need nothing of it when they run.

Imported only by hosts that compile.
"""

from __future__ import annotations

import hashlib
import logging
import pickle
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import llvmlite.binding  # type: ignore[import-untyped]
import numba
import numba.core.cgutils
import numba.core.compiler_lock
import numba.core.imputils
import numba.core.registry
import numba.core.types
import numba.core.typing.templates
import numba.core.typing.typeof
from llvmlite import ir as llvmir

from gossamer.protocol.kernel import keyed_code, rules
from gossamer.protocol.kernel.code_keys import CodeKeys, code_keys
from gossamer.protocol.kernel.compiler import from_words, make_callee, to_words, words_of
from gossamer.protocol.kernel.errors import RuleCompilationError
from gossamer.protocol.kernel.keyed_code import file_name
from gossamer.protocol.kernel.linking import Standalone
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
        content: an object file.
        called: the standalone rules that it calls.
    """

    symbol: str
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
        kinds = hashlib.sha256(repr((self.arguments, self.returned)).encode()).hexdigest()[:24]
        return f"{PREFIX}.{self.module}.{self.name}.{kinds}"

    def rule(self) -> StandaloneRule:
        """The rule.

        Raises:
            ValueError: it returns something else by now.
        """
        found = find_rule(self.module, self.name)
        assert isinstance(found, StandaloneRule)
        if _returned(found) != self.returned:
            raise ValueError(f"{self.name} returns another type than its callers expect")
        return found


# By the key of a rule's code and the types of its arguments, what this process has of it.
_known: dict[tuple[str, tuple[Any, ...]], StandaloneCode] = {}
_symbols: dict[str, Called] = {}
_functions: dict[StandaloneRule, Any] = {}
# What a standalone rule may say that it returns: callers are compiled before it is.
_RETURNED = {"None": types.none, "bool": types.boolean, "int": types.int64, "float": types.float64}


def function_type(rule: StandaloneRule) -> Any:
    """What the compiler takes a standalone rule for: a function whose code is elsewhere."""
    if rule not in _functions:
        code_keys_of(rule)

        class Call(templates.AbstractTemplate):  # type: ignore[misc]
            key = rule

            def generic(self, args: Any, _kws: Any) -> Any:
                return templates.signature(_returned(rule), *map(_argument, args))

        imputils.builtin_registry.lower(rule, types.VarArg(types.Any))(_calling(rule))
        _functions[rule] = types.Function(Call)
    return _functions[rule]


def code_keys_of(rule: StandaloneRule) -> CodeKeys:
    """What a rule's code depends on.

    Raises:
        RuleCompilationError: on something whose content cannot be told.
    """
    keys = code_keys(rule.source)
    if keys is None:
        raise _refusal(
            rule,
            "a standalone rule refers to something that can be told in this process alone, "
            "such as a function pointer; mark it with `rule`",
        )
    return keys


def link(called: Iterable[Called]) -> None:
    """Give the symbols of standalone rules their addresses in this process.

    Those that are kept nowhere are made, by as many processes as there are processors.

    Raises:
        ValueError: one returns something else by now.
        RuleCompilationError: one cannot be compiled.
    """
    with _lock:
        for one in objects_of(called):
            one.link()


def objects_of(called: Iterable[Called]) -> list[Standalone]:
    """The object code of standalone rules and of all that they call, each after those."""
    wanted = list(called)
    make_all(wanted)
    found: dict[str, Standalone] = {}

    def add(one: Called) -> None:
        if one.symbol not in found:
            code = code_of(one)
            assert code is not None
            for inside in code.called:
                add(inside)
            found[one.symbol] = code.under(one.symbol)

    for one in wanted:
        add(one)
    return list(found.values())


def make_all(called: Iterable[Called], *, asks: bool = True) -> None:
    """Make, or read, the code of standalone rules and of all that they call.

    What takes longest comes first, and what another process is making is left for last.

    Args:
        called: the rules.
        asks: for other processes that help; who does not ask helps, and waits for nobody.
    """
    waiting, seen, left = deque(called), set[str](), deque[Called]()
    helped = not asks
    while waiting or (left and asks):
        store = rules.code_store
        if not helped and store is not None:
            missing = [one for one in waiting if _find(one) is None]
            if len(missing) > 1:
                helped = True
                store.make_beside(pickle.dumps(missing))
        waits = not waiting
        one = (left if waits else waiting).popleft()
        code = code_of(one, waits=waits)
        if code is None:
            left.append(one)
            continue
        inside = [other for other in code.called if other.symbol not in seen]
        seen.update(other.symbol for other in inside)
        waiting.extend(sorted(inside, key=_extent, reverse=True))


def code_of(called: Called, *, waits: bool = True) -> StandaloneCode | None:
    """The code of a rule, compiled or read.

    Args:
        called: the rule.
        waits: for another process that is making it; if not, None is returned then.

    Raises:
        ValueError: the rule returns something else by now.
        RuleCompilationError: it cannot be compiled.
    """
    with _lock:
        found = _find(called)
        if found is not None:
            return found
        asked, name = _asked(called)
        store = rules.code_store
        if store is None:
            return _known.setdefault(asked, _make(called))
        with store.making(name, waits=waits) as made_elsewhere:
            if made_elsewhere and not waits:
                return None
            found = _find(called) if made_elsewhere else None
            if found is None:
                found = _known[asked] = _make(called)
                store.save(name, pickle.dumps(found))
        return found


def called_by(library: Any) -> tuple[Called, ...]:
    """The standalone rules that the code in a library calls."""
    return called_in(library._final_module)


def called_in(module: Any) -> tuple[Called, ...]:
    """The standalone rules that a module of LLVM calls."""
    names = sorted(one.name for one in module.functions if one.is_declaration)
    return tuple(_symbols[name] for name in names if name.startswith(f"{PREFIX}."))


def _argument(kind: Any) -> Any:
    """The type as which an argument is passed: whole numbers are of 64 bits."""
    kind = types.unliteral(kind)
    return types.int64 if isinstance(kind, types.Integer) else kind


def _returned(rule: StandaloneRule) -> Any:
    """The type of what a rule says it returns."""
    said = str(rule.source.__annotations__.get("return"))
    if said not in _RETURNED:
        raise _refusal(
            rule, f"a standalone rule says what it returns: one of {', '.join(_RETURNED)}"
        )
    return _RETURNED[said]


def _refusal(rule: StandaloneRule, reason: str) -> RuleCompilationError:
    made = rule.source.__code__
    return RuleCompilationError(
        rule.source.__qualname__, made.co_filename, made.co_firstlineno, reason
    )


def _passed(context: Any, called: Called) -> tuple[Any, Any]:
    """The types of what is passed, arrays as their address and shape, and of the function."""
    words = (types.int64,) * sum(map(words_of, called.arguments))
    return words, context.call_conv.get_function_type(called.returned, words)


def _calling(rule: StandaloneRule) -> Any:
    """What the compiler puts in place of a call."""

    def lower(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        called = Called(
            rule.source.__module__,
            rule.source.__qualname__,
            signature.args,
            signature.return_type,
        )
        _symbols[called.symbol] = called
        passed, kind = _passed(context, called)
        function = cgutils.get_or_insert_function(builder.module, kind, called.symbol)
        given = zip(signature.args, values, strict=True)
        words = [word for one, value in given for word in to_words(context, builder, one, value)]
        status, result = context.call_conv.call_function(
            builder, function, called.returned, passed, words
        )
        with cgutils.if_unlikely(builder, status.is_error):
            context.call_conv.return_status_propagate(builder, status)
        return result

    return lower


def _entry(context: Any, called: Called, made: Any, symbol: str) -> Any:
    """A module with a function of words that calls a compiled rule."""
    convention = context.call_conv
    module = context.create_module(symbol)
    passed, kind = _passed(context, called)
    function = llvmir.Function(module, kind, symbol)
    convention.decorate_function(function, [f"word{i}" for i in range(len(passed))], passed)
    builder = llvmir.IRBuilder(function.append_basic_block())
    words = convention.get_arguments(function)
    values, at = [], 0
    for one in called.arguments:
        values.append(from_words(context, builder, one, words.__getitem__, at))
        at += words_of(one)
    returned, arguments = made.signature.return_type, made.signature.args
    inner = cgutils.get_or_insert_function(
        module, convention.get_function_type(returned, arguments), made.fndesc.llvm_func_name
    )
    status, result = convention.call_function(builder, inner, returned, arguments, values)
    with cgutils.if_unlikely(builder, status.is_error):
        convention.return_status_propagate(builder, status)
    result = context.cast(builder, result, returned, called.returned)
    convention.return_value(builder, context.get_return_value(builder, called.returned, result))
    return module


def _extent(called: Called) -> int:
    """How much the code of a rule is made of."""
    return code_keys_of(called.rule()).extent


def _asked(called: Called) -> tuple[tuple[str, tuple[Any, ...]], str]:
    """What the code of a rule is known by in this process, and by a host."""
    keys = code_keys_of(called.rule())
    asked = keys.whole, called.arguments
    return asked, file_name(called.name, keys.own, called.arguments)


def _find(called: Called) -> StandaloneCode | None:
    """The code that this process, or the host, has of a rule."""
    asked, name = _asked(called)
    data = None if asked in _known or rules.code_store is None else rules.code_store.load(name)
    if data is not None:
        try:
            code = pickle.loads(data)
            for one in code.called:
                one.rule()
                _symbols[one.symbol] = one
            _known[asked] = code
        except Exception as error:
            # Whatever stands there, the code can be made again.
            _log.warning("kept code %s cannot be read (%s): compiled anew", name, error)
    return _known.get(asked)


def _make(called: Called) -> StandaloneCode:
    # Only here: plain compilation does without this module.
    from gossamer.protocol.kernel.quicker_compiler import answers_kept

    rule = called.rule()
    dispatcher = make_callee(rule.source, inline=False)
    with answers_kept():
        dispatcher.compile(called.arguments)
    (made,) = (one for kinds, one in dispatcher.overloads.items() if kinds == called.arguments)
    context = numba.core.registry.cpu_target.target_context
    if _argument(made.signature.return_type) != called.returned:
        raise _refusal(rule, f"it returns {made.signature.return_type}, and says {called.returned}")
    symbol = f"{PREFIX}.entry.{made.fndesc.llvm_func_name}"
    whole = made.library._codegen.create_library(symbol)
    whole.add_ir_module(_entry(context, called, made, symbol))
    module = whole._final_module
    module.link_in(made.library._get_module_for_linking().clone())
    # Nobody else calls what is inside: arguments that it does not need, or that are always the
    # same, are left out, which makes a round a tenth faster.
    for function in module.functions:
        if not function.is_declaration and function.name != symbol:
            function.linkage = "internal"
    whole._optimize_final_module()
    module.verify()
    inside = called_in(module)
    return StandaloneCode(symbol, made.library._codegen._tm.emit_object(module), inside)


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
