"""Reads what stands inside a statement of the text form: names, types, dims, attributes and constants."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from argosy.errors import ArgosyError, ModelError
from argosy.ir.dim import FUNCTIONS, DimLike, Symbol, symbol_dim
from argosy.ir.dtype import DTYPES, DType
from argosy.ir.formula import Constant, Formula, Ref, Step
from argosy.ir.lexer import Cursor, unquote, unquote_bytes
from argosy.ir.literal import Literal
from argosy.ir.literal_text import Bits, Scalar, literal_of
from argosy.ir.module import Module
from argosy.ir.scalar import PRIMITIVES
from argosy.ir.types import MapType, OptionalType, SequenceType, TensorType, Type

__all__ = ["Literals", "ValueParser"]

Literals: TypeAlias = Mapping[str, Literal] | Callable[[str], Literal]
"""Where constants come from that the text names by their digest."""

_WORDS: dict[str, Any] = {"none": None, "true": True, "false": False, "nan": float("nan"), "inf": float("inf")}


class ValueParser(Cursor, ABC):
    """A method for each kind of value; every one starts at its first token. `symbols` are those declared."""

    def __init__(self, text: str, literals: Literals) -> None:
        super().__init__(text)
        self._literals = literals
        self.symbols: dict[str, DimLike] = {}

    # ---- dims and types

    def declare_symbol(self) -> None:
        """`name: lower..upper`, where the upper bound may be missing."""
        at = self.position
        name = self._symbol_name()
        if name in self.symbols:
            raise self.fault("a symbol that is not declared yet", at)
        self.expect(":")
        lower = self.integer()
        self.expect("..")
        upper = self.integer() if self.token.kind == "int" or self.token.text == "-" else None
        if upper is not None and upper < lower:
            raise ModelError(f"the bounds {lower}..{upper} hold no number", where=self.where(at))
        self.symbols[name] = symbol_dim(Symbol(name, lower, upper))

    def _symbol_name(self) -> str:
        if self.token.kind == "symbol":
            return self.convert("symbol", "a symbol", lambda text: unquote(text[1:]))
        return self.word()

    def dim(self) -> DimLike:
        """A dim in normal form: a sum of products, without parentheses but those of functions."""
        total = 0 - self._product() if self.take("-") else self._product()
        while True:
            if self.take("+"):
                total = total + self._product()
            elif self.take("-"):
                total = total - self._product()
            else:
                return total

    def _product(self) -> DimLike:
        product = self._factor()
        while self.take("*"):
            product = product * self._factor()
        return product

    def _factor(self) -> DimLike:
        if self.token.kind == "int":
            return self.integer()
        if self.token.text in FUNCTIONS and self.token.kind == "word":
            return self._call()
        at = self.position
        if self.token.kind not in ("word", "symbol"):
            raise self.fault("a number, a symbol or a function of dims")
        found = self.symbols.get(self._symbol_name())
        if found is None:
            raise ModelError(
                f"there is no symbol {self._tokens[at].text}",
                where=self.where(at),
                hint="every symbol is declared before the module: symbol N: 0..",
            )
        return found

    def _call(self) -> DimLike:
        at = self.position
        function = FUNCTIONS[self.word()]
        self.expect("(")
        left = self.dim()
        self.expect(",")
        right = self.dim()
        self.expect(")")
        try:
            return function(left, right)
        except ArgosyError as error:
            raise error.at(self.where(at)) from None

    def dtype(self) -> DType:
        """The name of an element type."""
        found = DTYPES.get(self.token.text) if self.token.kind == "word" else None
        if found is None:
            raise self.fault("an element type")
        self.position += 1
        return found

    def type(self) -> Type:
        """`float32[N, 3]`, `float32[*]`, `sequence(…)`, `optional(…)` or `map(int64, …)`."""
        if self.take_word("sequence"):
            return SequenceType(self._inner_type())
        if self.take_word("optional"):
            return OptionalType(self._inner_type())
        if self.take_word("map"):
            self.expect("(")
            key = self.dtype()
            self.expect(",")
            value = self.type()
            self.expect(")")
            return MapType(key, value)
        element = self.dtype()
        self.expect("[")
        return self._tensor(element)

    def _inner_type(self) -> Type:
        self.expect("(")
        kind = self.type()
        self.expect(")")
        return kind

    def _tensor(self, element: DType) -> TensorType:
        if self.take("*"):
            self.expect("]")
            return TensorType(element, None)
        dims: list[DimLike] = []
        while not self.take("]"):
            if dims:
                self.expect(",")
            dims.append(self.dim())
        return TensorType(element, tuple(dims))

    # ---- attributes

    @abstractmethod
    def module(self) -> Module:
        """A module in place, as an attribute's value."""

    def attribute(self) -> Any:
        """The value of an attribute, of any kind that the printer writes."""
        token = self.token
        match token.kind, token.text:
            case "word", "module":
                return self.module()
            case "word", ("none" | "true" | "false" | "nan" | "inf"):
                self.position += 1
                return _WORDS[token.text]
            case "word", ("sequence" | "optional" | "map"):
                return self.type()
            case "word", text if text in DTYPES:
                return self._typed()
            case "string", _:
                return self.string()
            case "mark", "[":
                return self._tuple()
            case "mark", "|":
                return self.formula()
            case "mark", "-" if self.following.kind == "float" or self._follows("inf"):
                return self._float()
            case "float", _:
                return self._float()
        return self.dim()

    def _follows(self, word: str) -> bool:
        token = self.following
        return token.kind == "word" and token.text == word

    def _float(self) -> float:
        negative = self.take("-")
        if self.take_word("inf"):
            number = float("inf")
        elif self.take_word("nan"):
            number = float("nan")
        else:
            number = self.convert("float", "a number with a point or an exponent", float)
        return -number if negative else number

    def _tuple(self) -> tuple[Any, ...]:
        self.expect("[")
        elements: list[Any] = []
        while not self.take("]"):
            if elements:
                self.expect(",")
            elements.append(self.attribute())
        return tuple(elements)

    def _typed(self) -> DType | TensorType | Literal:
        """What starts with an element type: that type, a tensor type, or a literal."""
        element = self.dtype()
        if not self.take("["):
            return element
        kind = self._tensor(element)
        token = self.token
        is_literal = token.kind == "digest" or (token.kind == "word" and token.text in ("dense", "splat"))
        return self.literal(kind) if is_literal else kind

    def formula(self) -> Formula:
        """`|x0, x1| t0 = mul(x0, 2.0); add(t0, x1)`."""
        refs: dict[str, int] = {}
        self.expect("|")
        while not self.take("|"):
            if refs:
                self.expect(",")
            if self.token.text != f"x{len(refs)}":
                raise self.fault(f"x{len(refs)}")
            refs[self.word()] = len(refs)
        arity = len(refs)
        steps: list[Step] = []
        while True:
            name = f"t{len(steps)}"
            named = self.take_word(name)
            if named:
                self.expect("=")
            steps.append(self._step(refs))
            if not named:
                return Formula(arity, tuple(steps))
            self.expect(";")
            refs[name] = len(refs)

    def _step(self, refs: dict[str, int]) -> Step:
        at = self.position
        primitive = PRIMITIVES.get(self.word())
        if primitive is None:
            raise self.fault("a scalar primitive", at)
        target = None
        if self.take("["):
            target = self.dtype()
            self.expect("]")
        args: list[Ref] = []
        self.expect("(")
        while not self.take(")"):
            if args:
                self.expect(",")
            args.append(self._ref(refs))
        if len(args) != primitive.arity or (primitive.signature == "convert") != (target is not None):
            raise self.fault(f"{primitive.name} with {primitive.arity} arguments and the type that it needs", at)
        return Step(primitive.name, tuple(args), target)

    def _ref(self, refs: dict[str, int]) -> Ref:
        token = self.token
        if token.kind == "word" and token.text in refs:
            self.position += 1
            return refs[token.text]
        value = self._number()
        if isinstance(value, (bool, int, float)):
            return Constant(value)
        raise self.fault("an input, an earlier step or a number")

    def _number(self) -> bool | int | float | None:
        """A number with its sign, or None where none stands here."""
        for word in ("true", "false"):
            if self.take_word(word):
                return word == "true"
        token = self.following if self.token.text == "-" else self.token
        if token.kind == "int":
            return self.integer()
        if token.kind == "float" or (token.kind == "word" and token.text in ("inf", "nan")):
            return self._float()
        return None

    # ---- constants

    def literal(self, kind: Type) -> Literal:
        """What follows the type of a constant: `dense(…)`, `splat(…)` or `sha256:…`."""
        at = self.position
        shape = kind.dims if isinstance(kind, TensorType) else None
        sizes = tuple(dim for dim in shape or () if isinstance(dim, int) and dim >= 0)
        if not isinstance(kind, TensorType) or shape is None or len(sizes) != len(shape):
            raise ModelError(f"a constant can't be of the type {kind}", where=self.where(at))
        if self.token.kind == "digest":
            digest = self.next("digest", "a digest").removeprefix("sha256:")
            return self._lookup(digest, kind.dtype, sizes, at)
        splat = self.take_word("splat")
        if not splat:
            self.expect_word("dense")
        elements: list[Scalar] = []
        self.expect("(")
        while not self.take(")"):
            if elements:
                self.expect(",")
            elements.append(self._element())
        count = 1 if splat else math.prod(sizes)
        if len(elements) != count:
            raise ModelError(f"{len(elements)} elements for {count}", where=self.where(at))
        try:
            return literal_of(kind.dtype, sizes, elements, splat=splat)
        except ModelError as error:
            raise error.at(self.where(at)) from None

    def _element(self) -> Scalar:
        match self.token.kind:
            case "string":
                return self.string()
            case "bytes":
                return self.convert("bytes", "bytes in hex digits", unquote_bytes)
            case "bits":
                return Bits(self.next("bits", "bits"), 16)
        if self.take("["):
            real = self._float()
            self.expect(",")
            imaginary = self._float()
            self.expect("]")
            return complex(real, imaginary)
        value = self._number()
        if value is None:
            raise self.fault("an element")
        return value

    def _lookup(self, digest: str, dtype: DType, shape: tuple[int, ...], at: int) -> Literal:
        found = self._literals(digest) if callable(self._literals) else self._literals.get(digest)
        if found is None:
            raise ModelError(f"there is no constant with the content {digest}", where=self.where(at))
        if (found.dtype, found.shape, found.is_splat) == (dtype, shape, False):
            return found
        # The digest is of the content alone: the same bytes may be wanted in another shape or type.
        count = math.prod(shape)
        if dtype.kind == "string" and found.dtype.kind == "string" and found.stored.size == count:
            return Literal(dtype, shape, found.stored, is_splat=False)
        if dtype.kind == "string" or found.dtype.kind == "string" or found.nbytes != dtype.byte_size(count):
            raise ModelError(f"{found} does not fit {dtype}{list(shape)}", where=self.where(at))
        return Literal.packed(dtype, shape, found.stored.view(np.uint8))
