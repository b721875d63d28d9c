"""The intermediate representation: what a program is. Data and invariants only; ops live in `argosy.ops`."""

from argosy.ir.builder import Builder
from argosy.ir.dim import Dim, DimLike, Symbol, symbol_dim
from argosy.ir.dtype import DTYPES, DType, dtype, dtype_of
from argosy.ir.formula import Expr, Formula
from argosy.ir.literal import Literal
from argosy.ir.module import Constant, Instruction, Module, Parameter, Value
from argosy.ir.op import Env, Op, fresh, op_class, register
from argosy.ir.program import Program
from argosy.ir.types import MapType, OptionalType, SequenceType, TensorType, Type

__all__ = [
    "DTYPES",
    "Builder",
    "Constant",
    "DType",
    "Dim",
    "DimLike",
    "Env",
    "Expr",
    "Formula",
    "Instruction",
    "Literal",
    "MapType",
    "Module",
    "Op",
    "OptionalType",
    "Parameter",
    "Program",
    "SequenceType",
    "Symbol",
    "TensorType",
    "Type",
    "Value",
    "dtype",
    "dtype_of",
    "fresh",
    "op_class",
    "register",
    "symbol_dim",
]
