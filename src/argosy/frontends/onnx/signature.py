"""What the standard says of an op's inputs: how many, and of which types.

Every node of a standard domain is checked before its handler sees it. Files that people hold break the letter of
the standard (int32 where it says int64, floats of 8 bits in any op), so that by default only another *kind* of
type is refused: a float for a shape, a text for a number, a sequence for a tensor. The rest is left to the op
with a warning, and is an error under `strict`.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from argosy.errors import ModelError
from argosy.frontends.onnx.protos import ELEMENT_TYPES
from argosy.ir.dtype import DType
from argosy.ir.module import Value
from argosy.ir.types import OptionalType, SequenceType, TensorType, Type

if TYPE_CHECKING:
    import onnx

__all__ = ["attribute_names", "check_signature", "input_name", "input_names", "input_role"]

log = logging.getLogger("argosy.onnx")

_SHOWN: Final = 6
"""Types that an error lists; of more it gives the number."""
_KINDS: Final = {"uint": "int", "bfloat": "float", "double": "float"}
# Kinds that are taken where the standard allows only this one.
_TAKEN: Final = {"int": {"int"}, "bool": {"bool", "int"}, "string": {"string"}}


@dataclass(frozen=True, slots=True)
class _Parameter:
    """One input of a schema: name, whether it must be given, whether it stands for many, the types and kinds taken."""

    name: str
    required: bool
    variadic: bool
    types: frozenset[str]
    kinds: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Signature:
    """Inputs of one version of an op: the last parameter stands for all further ones, up to `most`."""

    inputs: tuple[_Parameter, ...]
    fewest: int
    most: int
    outputs: int
    attributes: tuple[str, ...]
    since: int
    deprecated: bool

    def parameter(self, index: int) -> _Parameter:
        """The parameter that input `index` stands for."""
        return self.inputs[min(index, len(self.inputs) - 1)]


def check_signature(
    proto: onnx.NodeProto, label: str, domain: str, version: int, inputs: Sequence[Value | None], *, strict: bool
) -> None:
    """Raise ModelError where the inputs are not of a kind that the op takes; see the module for what is let pass.

    Ops without a schema (com.microsoft, functions of the model) pass.
    """
    signature = _signature(domain, proto.op_type, version)
    if signature is None:
        return
    what = f"{proto.op_type} (opset {version})"
    if signature.deprecated:
        _lenient(
            f"{proto.op_type} is deprecated since opset {signature.since}, and no op of {version}", label, strict=strict
        )
    if signature.since > version:
        _lenient(f"{proto.op_type} is an op from opset {signature.since} on, not of {version}", label, strict=strict)
    if len(inputs) > signature.most:
        _lenient(f"has {len(inputs)} inputs, {what} takes at most {signature.most}", label, strict=strict)
    if len(proto.output) > signature.outputs:
        hint = f"remove the outputs from {proto.output[signature.outputs]!r} on"
        raise ModelError(f"has {len(proto.output)} outputs, {what} gives at most {signature.outputs}", hint=hint)
    for index, value in enumerate(inputs[: signature.most]):
        parameter = signature.parameter(index)
        if value is None:
            if strict and parameter.required:
                raise ModelError(f"input {index} ({parameter.name!r} of {what}) is missing")
            continue
        found = _type_text(value.type)
        if found in parameter.types or not parameter.types:
            continue
        problem = f"input {index} ({proto.input[index]!r}) is {found}, {what} takes {_list(parameter.types)}"
        if _kind(found) not in parameter.kinds:
            raise ModelError(
                problem, hint=f"this input is {parameter.name!r} of {proto.op_type}: {_remedy(value.type)}"
            )
        _lenient(problem, label, strict=strict)
    if strict and len(inputs) < signature.fewest:
        missing = signature.parameter(len(inputs))
        raise ModelError(f"input {len(inputs)} ({missing.name!r} of {what}) is missing")


def input_name(domain: str, name: str, version: int, index: int) -> str:
    """What the standard calls input `index` of an op, or an empty string."""
    signature = _signature(domain, name, version)
    return signature.parameter(index).name if signature and signature.inputs else ""


def input_role(domain: str, name: str, version: int, index: int) -> str:
    """What the standard calls input `index` of an op, where that name is its alone; else an empty string."""
    signature = _signature(domain, name, version)
    if signature is None or not signature.inputs or signature.parameter(index).variadic:
        return ""
    return signature.parameter(index).name


def input_names(domain: str, name: str, version: int) -> tuple[str, ...]:
    """What the standard calls the inputs of an op; of one that may be left out, in brackets."""
    signature = _signature(domain, name, version)
    if signature is None:
        return ()
    return tuple(
        f"{entry.name}, …" if entry.variadic else entry.name if entry.required else f"[{entry.name}]"
        for entry in signature.inputs
    )


def attribute_names(domain: str, name: str, version: int) -> tuple[str, ...] | None:
    """The attributes that the standard gives an op; None for an op without a schema."""
    signature = _signature(domain, name, version)
    return signature.attributes if signature else None


def _remedy(kind: Type) -> str:
    """How to make another type of one."""
    if isinstance(kind, TensorType):
        return "give it a Cast"
    if isinstance(kind, SequenceType):
        return "take a tensor out of the sequence with SequenceAt, or join them with ConcatFromSequence"
    return "take its value out with OptionalGetElement" if isinstance(kind, OptionalType) else "give it a tensor"


def _lenient(what: str, label: str, *, strict: bool) -> None:
    if strict:
        raise ModelError(what, hint="fix the model, or leave out --strict-onnx")
    log.warning("%s: %s", label, what)


def _list(types: frozenset[str]) -> str:
    shown = sorted(types)
    return " or ".join(shown) if len(shown) <= _SHOWN else f"{', '.join(shown[:_SHOWN])} or {len(shown) - _SHOWN} more"


def _kind(text: str) -> str:
    """`seq(tensor(uint8))` as `seq(tensor(int))`: the structure, with what the elements are."""
    structure, _, element = text.rpartition("(")
    word = element.rstrip(")")
    if text.startswith("map"):
        return "map"
    letters = word.rstrip("0123456789") if not word.startswith("float") else "float"
    return f"{structure}({_KINDS.get(letters, letters)}"


@cache
def _signature(domain: str, name: str, version: int) -> _Signature | None:
    import onnx  # noqa: PLC0415 - an optional extra

    try:
        schema = onnx.defs.get_schema(name, version, domain)
    except onnx.defs.SchemaError:
        # Files name ops that their opset does not have yet; the first version is what they mean.
        known = onnx.defs.get_all_schemas_with_history()
        schemas = [entry for entry in known if (entry.domain, entry.name) == (domain, name)]
        if not schemas:
            return None
        schema = min(schemas, key=lambda entry: entry.since_version)
    option = onnx.defs.OpSchema.FormalParameterOption
    inputs = tuple(
        _Parameter(
            entry.name,
            entry.option == option.Single,
            entry.option == option.Variadic,
            frozenset(entry.types),
            _taken(entry.types),
        )
        for entry in schema.inputs
    )
    return _Signature(
        inputs,
        schema.min_input,
        schema.max_input,
        schema.max_output,
        tuple(sorted(schema.attributes)),
        schema.since_version,
        schema.deprecated,
    )


def _taken(types: set[str]) -> frozenset[str]:
    """The kinds that we take: those of the types, and further numbers for a number."""
    kinds = {_kind(text) for text in types}
    for structure in {kind.rpartition("(")[0] for kind in kinds}:
        elements = {kind.rpartition("(")[2] for kind in kinds if kind.rpartition("(")[0] == structure}
        only = next(iter(elements)) if len(elements) == 1 else ""
        numbers = {"bool", "int", "float", "complex"}
        taken = _TAKEN.get(only) or (elements | numbers if elements & numbers else elements)
        kinds |= {f"{structure}({element}" for element in taken}
    return frozenset(kinds)


@cache
def _element_names() -> dict[DType, str]:
    import onnx  # noqa: PLC0415

    return {kind: onnx.TensorProto.DataType.Name(number).lower() for number, kind in ELEMENT_TYPES.items()}


def _type_text(kind: Type) -> str:
    """A type as the schemas spell it, such as `seq(tensor(float))`."""
    if isinstance(kind, TensorType):
        return f"tensor({_element_names()[kind.dtype]})"
    if isinstance(kind, SequenceType):
        return f"seq({_type_text(kind.element)})"
    if isinstance(kind, OptionalType):
        return f"optional({_type_text(kind.element)})"
    return f"map({_element_names()[kind.key]},{_type_text(kind.value)})"
