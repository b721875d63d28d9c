"""Engines behind one interface: made ready once with a thread count, then run on the same inputs again and again."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

import argosy
from benchmarks.cpu.cases import Files

__all__ = ["ENGINES", "OURS", "SYMBOLIC", "Contender", "Feeds"]

OURS: Final = "argosy"
SYMBOLIC: Final = "symbolic"
Feeds = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Contender:
    """`run` does one inference and hands nothing back; `results` gives the outputs of the last one, by name."""

    name: str
    run: Callable[[], object]
    results: Callable[[], dict[str, Any]]
    session: Any


def argosy_contender(files: Files, feeds: Feeds, threads: int, precision: str) -> Contender:
    """Ours, from the saved artifact; it holds the precision."""
    del precision
    session = argosy.Session(files.artifact, threads=threads)
    values = dict(feeds)
    return Contender(OURS, lambda: session.run(values), lambda: session.run(values), session)


def symbolic_contender(files: Files, feeds: Feeds, threads: int, precision: str) -> Contender:
    """Ours for every size: the dims that the model leaves open are symbols."""
    artifact = argosy.compile(files.model, targets=["cpu"], precision=precision)
    session = argosy.Session(artifact, threads=threads)
    values = dict(feeds)
    return Contender(SYMBOLIC, lambda: session.run(values), lambda: session.run(values), session)


def onnxruntime_contender(files: Files, feeds: Feeds, threads: int, precision: str) -> Contender:
    """ONNX Runtime: all optimisations, inputs and outputs bound, and no spinning while another engine runs."""
    del precision  # its CPU kernels know fp32 and integers
    ort = importlib.import_module("onnxruntime")
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    options.add_session_config_entry("session.force_spinning_stop", "1")
    try:
        session = ort.InferenceSession(str(files.bound), options, providers=["CPUExecutionProvider"])
    except ort.capi.onnxruntime_pybind11_state.Fail:  # sizes that contradict a branch which is never taken
        session = ort.InferenceSession(str(files.model), options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    for name, value in feeds.items():
        binding.bind_ortvalue_input(name, ort.OrtValue.ortvalue_from_numpy(np.require(value, requirements="C")))
    names = [value.name for value in session.get_outputs()]
    for name in names:
        binding.bind_output(name)
    session.run_with_iobinding(binding)
    made = binding.get_outputs()
    # Outputs that are tensors get memory of their own; their shapes are fixed unless they depend on data.
    for name, info, value in zip(names, session.get_outputs(), made, strict=True):
        if value.is_tensor() and value.shape() == info.shape:
            binding.bind_ortvalue_output(name, value)

    def results() -> dict[str, Any]:
        return dict(zip(names, session.run(names, dict(feeds)), strict=True))

    return Contender("onnxruntime", lambda: session.run_with_iobinding(binding), results, session)


def openvino_contender(files: Files, feeds: Feeds, threads: int, precision: str) -> Contender:
    """OpenVINO: latency hint, the precision asked for, one stream; inputs are shared, not copied."""
    openvino = importlib.import_module("openvino")
    core = openvino.Core()
    model = core.read_model(str(files.model))
    given = {node: feeds[name] for node in model.inputs for name in node.names if name in feeds}
    model.reshape({node: list(value.shape) for node, value in given.items()})
    compiled = core.compile_model(
        model,
        "CPU",
        {
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_PRECISION_HINT": {"fp32": "f32", "bf16": "bf16", "fp16": "f16"}[precision],
            "NUM_STREAMS": "1",
            "INFERENCE_NUM_THREADS": threads,
            "ENABLE_CPU_PINNING": False,
        },
    )
    request = compiled.create_infer_request()
    for node, value in given.items():
        request.set_tensor(node.any_name, openvino.Tensor(np.require(value, requirements="C"), shared_memory=True))
    names = files.told()["outputs"]

    def results() -> dict[str, Any]:
        request.infer()
        made = [np.array(request.get_output_tensor(place).data) for place in range(len(compiled.outputs))]
        return dict(zip(names, made, strict=True))

    return Contender("openvino", lambda: request.infer(share_outputs=True), results, compiled)


ENGINES: Final[Mapping[str, Callable[[Files, Feeds, int, str], Contender]]] = {
    OURS: argosy_contender,
    SYMBOLIC: symbolic_contender,
    "onnxruntime": onnxruntime_contender,
    "openvino": openvino_contender,
}
