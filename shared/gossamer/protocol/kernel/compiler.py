"""What the compiler has to know: what a `Rule` among its globals means, and what a `Struct` is.

The compiler would make machine code of every function on its own, with all that it calls in it, and
optimise that code again in each of its callers: for rules that call rules, most of the time that
compiling takes. Rules that compiled code calls are therefore kept as they are until they are linked
into the loop that runs them, and only that is optimised.

Imported only by hosts that compile (see `rules.teach_compiler`).
"""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Callable
from typing import Any

import numba
import numba.core.cgutils
import numba.core.codegen
import numba.core.registry
import numba.core.types
import numba.core.typing.templates
import numba.core.typing.typeof
import numba.extending
import numba.np.arrayobj

from gossamer.protocol.kernel import keyed_code
from gossamer.protocol.kernel.compile_errors import (
    check_interpreter_is_not_asked,
    note_failure,
)
from gossamer.protocol.kernel.rules import Rule
from gossamer.protocol.kernel.struct import Struct

# The compiler's extension points are only partly typed.
arrayobj: Any = numba.np.arrayobj
cgutils: Any = numba.core.cgutils
codegen: Any = numba.core.codegen
extending: Any = numba.extending
templates: Any = numba.core.typing.templates
types: Any = numba.core.types
typeof: Any = numba.core.typing.typeof.typeof
typeof_impl: Any = numba.core.typing.typeof.typeof_impl


@typeof_impl.register(Rule)
def _typeof_rule(value: Rule, _context: Any) -> Any:
    return types.Dispatcher(value.callee)


# Rules that are linked into others have no address of their own; the compiler asks for one
# to make a Python function, which nobody calls.
_NO_ADDRESS = ctypes.cast(ctypes.pythonapi.Py_FatalError, ctypes.c_void_p).value


class _WithoutEnvironment:
    """The code generator as a library linked later sees it: there is no environment to fill in."""

    def __init__(self, codegen: Any) -> None:
        self._codegen = codegen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codegen, name)

    def set_env(self, _name: str, _env: Any) -> None:
        """Nothing: the environment is only there once the library has been linked."""


class LinkedLaterLibrary(codegen.JITCodeLibrary):  # type: ignore[misc]
    """Code of one function that becomes machine code as part of its callers only."""

    _shared_module: Any

    @property
    def codegen(self) -> Any:
        """The code generator, for what there is to do before linking."""
        return _WithoutEnvironment(self._codegen)

    def finalize(self) -> None:
        """Take no further code; optimise nothing yet."""
        self._raise_if_finalized()
        self._finalized = True

    def get_pointer_to_function(self, _name: str) -> int | None:
        """An address that ends the process, should a defect ever call it."""
        return _NO_ADDRESS

    def _get_module_for_linking(self) -> Any:
        if self._shared_module is None:
            module = self._final_module.clone()
            for library in self._all_called():
                module.link_in(library._final_module.clone())
            for function in module.functions:
                if not function.is_declaration and function.linkage == _EXTERNAL:
                    function.linkage = "linkonce_odr"
            self._shared_module = module
        return self._shared_module

    def _all_called(self) -> list[Any]:
        """The libraries called from here, directly or not, each once."""
        found: dict[int, Any] = {id(self): self}
        waiting = list(self._linking_libraries)
        while waiting:
            library = waiting.pop()
            if id(library) not in found:
                found[id(library)] = library
                waiting.extend(library._linking_libraries)
        return list(found.values())[1:]


_EXTERNAL = codegen.ll.Linkage.external


def make_callee(function: Callable[..., Any], inline: bool) -> Any:
    """The compiler's function object of a rule that only compiled code will call."""
    dispatcher = keyed_code.make_callee(function, inline)
    if "compile" in vars(dispatcher):
        return dispatcher
    compile_alone = dispatcher.compile
    generator = numba.core.registry.cpu_target.target_context.codegen()

    def compile_for_callers(signature: Any) -> Any:
        before = generator._library_class
        generator._library_class = LinkedLaterLibrary
        try:
            made = compile_alone(signature)
            for overload in dispatcher.overloads.values():
                check_interpreter_is_not_asked(overload.library, function)
            return made
        except Exception as error:
            note_failure(error, function)
            raise
        finally:
            generator._library_class = before

    dispatcher.compile = compile_for_callers
    return dispatcher


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

    def offset_and_type(self, wanted: str) -> tuple[int, Any] | None:
        """Where in the block a field begins, in words, and its type."""
        offset = 0
        for field, kind in self.fields:
            if field == wanted:
                return offset, kind
            offset += _words(kind)
        return None


def _words(kind: Any) -> int:
    if isinstance(kind, types.Array):
        return 1 + int(kind.ndim) + (0 if kind.is_c_contig else 1)
    if isinstance(kind, types.BaseTuple):
        return sum(_words(item) for item in kind.types)
    return 1


@typeof_impl.register(Struct)
def _typeof_struct(value: Struct, _context: Any) -> StructType:
    if value._compiled_type is None:
        fields = tuple((name, _typeof_field(value, name)) for name in value.__annotations__)
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
    word = context.get_value_type(types.intp)
    block = builder.bitcast(value, word.as_pointer())
    return _load(context, builder, block, found[0], found[1], kind.known)


def _load(
    context: Any, builder: Any, block: Any, offset: int, kind: Any, known: tuple[int | None, ...]
) -> Any:
    def word(i: int) -> Any:
        if known and known[offset + i] is not None:
            return context.get_constant(types.intp, known[offset + i])
        loaded = builder.load(cgutils.gep_inbounds(builder, block, offset + i))
        # A struct never changes its arrays: their addresses may be read once and kept.
        loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
        return loaded

    if isinstance(kind, types.Array):
        shape = [word(1 + i) for i in range(kind.ndim)]
        itemsize = context.get_abi_sizeof(context.get_data_type(kind.dtype))
        strides = [context.get_constant(types.intp, itemsize)]
        for extent in reversed(shape[1:]):
            strides.insert(0, builder.mul(strides[0], extent))
        if not kind.is_c_contig:
            # Only the rows of a column lie apart.
            strides[0] = word(1 + kind.ndim)
        array = arrayobj.make_array(kind)(context, builder)
        data = builder.inttoptr(word(0), context.get_data_type(kind.dtype).as_pointer())
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
        at = offset
        for item in kind.types:
            items.append(_load(context, builder, block, at, item, known))
            at += _words(item)
        return context.make_tuple(builder, kind, items)
    if isinstance(kind, StructType):
        return builder.inttoptr(word(0), cgutils.voidptr_t)
    bits, value_type = word(0), context.get_value_type(kind)
    width = kind.bitwidth if isinstance(kind, types.Float) else value_type.width
    if width < bits.type.width:
        bits = builder.trunc(bits, codegen.llvmir.IntType(width))
    return builder.bitcast(bits, value_type)


__all__ = ["StructType", "numba"]
