"""Other engines, made ready for one set of inputs, to be timed beside ours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from argosy.errors import UsageError
from argosy.ir.types import Type
from argosy.profiling.peer import Peer, installed, refused
from argosy.profiling.torch_peer import torch_peer

__all__ = ["PEERS", "READ_ONNX", "Peer", "make_peer", "onnxruntime_peer", "openvino_peer"]


def onnxruntime_peer(
    model: str,
    feeds: Mapping[str, Any],
    *,
    threads: int,
    outputs: Iterable[str] = (),
    precision: str = "fp32",
    device: str = "cpu",
) -> Peer:
    """ONNX Runtime: all optimisations, inputs and outputs bound, and no spinning while another engine runs.

    Raises EnvironmentError_ where it is not installed or can't load or run the model.
    """
    del outputs, precision, device  # it names them itself, and its CPU kernels compute in the types of the model
    ort = installed("onnxruntime")
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    options.add_session_config_entry("session.force_spinning_stop", "1")
    try:
        session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        names = [value.name for value in session.get_outputs()]
        if all(isinstance(value, np.ndarray) and value.dtype.kind in "biuf" for value in feeds.values()):
            run = _bound(ort, session, feeds, names)
        else:
            run = lambda: session.run(names, dict(feeds))  # noqa: E731
            run()
    except Exception as error:  # noqa: BLE001 - it raises classes of its own, all told alike
        raise refused("ONNX Runtime", error) from None
    return Peer(
        f"onnxruntime {ort.__version__}, CPU",
        run,
        lambda: dict(zip(names, session.run(names, dict(feeds)), strict=True)),
    )


def _bound(ort: Any, session: Any, feeds: Mapping[str, Any], names: Sequence[str]) -> Callable[[], object]:
    binding = session.io_binding()
    for name, value in feeds.items():
        binding.bind_ortvalue_input(name, ort.OrtValue.ortvalue_from_numpy(np.require(value, requirements="C")))
    for name in names:
        binding.bind_output(name)
    session.run_with_iobinding(binding)
    declared = {info.name: info.shape for info in session.get_outputs()}
    # Outputs that are tensors get memory of their own; their shapes are fixed unless they depend on data.
    for name, value in zip(names, binding.get_outputs(), strict=True):
        if value.is_tensor() and value.shape() == declared[name]:
            binding.bind_ortvalue_output(name, value)
    return lambda: session.run_with_iobinding(binding)


def openvino_peer(
    model: str,
    feeds: Mapping[str, Any],
    *,
    threads: int,
    outputs: Iterable[str],
    precision: str = "fp32",
    device: str = "cpu",
) -> Peer:
    """OpenVINO: latency hint, the precision asked for, one stream; inputs are shared, not copied.

    `outputs` are the names of the model's, in order. Raises EnvironmentError_ where it is not installed or can't load
    or run the model.
    """
    del device
    openvino = installed("openvino")
    try:
        read = openvino.Core().read_model(model)
        given = {node: feeds[name] for node in read.inputs for name in node.names if name in feeds}
        read.reshape({node: list(value.shape) for node, value in given.items()})
        compiled = openvino.Core().compile_model(
            read,
            "CPU",
            {
                "PERFORMANCE_HINT": "LATENCY",
                "INFERENCE_PRECISION_HINT": {"bf16": "bf16", "fp16": "f16"}.get(precision, "f32"),
                "NUM_STREAMS": "1",
                "INFERENCE_NUM_THREADS": threads,
                "ENABLE_CPU_PINNING": False,
            },
        )
        request = compiled.create_infer_request()
        for node, value in given.items():
            request.set_tensor(node.any_name, openvino.Tensor(np.require(value, requirements="C"), shared_memory=True))
        request.infer()
    except Exception as error:  # noqa: BLE001 - it raises classes of its own, all told alike
        raise refused("OpenVINO", error) from None

    def results() -> dict[str, Any]:
        request.infer()
        made = [np.array(request.get_output_tensor(place).data) for place in range(len(compiled.outputs))]
        return dict(zip(outputs, made, strict=True))

    version = openvino.__version__.partition("-")[0]
    return Peer(f"openvino {version}, CPU", lambda: request.infer(share_outputs=True), results, precision)


PEERS: Final[Mapping[str, Callable[..., Peer]]] = {
    "onnxruntime": onnxruntime_peer,
    "openvino": openvino_peer,
    "torch": torch_peer,
}
READ_ONNX: Final = frozenset({"onnxruntime", "openvino"})
"""The peers that run the model that is measured; others are given a file of their own."""


def make_peer(
    spec: str,
    feeds: Mapping[str, Any],
    outputs: Mapping[str, Type],
    *,
    threads: int,
    precision: str = "fp32",
    device: str = "cpu",
) -> Peer:
    """The engine that `NAME=MODEL` names, on that file; raises UsageError for one that is not known.

    `outputs` are those of the model, by name and in order; `device` is where the session runs: cpu or cuda.
    """
    name, _, model = spec.partition("=")
    if name not in PEERS:
        raise UsageError(f"there is no peer {name!r}", hint=f"the peers are {', '.join(PEERS)}")
    if not model:
        what = ("the ONNX model", "model.onnx") if name in READ_ONNX else ("what it runs", "model.pt2")
        raise UsageError(f"{name} needs {what[0]}", hint=f"name it: {name}={what[1]}")
    present = {key: value for key, value in feeds.items() if value is not None}
    return PEERS[name](model, present, threads=threads, outputs=outputs, precision=precision, device=device)
