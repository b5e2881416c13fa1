"""What the compiler has to know: what a `Rule` among its globals means, and what a `Struct` is.

Imported only by hosts that compile (see `rules.teach_compiler`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numba
import numba.core.cgutils
import numba.core.codegen
import numba.core.imputils
import numba.core.types
import numba.core.typing.templates
import numba.core.typing.typeof
import numba.extending
import numba.np.arrayobj

from gossamer.protocol.kernel import keyed_code
from gossamer.protocol.kernel.compile_errors import (
    check_interpreter_is_not_asked,
    check_nothing_is_cut_off,
    note_failure,
)
from gossamer.protocol.kernel.rules import Rule, RuleClass, StandaloneRule, plain_compilation
from gossamer.protocol.kernel.struct import Struct

# The compiler's extension points are only partly typed.
arrayobj: Any = numba.np.arrayobj
cgutils: Any = numba.core.cgutils
codegen: Any = numba.core.codegen
extending: Any = numba.extending
imputils: Any = numba.core.imputils
templates: Any = numba.core.typing.templates
types: Any = numba.core.types
typeof: Any = numba.core.typing.typeof.typeof
typeof_impl: Any = numba.core.typing.typeof.typeof_impl


@typeof_impl.register(Rule)
def _typeof_rule(value: Rule, _context: Any) -> Any:
    if isinstance(value, StandaloneRule) and not plain_compilation():
        # Only here: it links by means of the compiler's private parts.
        from gossamer.protocol.kernel.standalone import function_type

        return function_type(value)
    return types.Dispatcher(value.callee)


def make_callee(function: Callable[..., Any], inline: bool) -> Any:
    """The compiler's function object of a rule that only compiled code will call."""
    dispatcher = keyed_code.make_callee(function, inline)
    if "compile" in vars(dispatcher):
        return dispatcher
    compile_alone = dispatcher.compile
    fold_alone = dispatcher._compiler.fold_argument_types

    def fold_argument_types(args: Any, kws: Any) -> Any:
        signature, folded = fold_alone(args, kws)
        return signature, tuple(map(_argument, folded))

    dispatcher._compiler.fold_argument_types = fold_argument_types
    held_back = _link_later()
    found_fit: set[Any] = set()

    def compile_for_callers(signature: Any) -> Any:
        if signature in found_fit:
            return dispatcher.overloads[signature].entry_point
        try:
            with held_back():
                made = compile_alone(signature)
            for arguments, overload in dispatcher.overloads.items():
                if arguments not in found_fit:
                    check_interpreter_is_not_asked(overload.library, function)
                    check_nothing_is_cut_off(overload)
                    found_fit.add(arguments)
            return made
        except Exception as error:
            note_failure(error, function)
            # Who asks again is told again which rule it is about.
            dispatcher._compiler._failed_cache.clear()
            raise

    dispatcher.compile = compile_for_callers
    return dispatcher


def _argument(kind: Any) -> Any:
    """The type as which an argument is passed: its value is none of a callee's business."""
    return types.unliteral(kind)


def _link_later() -> Callable[[], AbstractContextManager[None]]:
    """What is to be around the compilation of a callee."""
    if plain_compilation():
        return nullcontext
    # Only here: this module swaps a private class, which plain compilation does without.
    from gossamer.protocol.kernel.quicker_compiler import link_later

    return link_later


class RuleClassType(types.Opaque):  # type: ignore[misc]
    """The type of one class of rules and numbers: its attributes are known when code is made."""

    def __init__(self, owner: RuleClass) -> None:
        self.owner = owner
        super().__init__(name=f"RuleClass({owner.__qualname__}, {id(owner)})")


@typeof_impl.register(RuleClass)
def _typeof_rule_class(value: RuleClass, _context: Any) -> RuleClassType:
    return RuleClassType(value)


@extending.register_model(RuleClassType)
class _RuleClassModel(extending.models.OpaqueModel):  # type: ignore[misc]
    """Nothing: attributes are constants."""


@extending.infer_getattr
class _RuleClassAttributes(templates.AttributeTemplate):  # type: ignore[misc]
    key = RuleClassType

    def generic_resolve(self, kind: RuleClassType, attribute: str) -> Any:
        found = kind.owner.compiled_attributes().get(attribute)
        return None if found is None else typeof(found)


@extending.lower_getattr_generic(RuleClassType)
def _lower_rule_class_attribute(
    context: Any, builder: Any, kind: RuleClassType, _value: Any, attribute: str
) -> Any:
    found = kind.owner.compiled_attributes()[attribute]
    if isinstance(found, Rule):
        return context.get_dummy_value()
    return context.get_constant_generic(builder, typeof(found), found)


@imputils.lower_constant(RuleClassType)
def _lower_rule_class(context: Any, _builder: Any, _kind: Any, _value: Any) -> Any:
    return context.get_dummy_value()


class StructType(types.Type):  # type: ignore[misc]
    """A struct's type: the names and types of its fields, in order.

    Attributes:
        known: the words of the block that code may be made for, None for others; no words at all
            for code that serves structs of any sizes.
    """

    def __init__(
        self, name: str, fields: tuple[tuple[str, Any], ...], known: tuple[int | None, ...]
    ) -> None:
        self.fields = fields
        self.known = known
        inside = ", ".join(f"{field}: {kind}" for field, kind in fields)
        sizes = hashlib.sha256(repr(known).encode()).hexdigest() if known else "any sizes"
        super().__init__(name=f"Struct({name}; {inside}; {sizes})")

    @property
    def key(self) -> Any:
        """What makes two struct types one."""
        return self.name

    @property
    def mangling_args(self) -> tuple[str, tuple[()]]:
        """What symbols have for it: all of the name would be thousands of characters."""
        return f"Struct{hashlib.sha256(self.name.encode()).hexdigest()[:24]}", ()

    def offset_and_type(self, wanted: str) -> tuple[int, Any] | None:
        """Where in the block a field begins, in words, and its type."""
        offset = 0
        for field, kind in self.fields:
            if field == wanted:
                return offset, kind
            offset += words_of(kind)
        return None


def words_of(kind: Any) -> int:
    """How many words stand for a value of this type."""
    if isinstance(kind, types.Array):
        return 1 + int(kind.ndim) + (0 if kind.is_c_contig else 1)
    if isinstance(kind, types.BaseTuple):
        return sum(words_of(item) for item in kind.types)
    return 1


@typeof_impl.register(Struct)
def _typeof_struct(value: Struct, _context: Any) -> StructType:
    if value._compiled_type is None:
        fields = tuple((name, _typeof_field(value, name)) for name in value.field_names())
        known = tuple(value.constant_words())
        value._compiled_type = StructType(type(value).__name__, fields, known)
        # Under this name the compiler finds it at the next call without asking again.
        value._numba_type_ = value._compiled_type
    return value._compiled_type  # type: ignore[no-any-return]


def _typeof_field(value: Struct, name: str) -> Any:
    field = getattr(value, name)
    if value.is_column(name):
        # A column of a single row would pass for contiguous and make a type of its own.
        return types.Array(types.int64, field.ndim, "A")
    return typeof(field)


@extending.register_model(StructType)
class _StructModel(extending.models.OpaqueModel):  # type: ignore[misc]
    """A pointer."""


@extending.unbox(StructType)
def _unbox_struct(_kind: StructType, obj: Any, c: Any) -> Any:
    address = c.pyapi.call_method(obj, "block_address")
    number = c.pyapi.number_as_ssize_t(address)
    c.pyapi.decref(address)
    pointer = c.builder.inttoptr(number, cgutils.voidptr_t)
    return extending.NativeValue(
        pointer, is_error=cgutils.is_not_null(c.builder, c.pyapi.err_occurred())
    )


@extending.infer_getattr
class _StructAttributes(templates.AttributeTemplate):  # type: ignore[misc]
    key = StructType

    def generic_resolve(self, kind: StructType, attribute: str) -> Any:
        found = kind.offset_and_type(attribute)
        return found[1] if found else None


@extending.lower_getattr_generic(StructType)
def _lower_struct_attribute(
    context: Any, builder: Any, kind: StructType, value: Any, attribute: str
) -> Any:
    found = kind.offset_and_type(attribute)
    assert found is not None
    offset, wanted = found
    intp = context.get_value_type(types.intp)
    block = builder.bitcast(value, intp.as_pointer())

    def word(i: int) -> Any:
        if kind.known and kind.known[offset + i] is not None:
            return context.get_constant(types.intp, kind.known[offset + i])
        loaded = builder.load(cgutils.gep_inbounds(builder, block, offset + i))
        # A struct never changes its arrays: their addresses may be read once and kept.
        loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
        return loaded

    return from_words(context, builder, wanted, word)


def from_words(
    context: Any, builder: Any, kind: Any, word: Callable[[int], Any], at: int = 0
) -> Any:
    """The value of a type that words from ``at`` on stand for: of arrays, where they are and their
    shape.
    """
    if isinstance(kind, types.Array):
        shape = [word(at + 1 + i) for i in range(kind.ndim)]
        itemsize = context.get_abi_sizeof(context.get_data_type(kind.dtype))
        strides = [context.get_constant(types.intp, itemsize)]
        for extent in reversed(shape[1:]):
            strides.insert(0, builder.mul(strides[0], extent))
        if not kind.is_c_contig:
            # Only the rows of a column lie apart.
            strides[0] = word(at + 1 + kind.ndim)
        array = arrayobj.make_array(kind)(context, builder)
        data = builder.inttoptr(word(at), context.get_data_type(kind.dtype).as_pointer())
        arrayobj.populate_array(
            array,
            data=data,
            shape=cgutils.pack_array(builder, shape),
            strides=cgutils.pack_array(builder, strides),
            itemsize=context.get_constant(types.intp, itemsize),
            meminfo=None,
        )
        return array._getvalue()
    if isinstance(kind, types.BaseTuple):
        items = []
        for item in kind.types:
            items.append(from_words(context, builder, item, word, at))
            at += words_of(item)
        return context.make_tuple(builder, kind, items)
    if isinstance(kind, StructType):
        return builder.inttoptr(word(at), cgutils.voidptr_t)
    bits, value_type = word(at), context.get_value_type(kind)
    width = kind.bitwidth if isinstance(kind, types.Float) else value_type.width
    if width < bits.type.width:
        bits = builder.trunc(bits, codegen.llvmir.IntType(width))
    return builder.bitcast(bits, value_type)


def to_words(context: Any, builder: Any, kind: Any, value: Any) -> list[Any]:
    """The words that stand for a value; the other way round than `from_words`."""
    intp = context.get_value_type(types.intp)
    if isinstance(kind, types.Array):
        array = arrayobj.make_array(kind)(context, builder, value)
        words = [builder.ptrtoint(array.data, intp), *cgutils.unpack_tuple(builder, array.shape)]
        if not kind.is_c_contig:
            words.append(builder.extract_value(array.strides, 0))
        return words
    if isinstance(kind, types.BaseTuple):
        items = enumerate(kind.types)
        return [
            word
            for i, item in items
            for word in to_words(context, builder, item, builder.extract_value(value, i))
        ]
    if isinstance(kind, StructType):
        return [builder.ptrtoint(value, intp)]
    if isinstance(kind, types.Float):
        value = builder.bitcast(value, codegen.llvmir.IntType(kind.bitwidth))
    return [builder.zext(value, intp) if value.type.width < intp.width else value]


__all__ = ["StructType", "from_words", "numba", "to_words", "words_of"]
