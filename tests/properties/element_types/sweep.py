"""Every type that a schema allows, one variable of a sample at a time: imported, run, compared.

What is expected comes from `onnx.reference`, which computes the same numbers in a wider type (float64, int64,
complex128) wherever the op allows one; that is rounded, or wrapped, to the type of the output.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import ml_dtypes
import numpy as np
import onnx
from onnx import ModelProto, NodeProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from argosy.errors import ArgosyError, ModelError
from argosy.frontends.onnx import load
from argosy.ir import Env
from argosy.ir.dtype import Array, DType, dtype_of
from argosy.ir.interpreter import Interpreter
from tests.properties.element_types.kinds import Kind, as_element
from tests.properties.element_types.samples import NEWEST, Sample, few, samples, schemas

__all__ = ["Variant", "Verdict", "judge", "variants"]

_COUPLED: Final = {"SequenceInsert": {"S": "T", "T": "S"}}
"""Variables that stand for one element type, though the schema does not say so."""
_ATTRIBUTES: Final = {
    "Cast": {"T2": "to"},
    "BitCast": {"T2": "to"},
    "EyeLike": {"T2": "dtype"},
    "Bernoulli": {"T2": "dtype"},
    "Multinomial": {"T2": "dtype"},
    "RandomNormal": {"T": "dtype"},
    "RandomUniform": {"T": "dtype"},
    "RandomNormalLike": {"T2": "dtype"},
    "RandomUniformLike": {"T2": "dtype"},
    "SequenceEmpty": {"S": "dtype"},
    "HannWindow": {"T2": "output_datatype"},
    "HammingWindow": {"T2": "output_datatype"},
    "BlackmanWindow": {"T2": "output_datatype"},
    "MelWeightMatrix": {"T3": "output_datatype"},
    "DequantizeLinear": {"T3": "output_dtype"},
    "Constant": {"T": "value"},
    "ConstantOfShape": {"T2": "value"},
}
"""Attributes that choose the type of an output, by op and type variable; `value` is a tensor of it."""
_RANDOM: Final = frozenset(name for name in _ATTRIBUTES if name.startswith("Random")) | {"Bernoulli", "Multinomial"}
_ROUNDS: Final = frozenset({"Cast", "CastLike", "QuantizeLinear"})
"""Ops whose result in a wider type is another one; each has a test of its own."""
_INTERPOLATES: Final = frozenset({"GridSample"})
"""Ops that onnx.reference computes in the type of the input, integers too: there it truncates on the way."""
_NO_REFERENCE: Final = frozenset({"Dropout", "MeanVarianceNormalization", "Optional", "TfIdfVectorizer"})
"""Ops that onnx.reference can't compute in another type, or gives in another form."""
_UNDEFINED: Final = {
    ("BitCast", "T1"): "the widths differ",
    ("BitCast", "T2"): "the widths differ",
    ("Col2Im", "T"): "strings have no sum",
    ("GridSample", "T1"): "there is no sampling",
    ("Resize", "T1"): "strings can't be resized",
    ("ScatterElements", "T"): "is not defined for",
    ("ScatterND", "T"): "is not defined for",
    ("Cast", "T1"): "is no number that fits",
    ("CastLike", "T1"): "is no number that fits",
}
"""What a schema allows and its text gives no meaning, and what the refusal says."""
_UNLIKE: Final = {
    ("Attention", "U"): "int",  # it puts minus infinity into integers
    ("CenterCropPad", "T"): "string",  # it fills up with the number 0
    ("GridSample", "T1"): "string",
    ("Resize", "T1"): "complex",  # it drops the imaginary part
}
"""Where onnx.reference means something else, by the kind of the element type."""


@dataclass(frozen=True)
class Variant:
    """A sample with `variable` standing for `kind`."""

    sample: Sample
    variable: str
    kind: Kind
    allowed: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.sample.node.op_type} ({self.sample.name}): {self.variable} = {self.kind}"


@dataclass(frozen=True)
class Verdict:
    """`agrees`, `not compared` (the types are right), `refused` with reason, or `fails`; and why."""

    kind: str
    why: str = ""


def variants(*, every: bool) -> Iterator[Variant]:
    """Those of every sample or of a few, in a fixed order."""
    for op, found in samples().items():
        for sample in found if every else few(found):
            for constraint in schemas()[op].type_constraints:
                variable, allowed = constraint.type_param_str, tuple(constraint.allowed_type_strs)
                if variable in sample.bound or variable in _ATTRIBUTES.get(op, {}):
                    for text in allowed:
                        kind = Kind.of(text)
                        if _holds(sample, variable, kind):
                            yield Variant(sample, variable, kind, allowed)


def _holds(sample: Sample, variable: str, kind: Kind) -> bool:
    """Whether values of the sample can have that type: as many lists inside each other."""
    depths = {
        "seq" in (found.containers if found else ())
        for index, found in enumerate(sample.kinds)
        if found is not None and sample.variable(index) == variable
    }
    return depths <= {"seq" in kind.containers}


def judge(variant: Variant) -> Verdict:
    """Import and run it, look at types and shapes, compare the numbers where they have a reference."""
    sample, node = variant.sample, variant.sample.node
    kinds = [_kind(variant, index, variant.kind) for index in range(len(sample.values))]
    values = [
        value if kind is None or _fixed(variant, index) else as_element(value, kind.dtype)
        for index, (value, kind) in enumerate(zip(sample.values, kinds, strict=True))
    ]
    try:
        program = load(_model(_typed(node, variant, variant.kind), values, kinds))
        feeds = dict(zip(node.input, values, strict=True))
        found = Interpreter(program.main).run([feeds[name] for name in program.inputs], Env())
    except ArgosyError as error:
        reason = _UNDEFINED.get((node.op_type, variant.variable))
        if isinstance(error, ModelError) and reason and reason in error.what:
            return Verdict("refused", error.what)
        return Verdict("fails", f"refused: {error.what}")
    outputs = [index for index, name in enumerate(node.output) if name]
    for index, value in zip(outputs, found, strict=True):
        wanted = _kind_of_output(variant, index)
        if wanted is not None and not _has_type(value, wanted.dtype):
            return Verdict("fails", f"output {index} is {_types(value)}, declared {wanted.dtype}")
    expected = _expected(variant, values, kinds)
    if expected is None:
        return Verdict("not compared")
    for index, have, want in zip(outputs, found, expected, strict=True):
        why = _difference(have, want)
        if why and not _is_unlike(variant):
            return Verdict("fails", f"output {index}: {why}")
    return Verdict("agrees")


def _is_unlike(variant: Variant) -> bool:
    kind = _UNLIKE.get((variant.sample.node.op_type, variant.variable))
    return kind is not None and variant.kind.dtype.kind in (kind, f"u{kind}")


def _fixed(variant: Variant, index: int) -> bool:
    """Whether an input keeps its type."""
    variable = variant.sample.variable(index)
    return variable not in (variant.variable, _COUPLED.get(variant.sample.node.op_type, {}).get(variant.variable))


def _kind(variant: Variant, index: int, kind: Kind) -> Kind | None:
    own = variant.sample.kinds[index]
    return (
        own
        if own is None or _fixed(variant, index)
        else Kind(kind.containers if _varies(variant, index) else own.containers, kind.name)
    )


def _varies(variant: Variant, index: int) -> bool:
    return variant.sample.variable(index) == variant.variable


def _kind_of_output(variant: Variant, index: int) -> Kind | None:
    """The type that the schema gives an output; None where the inputs do not tell."""
    variable = variant.sample.result(index)
    if variable == variant.variable:
        return variant.kind
    if "(" in variable:
        return Kind.of(variable)
    for place, kind in enumerate(variant.sample.kinds):
        if kind is not None and variant.sample.variable(place) == variable:
            return _kind(variant, place, variant.kind)
    return None


def _typed(node: NodeProto, variant: Variant, kind: Kind) -> NodeProto:
    """The node with the attribute that chooses the type, if it is one that does."""
    name = _ATTRIBUTES.get(node.op_type, {}).get(variant.variable)
    if name is None:
        return node
    made = NodeProto()
    made.CopyFrom(node)
    kept = [entry for entry in made.attribute if entry.name != name]
    number = kind.number
    if name == "value":
        old = next((entry.t for entry in node.attribute if entry.name == name), None)
        array = np.ones(1) if old is None else numpy_helper.to_array(old)
        narrow = as_element(array, variant.kind.dtype)
        kept.append(helper.make_attribute(name, numpy_helper.from_array(as_element(narrow, kind.dtype))))
    else:
        kept.append(helper.make_attribute(name, number))
    del made.attribute[:]
    made.attribute.extend(kept)
    return made


def _model(node: NodeProto, values: list[Any], kinds: list[Kind | None]) -> ModelProto:
    given = {name: kind.proto(value) for name, value, kind in zip(node.input, values, kinds, strict=True) if kind}
    inputs = [helper.make_value_info(name, kind) for name, kind in given.items()]
    outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
    graph = helper.make_graph([node], "one_node", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", NEWEST)])


def _expected(variant: Variant, values: list[Any], kinds: list[Kind | None]) -> list[Any] | None:
    """What onnx.reference makes of the same numbers in a wide type; None where it can't."""
    op = variant.sample.node.op_type
    wide = _wide(variant)
    if wide is None or op in _RANDOM | _ROUNDS | _NO_REFERENCE or "optional" in wide.containers:
        return None
    if any(np.size(value) == 0 for value in values if isinstance(value, np.ndarray)):
        return None  # the extremes of nothing are those of the type
    wider = [_kind(variant, index, wide) for index in range(len(values))]
    inputs = [
        value if kind is None or _fixed(variant, index) else as_element(value, kind.dtype)
        for index, (value, kind) in enumerate(zip(values, wider, strict=True))
    ]
    node = _typed(variant.sample.node, variant, wide)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            evaluator = ReferenceEvaluator(_model(node, inputs, wider))
            given = {name: value for name, value in zip(node.input, inputs, strict=True) if name}
            return list(evaluator.run(None, given))
    except Exception:  # noqa: BLE001 - it raises whatever its kernels meet in a type that they were not made for
        return None


def _wide(variant: Variant) -> Kind | None:
    """The widest allowed type in which the numbers mean the same."""
    dtype = variant.kind.dtype
    choices = {"float": ("double", "float"), "int": ("int64", "double", "float"), "complex": ("complex128",)}
    kinds = choices.get(dtype.kind.replace("uint", "int"), (variant.kind.name,))
    if dtype.is_integer and variant.sample.node.op_type in _INTERPOLATES:
        kinds = ("double",)
    allowed = {Kind.of(text) for text in variant.allowed}
    return next(
        (Kind(variant.kind.containers, name) for name in kinds if Kind(variant.kind.containers, name) in allowed), None
    )


def _has_type(value: Any, dtype: DType) -> bool:
    if isinstance(value, list):
        return all(_has_type(item, dtype) for item in value)
    return value is None or np.asarray(value).dtype == dtype.numpy


def _types(value: Any) -> str:
    return str([_types(item) for item in value]) if isinstance(value, list) else str(np.asarray(value).dtype)


def _difference(have: Any, want: Any) -> str:
    """What is wrong with an output, or an empty text."""
    if isinstance(have, list):
        if len(have) != len(want):
            return f"{len(have)} elements, expected {len(want)}"
        return next((why for pair in zip(have, want, strict=True) if (why := _difference(*pair))), "")
    if have is None or want is None:
        return "" if have is None and want is None else f"found {have}, expected {want}"
    have, want = np.asarray(have), np.asarray(want)
    if have.shape != want.shape:
        return f"the shape is {have.shape}, expected {want.shape}"
    dtype = dtype_of(have.dtype)
    if dtype.is_integer:
        wrong = _apart(have, want, dtype)
    elif dtype.kind in ("float", "complex"):
        wrong = _off(have, want, dtype)
    else:
        wrong = have != want
    return f"{have[wrong][:4]}, expected {want[wrong][:4]}" if np.any(wrong) else ""


def _apart(have: Array, want: Array, dtype: DType) -> Array:
    """Where integers differ, in as many bits as the type has."""
    if want.dtype.kind == "f":
        want = np.trunc(want)
    left, right = have.astype(np.int64), want.astype(np.int64)
    mask = np.int64((1 << dtype.bits) - 1) if dtype.bits < 64 else np.int64(-1)
    return ((left ^ right) & mask) != 0


def _off(have: Array, want: Array, dtype: DType) -> Array:
    """Where floats differ by more than a step of theirs, or a quarter of a step of the greatest."""
    wide = np.complex128 if dtype.kind == "complex" else np.float64
    left, right = have.astype(wide), want.astype(wide)
    finite = np.isfinite(right)
    greatest = float(np.abs(right[finite]).max(initial=0.0))
    step = 1e-5
    if dtype.kind == "float":
        info: Any = ml_dtypes.finfo(dtype.numpy)  # type: ignore[no-untyped-call]
        step = max(float(info.eps), step)
        finite &= np.abs(right) <= float(info.max)
        if float(info.min) > 0:
            finite &= right > 0
    with np.errstate(all="ignore"):
        close = np.abs(left - right) <= step * np.abs(right) + step / 4 * greatest
        same = close | (left == right) | (np.isnan(left) & np.isnan(right))
    # What the type can't hold: infinity, the greatest or NaN, as the op has it.
    return ~same & (finite | np.isnan(right))
