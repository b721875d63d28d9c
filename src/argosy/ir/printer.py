"""The IR as text that people read and `argosy.ir.parser` reads back.

```
argosy 1
metadata "producer" = "pytorch 2.8"
symbol N: 1..
module main(%x: float32[N, 4]) {
  %w = constant float32[4] dense(0.5, 1.0, -0.0, inf)
  %0 = pointwise(%x, %w) {formula = |x0, x1| mul(x0, x1)} : float32[N, 4] as "/block/Mul_output_0" from "/block/Mul"
  %y = reshape(%0, _) {dims = [4*N]} : float32[4*N] from "Reshape (node 3 → 'y')"
  return y = %y
}
```

Attributes are the fields of the op's dataclass, without those that have their default; a module among
them is printed in place. A value is called as in the source model where that is a plain name not used
before in its module, else it has a number and its name follows `as`. Constants of up to eight elements
and splats are written out; others are named by the SHA-256 of their content.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, Final

from argosy.errors import InternalError
from argosy.ir.dim import Dim, DimLike, Symbol, substitute, symbol_dim, symbols_in
from argosy.ir.dtype import DType
from argosy.ir.formula import Formula
from argosy.ir.lexer import is_value_name, is_word, quote
from argosy.ir.literal import Literal
from argosy.ir.literal_text import literal_text
from argosy.ir.module import Constant, Instruction, Module, Value
from argosy.ir.op import Op
from argosy.ir.program import Program
from argosy.ir.types import MapType, OptionalType, SequenceType, TensorType, Type, type_symbols

__all__ = ["FORMAT_VERSION", "Writer", "print_module", "print_program"]

FORMAT_VERSION: Final = 1
"""Version of the text form, on its first line."""

_LINE: Final = 120
_INDENT: Final = "  "


def print_program(program: Program) -> str:
    """The text of a program, with its metadata and the bounds of its symbols."""
    writer = Writer()
    body = list(writer.module(program.main))
    metadata = [f"metadata {quote(key)} = {quote(value)}" for key, value in program.metadata.items()]
    return "\n".join([f"argosy {FORMAT_VERSION}", *metadata, *writer.symbols(), *body, ""])


def print_module(module: Module) -> str:
    """The text of one module after the bounds of its symbols; `parse_program` reads it as a program's main."""
    writer = Writer()
    body = list(writer.module(module))
    return "\n".join([*writer.symbols(), *body, ""])


class Writer:
    """Turns modules into lines. The symbols that were met are known afterwards.

    A `canonical` writer gives the text that is hashed: values are numbered, the names of nodes and of
    everything inside are left out, and symbols other than those of the inputs are numbered as they come.
    What it writes must stay alive meanwhile: texts of types and dims are kept by identity.
    """

    def __init__(self, *, canonical: bool = False) -> None:
        self._canonical = canonical
        self._types: dict[int, str] = {}
        self._dims: dict[int, str] = {}
        self._fields: dict[type[Op], tuple[tuple[str, str | None], ...]] = {}
        self._symbols: dict[str, Symbol] = {}
        self._renamed: dict[str, DimLike] = {}

    def symbols(self) -> list[str]:
        """A line for each symbol written so far, with its bounds."""
        return [
            f"symbol {symbol}: {symbol.lower}..{'' if symbol.upper is None else symbol.upper}"
            for symbol in self._symbols.values()
        ]

    def module(self, module: Module, indent: str = "", *, outermost: bool = True) -> Iterator[str]:
        """The lines of a module; only the outermost one's interface has names in canonical text."""
        named = outermost or not self._canonical
        if outermost and self._canonical:
            self._keep_symbols(module)
        names: dict[Instruction, tuple[str, ...]] = {}
        taken: set[str] = set()
        parameters = []
        for parameter in module.parameters:
            names[parameter] = self._results(parameter, taken, len(names))
            origin = self._origin(parameter, names[parameter], named=named)
            parameters.append(f"{names[parameter][0]}: {self.type(parameter.types[0])}{origin}")
        title = "module" if self._canonical else f"module {_name(module.name)}"
        yield from _opening(title, parameters, indent)
        inside = indent + _INDENT
        count = len(parameters)
        for instruction in module.instructions:
            results = names[instruction] = self._results(instruction, taken, count)
            count += len(results)
            text = self._instruction(instruction, names, inside)
            yield f"{inside}{text}{self._origin(instruction, results, named=not self._canonical)}"
        returned = [_operand(value, names) for value in module.results]
        if named:
            returned = [f"{_name(name)} = {value}" for name, value in zip(module.result_names, returned, strict=True)]
        yield f"{inside}return {', '.join(returned)}".rstrip()
        yield f"{indent}}}"

    def _keep_symbols(self, module: Module) -> None:
        for parameter in module.parameters:
            for symbol in type_symbols(parameter.types[0]):
                self._renamed[symbol.name] = symbol_dim(symbol)

    def _results(self, instruction: Instruction, taken: set[str], count: int) -> tuple[str, ...]:
        """Texts for the results of an instruction, of which `count` came before it in the module."""
        texts = []
        for index in range(len(instruction.types)):
            name = "" if self._canonical or index >= len(instruction.names) else instruction.names[index]
            if name and name not in taken and is_value_name(name):
                taken.add(name)
                texts.append(f"%{name}")
            else:
                texts.append(f"%{count + index}")
        return tuple(texts)

    def _origin(self, instruction: Instruction, results: tuple[str, ...], *, named: bool) -> str:
        """What follows the type: the names that the results' texts do not tell, and the source node."""
        if not named:
            return ""
        text = ""
        names = [
            "_" if not name or (result == f"%{name}" and is_value_name(name)) else quote(name)
            for name, result in zip(instruction.names, results, strict=False)
        ]
        if any(name != "_" for name in names):
            text = f" as {', '.join(names)}"
        if instruction.source and not self._canonical:
            text += f" from {quote(instruction.source)}"
        return text

    def _instruction(self, instruction: Instruction, names: dict[Instruction, tuple[str, ...]], indent: str) -> str:
        op = instruction.op
        results = names[instruction]
        left = f"{', '.join(results)} = " if results else ""
        if isinstance(op, Constant):
            return f"{left}constant {literal_text(op.literal)}"
        version = "" if op.version == 1 else f"@{op.version}"
        operands = ", ".join("_" if value is None else _operand(value, names) for value in instruction.operands)
        types = f" : {', '.join(map(self.type, instruction.types))}" if results else ""
        return f"{left}{op.name}{version}({operands}){self._attributes(op, indent)}{types}"

    def _attributes(self, op: Op, indent: str) -> str:
        fields = self._fields.get(type(op))
        if fields is None:
            fields = self._fields[type(op)] = _default_texts(type(op))
        texts = []
        for name, default in fields:
            text = self.attribute(getattr(op, name), indent + _INDENT)
            if text != default:
                texts.append(f"{name} = {text}")
        if not texts:
            return ""
        if any("\n" in text for text in texts):
            separator = f",\n{indent}{_INDENT}"
            return f" {{\n{indent}{_INDENT}{separator.join(texts)}\n{indent}}}"
        return f" {{{', '.join(texts)}}}"

    def attribute(self, value: Any, indent: str = "") -> str:
        """The text of an attribute's value; `indent` is that of the line it stands in.

        Raises InternalError for a value of a type that attributes do not have.
        """
        match value:
            case None:
                return "none"
            case bool():
                return "true" if value else "false"
            case int():
                return str(value)
            case float():
                return float.__repr__(value)
            case str():
                return quote(value)
            case tuple():
                return f"[{', '.join([self.attribute(element, indent) for element in value])}]"
            case Dim():
                return self.dim(value)
            case DType():
                return value.name
            case Formula():
                return str(value)
            case Literal():
                return literal_text(value)
            case Module():
                return "\n".join(self.module(value, indent, outermost=False)).lstrip()
            case TensorType() | SequenceType() | OptionalType() | MapType():
                return self.type(value)
        raise InternalError(f"an attribute holds {value!r}, a {type(value).__name__}, which the text form can't hold")

    def type(self, kind: Type) -> str:
        """The text of a type."""
        text = self._types.get(id(kind))
        if text is None:
            text = self._types[id(kind)] = self._type(kind)
        return text

    def _type(self, kind: Type) -> str:
        if isinstance(kind, TensorType):
            if kind.dims is None:
                return f"{kind.dtype}[*]"
            if self._canonical:
                for dim in kind.dims:  # a symbol is met where it stands alone, so that its number tells no name
                    if isinstance(dim, Dim) and len(symbols_in(dim)) == 1:
                        self.dim(dim)
            return f"{kind.dtype}[{', '.join([self.dim(dim) for dim in kind.dims])}]"
        if isinstance(kind, MapType):
            return f"map({kind.key}, {self.type(kind.value)})"
        noun = "sequence" if isinstance(kind, SequenceType) else "optional"
        return f"{noun}({self.type(kind.element)})"

    def dim(self, dim: DimLike) -> str:
        """The text of a dim; notes the symbols in it."""
        if isinstance(dim, int):
            return str(dim)
        text = self._dims.get(id(dim))
        if text is None:
            symbols = sorted(symbols_in(dim), key=lambda symbol: symbol.name)
            if self._canonical:
                renamed = substitute(dim, {symbol.name: self._rename(symbol) for symbol in symbols})
                symbols = sorted(symbols_in(renamed), key=lambda symbol: symbol.name)
                text = str(renamed)
            else:
                text = str(dim)
            for symbol in symbols:
                self._symbols.setdefault(symbol.name, symbol)
            self._dims[id(dim)] = text
        return text

    def _rename(self, symbol: Symbol) -> DimLike:
        if symbol.name not in self._renamed:
            # No input can bring in a name with this beginning: it marks the placeholders of inference.
            name = f"?{len(self._renamed)}"
            self._renamed[symbol.name] = symbol_dim(Symbol(name, symbol.lower, symbol.upper))
        return self._renamed[symbol.name]


def _opening(title: str, parameters: list[str], indent: str) -> Iterator[str]:
    line = f"{indent}{title}({', '.join(parameters)}) {{"
    if len(line) <= _LINE or not parameters:
        yield line
        return
    yield f"{indent}{title}("
    for parameter in parameters[:-1]:
        yield f"{indent}{_INDENT * 2}{parameter},"
    yield f"{indent}{_INDENT * 2}{parameters[-1]}) {{"


def _name(name: str) -> str:
    return name if is_word(name) else quote(name)


def _operand(value: Value, names: dict[Instruction, tuple[str, ...]]) -> str:
    results = names.get(value.instruction, ())
    # Text is also how a broken module is looked at: the validator, not the printer, refuses it.
    return results[value.index] if value.index < len(results) else "%undefined"


def _default_texts(op: type[Op]) -> tuple[tuple[str, str | None], ...]:
    """Attribute names of an op class with the texts of their defaults."""
    writer = Writer()
    found: list[tuple[str, str | None]] = []
    for entry in dataclasses.fields(op):  # type: ignore[arg-type]
        default = entry.default if entry.default_factory is dataclasses.MISSING else entry.default_factory()
        found.append((entry.name, None if default is dataclasses.MISSING else writer.attribute(default)))
    return tuple(found)
