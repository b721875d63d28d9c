"""Where expected answers come from: ref, ref in float64, ONNX Runtime, or a file."""

from __future__ import annotations

import importlib
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from argosy.errors import EnvironmentError_, UsageError
from argosy.inputs.files import read_outputs
from argosy.ir.dtype import STRING
from argosy.ir.interpreter import Interpreter, Observer
from argosy.ir.op import Env
from argosy.ir.program import Program
from argosy.ir.types import MapType, SequenceType, TensorType, Type
from argosy.verification.widened import WideReference

__all__ = ["FileReference", "OnnxRuntimeReference", "RefReference", "Reference", "make_reference"]


class Reference(Protocol):
    """An independent answer."""

    @property
    def name(self) -> str:
        """What reports call it."""
        ...

    def answer(self, inputs: Mapping[str, Any], case: int) -> dict[str, Any]:
        """The expected outputs by name, in the model's order."""
        ...


class RefReference:
    """The program as imported, evaluated by numpy."""

    name = "ref"

    def __init__(self, program: Program) -> None:
        self._names = list(program.outputs)
        self._interpreter = Interpreter(program.main)

    def answer(self, inputs: Mapping[str, Any], case: int, observe: Observer | None = None) -> dict[str, Any]:
        """The outputs. The number of the case is that of the run, so that random numbers are the same."""
        results = self._interpreter.run(list(inputs.values()), Env({}, case), observe)
        return dict(zip(self._names, results, strict=True))


class OnnxRuntimeReference:
    """ONNX Runtime on the CPU, on the model as it is."""

    def __init__(self, model: Any, outputs: Mapping[str, Type]) -> None:
        self._outputs = outputs
        try:
            runtime = importlib.import_module("onnxruntime")
        except ImportError:
            raise EnvironmentError_(
                "the package 'onnxruntime' is not installed", hint="install it with: pip install onnxruntime"
            ) from None
        self.name = f"onnxruntime {runtime.__version__}"
        options = runtime.SessionOptions()
        options.log_severity_level = 3
        source = str(model) if isinstance(model, (str, Path)) else model
        if hasattr(source, "SerializeToString"):
            source = source.SerializeToString()
        if not isinstance(source, (str, bytes)):
            raise UsageError(
                "ONNX Runtime needs the ONNX model", hint="give the model itself, not a program or artifact"
            )
        try:
            self._session = runtime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # noqa: BLE001 - it raises classes of its own, all told alike
            raise EnvironmentError_(f"ONNX Runtime can't load the model: {error}", hint="use --against ref") from None

    def answer(self, inputs: Mapping[str, Any], case: int) -> dict[str, Any]:
        names = [value.name for value in self._session.get_outputs()]
        feeds = {name: value for name, value in inputs.items() if value is not None}
        try:
            values = self._session.run(names, feeds)
        except Exception as error:  # noqa: BLE001 - it raises classes of its own, all told alike
            raise EnvironmentError_(f"ONNX Runtime can't run the model: {error}", hint="use --against ref") from None
        return {name: _as_ours(value, self._outputs.get(name)) for name, value in zip(names, values, strict=True)}


class FileReference:
    """Outputs that were kept in an .npz file."""

    def __init__(self, path: str, outputs: Mapping[str, Type]) -> None:
        self.name = path
        self._values = read_outputs(Path(path), outputs)

    def answer(self, inputs: Mapping[str, Any], case: int) -> dict[str, Any]:
        return dict(self._values)


def make_reference(against: str, model: Any, program: Program) -> Reference:
    """The reference that `against` names: `ref`, `ref64`, `onnxruntime`, or the path of an .npz file."""
    if against == "ref":
        return RefReference(program)
    if against == "onnxruntime":
        if isinstance(model, (str, Path)) and zipfile.is_zipfile(model):
            raise UsageError("ONNX Runtime needs the ONNX model", hint="give the model instead of the artifact")
        return OnnxRuntimeReference(model, program.outputs)
    if against == "ref64":
        return WideReference(program)
    if not against.endswith(".npz"):
        raise UsageError(
            f"the reference is {against!r}", hint="use ref, ref64, onnxruntime, or an .npz file of outputs"
        )
    return FileReference(against, program.outputs)


def _as_ours(value: Any, kind: Type | None) -> Any:
    """ONNX Runtime gives sequences as lists and texts as object arrays, as we do, but numbers in dicts as Python's."""
    if isinstance(value, list):
        return [_as_ours(item, kind.element if isinstance(kind, SequenceType) else None) for item in value]
    if isinstance(value, dict) and isinstance(kind, MapType) and isinstance(kind.value, TensorType):
        texts = kind.value.dtype is STRING
        return value if texts else {key: kind.value.dtype.numpy.type(item) for key, item in value.items()}
    return np.asarray(value) if isinstance(value, np.generic) else value
