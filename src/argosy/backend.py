"""The interface that ONNX defines for backends: `argosy.backend.prepare(model).run(inputs)`.

Source: onnx.backend.base. Devices are those of `Session`, in ONNX's spelling: "CPU" chooses the best variant for
this machine's CPU (`ref` where none was compiled), "REF" the reference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from argosy.artifact.artifact import Artifact
from argosy.compiler import compile as compile_model
from argosy.compiler import load_onnx
from argosy.errors import MissingExtraError, UsageError
from argosy.runtime.session import Session

try:
    import onnx
    from onnx.backend.base import Backend as OnnxBackend
    from onnx.backend.base import BackendRep as OnnxBackendRep
    from onnx.backend.base import namedtupledict
except ImportError:
    raise MissingExtraError("onnx", "onnx", "the backend interface") from None

__all__ = ["Backend", "BackendRep", "prepare", "run_model", "run_node", "supports_device"]

_TARGETS: Final = {"CPU": "native", "REF": "ref"}


class BackendRep(OnnxBackendRep):
    """A compiled model, ready to run."""

    def __init__(self, artifact: Artifact, device: str | None) -> None:
        self.session = Session(artifact, device=device)

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Outputs in the model's order, as a named tuple. `inputs`: one for each input in order, or by name."""
        del kwargs
        names = list(self.session.inputs)
        if isinstance(inputs, Mapping):
            given = dict(inputs)
        else:
            values = inputs if isinstance(inputs, (list, tuple)) else [inputs]
            if len(values) > len(names):
                raise UsageError(f"{len(values)} inputs are given, the model takes {len(names)}: {', '.join(names)}")
            given = dict(zip(names, values, strict=False))
        given = {name: np.asarray(value) if isinstance(value, np.generic) else value for name, value in given.items()}
        outputs = self.session.run(given)
        # ONNX allows names that Python does not; the tuple then numbers its fields.
        return namedtupledict("Outputs", list(outputs))(*outputs.values())


class Backend(OnnxBackend):
    """ONNX's backend interface over `argosy.compile` and `Session`."""

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Whether every node of the model is supported."""
        del kwargs
        try:
            load_onnx(model)
        except Exception:  # noqa: BLE001 - the question is only whether it works
            return False
        return cls.supports_device(device)

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> BackendRep:
        """Compile a model for a device. Keyword arguments are those of `argosy.compile`. Raises ArgosyError."""
        kind = device.partition(":")[0].upper()
        if not cls.supports_device(device):
            raise UsageError(f"there is no device {device!r}", hint=f"devices: {', '.join(_TARGETS)}")
        artifact = compile_model(model, targets=(_TARGETS[kind],), **kwargs)
        return BackendRep(artifact, "ref" if kind == "REF" else None)

    @classmethod
    def run_model(cls, model: onnx.ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any) -> tuple[Any, ...]:
        """Compile and run once."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Sequence[Any],
        device: str = "CPU",
        outputs_info: Sequence[tuple[Any, tuple[int, ...]]] | None = None,
        **kwargs: Any,
    ) -> tuple[Any, ...]:
        """Run one node. Output types are inferred; `opset_version` picks the operator set (default: the newest)."""
        del outputs_info
        version = kwargs.pop("opset_version", onnx.defs.onnx_opset_version())
        arrays = [np.asarray(value) for value in inputs]
        names = [name for name in node.input if name]
        entries = [
            onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in zip(names, arrays, strict=True)
        ]
        outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
        graph = onnx.helper.make_graph([node], "node", entries, outputs)
        imports = [onnx.helper.make_opsetid(node.domain, version if not node.domain else 1)]
        model = onnx.helper.make_model(graph, opset_imports=imports)
        return cls.run_model(model, dict(zip(names, arrays, strict=True)), device, **kwargs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether a device can be asked for: CPU or REF."""
        return device.partition(":")[0].upper() in _TARGETS


prepare = Backend.prepare
run_model = Backend.run_model
run_node = Backend.run_node
supports_device = Backend.supports_device
