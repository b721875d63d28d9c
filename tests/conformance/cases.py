"""The cases of ONNX's backend suite, as the onnx package ships them: a model, data sets, tolerances.

Node cases are built in memory by the package's own code (a few seconds for all). The others lie in files.
The nine `real` cases ship a model only: the input is a ramp and the expected output lies beside the model,
as in `onnx.backend.test.runner`, which these rules follow.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests

__all__ = ["KINDS", "Case", "DataSet", "find_case", "load_cases"]

KINDS = ("node", "simple", "real", "pytorch-converted", "pytorch-operator")

_PACKAGE = Path(onnx.__file__).parent


@dataclass(frozen=True, slots=True)
class DataSet:
    """Inputs and expected outputs by name, in the model's order. Input arrays are read-only."""

    inputs: dict[str, Any]
    outputs: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Case:
    """One case. `read` gives its model and data sets; it may take a while, so it is called where they are needed."""

    kind: str
    name: str
    rtol: float
    atol: float
    read: Callable[[], tuple[onnx.ModelProto, tuple[DataSet, ...]]]

    @property
    def id(self) -> str:
        """`kind/name`, unique in the suite."""
        return f"{self.kind}/{self.name}"


@cache
def load_cases(kinds: tuple[str, ...] = KINDS) -> tuple[Case, ...]:
    """All cases of the given kinds, by name within each kind."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the package's builders overflow and divide by zero on purpose
        return tuple(
            Case(kind, test.name, test.rtol, test.atol, _reader(test))
            for kind in kinds
            for test in sorted(load_model_tests(kind=kind), key=lambda test: test.name)
        )


@cache
def _by_id(kind: str) -> dict[str, Case]:
    return {case.id: case for case in load_cases((kind,))}


def find_case(case_id: str) -> Case | None:
    """The case called `kind/name`, or None where this version of the package has none."""
    return _by_id(case_id.partition("/")[0]).get(case_id)


def _reader(test: Any) -> Callable[[], tuple[onnx.ModelProto, tuple[DataSet, ...]]]:
    if test.model is not None:
        return lambda: (test.model, tuple(_data_set(test.model, *pair) for pair in test.data_sets))
    if test.url is not None:
        return lambda: _read_light(_PACKAGE.parent / test.url)
    return lambda: _read_folder(Path(test.model_dir))


def _data_set(model: onnx.ModelProto, inputs: Sequence[Any], outputs: Sequence[Any]) -> DataSet:
    """Values stand in the order of the graph's inputs and outputs; initializers listed as inputs come last."""
    names = [entry.name for entry in model.graph.input][: len(inputs)]
    feeds = {name: _frozen(_value(item)) for name, item in zip(names, inputs, strict=True)}
    names = [entry.name for entry in model.graph.output]
    expected = {name: _value(item) for name, item in zip(names, outputs, strict=True)}
    if all(node.op_type in ("Cast", "CastLike") for node in model.graph.node):
        source = next(iter(feeds.values()))
        expected = {name: _settled(source, value) for name, value in expected.items()}
    return DataSet(feeds, expected)


def _settled(source: Any, cast: Any) -> Any:
    """A cast's result, where ONNX leaves open what it is: a float that an integer of few bits can't hold.

    The package's builder takes what ml_dtypes makes of it, which is the low bits up to 0.6 and 0 since 0.7. Argosy
    keeps the low bits on every target, so that is what its suite expects.
    """
    if not cast.dtype.name.startswith(("int2", "int4", "uint2", "uint4")) or source.dtype.kind != "f":
        return cast
    whole = np.trunc(source.astype(np.float64)).astype(np.int64)
    bits = int(cast.dtype.name[-1])
    low = whole % (1 << bits)
    signed = np.where(low >= 1 << (bits - 1), low - (1 << bits), low)
    return (low if cast.dtype.name.startswith("u") else signed).astype(np.int8).astype(cast.dtype)


def _value(item: Any) -> Any:
    """A value of the suite as ours: arrays, lists, None; texts as object arrays of str."""
    if item is None:
        return None
    if isinstance(item, onnx.TensorProto):
        item = numpy_helper.to_array(item)
    if isinstance(item, list | tuple):
        return [_value(element) for element in item]
    array = np.asarray(item)
    if array.dtype.kind not in "OUS":
        return array
    texts = np.empty(array.shape, object)
    texts[...] = [] if array.size == 0 else _texts(array)
    return texts


def _texts(array: Any) -> Any:
    return np.frompyfunc(lambda text: text.decode() if isinstance(text, bytes) else str(text), 1, 1)(array)


def _frozen(value: Any) -> Any:
    """The value, its arrays copied and made read-only: who writes to an input is found out."""
    if isinstance(value, list):
        return [_frozen(element) for element in value]
    if isinstance(value, np.ndarray):
        value = value.copy()
        value.flags.writeable = False
    return value


def _read_folder(folder: Path) -> tuple[onnx.ModelProto, tuple[DataSet, ...]]:
    model = onnx.load(folder / "model.onnx")
    sets = []
    for data in sorted(folder.glob("test_data_set_*")):
        inputs = [_read_value(path, model.graph.input[index]) for index, path in _numbered(data, "input")]
        outputs = [_read_value(path, model.graph.output[index]) for index, path in _numbered(data, "output")]
        sets.append(_data_set(model, inputs, outputs))
    return model, tuple(sets)


def _numbered(folder: Path, stem: str) -> list[tuple[int, Path]]:
    count = len(list(folder.glob(f"{stem}_*.pb")))
    return [(index, folder / f"{stem}_{index}.pb") for index in range(count)]


def _read_value(path: Path, entry: onnx.ValueInfoProto) -> Any:
    content = path.read_bytes()
    which = entry.type.WhichOneof("value")
    if which == "sequence_type":
        return numpy_helper.to_list(onnx.SequenceProto.FromString(content))
    if which == "optional_type":
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(content))
    if which == "tensor_type":
        return onnx.TensorProto.FromString(content)
    raise NotImplementedError(f"{path}: values of type {which}")


def _read_light(path: Path) -> tuple[onnx.ModelProto, tuple[DataSet, ...]]:
    """A `light` model: its weights are made of ConstantOfShape, its input is 0, 1/n, 2/n, …"""
    model = onnx.load(path)
    constants = {tensor.name for tensor in model.graph.initializer}
    feeds = {}
    for entry in model.graph.input:
        if entry.name not in constants:
            shape = tuple(dim.dim_value if dim.HasField("dim_value") else 1 for dim in entry.type.tensor_type.shape.dim)
            count = int(np.prod(shape))
            feeds[entry.name] = _frozen((np.arange(count).reshape(shape) / count).astype(np.float32))
    expected = {
        entry.name: _read_value(path.with_name(f"{path.stem}_output_{index}.pb"), entry)
        for index, entry in enumerate(model.graph.output)
    }
    return model, (DataSet(feeds, {name: _value(item) for name, item in expected.items()}),)
