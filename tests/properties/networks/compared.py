"""Draws a network by its number, and compares us with ONNX Runtime on it, and our code with `ref`."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
from onnx import ModelProto, numpy_helper

import argosy
from argosy.comparison import Agree, compare
from argosy.compiler import load_onnx, resolve_targets
from argosy.frontends.onnx import load
from argosy.ir import Env
from argosy.ir.dtype import Array, DType
from argosy.ir.interpreter import Interpreter
from argosy.ir.module import Module
from argosy.ir.program import Program
from argosy.options import CompileOptions
from argosy.verification.code import Code
from tests.properties.networks import control, layers, layout, pointwise, quantised
from tests.properties.networks.network import Network, Template
from tests.properties.onnx_graphs.graph import NotDrawn, newest_opset, run_onnxruntime

__all__ = ["TEMPLATES", "Verdict", "compare_network", "draw_network"]

TEMPLATES: Final[dict[Template, int]] = {
    **pointwise.TEMPLATES,
    **layout.TEMPLATES,
    **layers.TEMPLATES,
    **quantised.TEMPLATES,
    **control.TEMPLATES,
}
_OLDEST: Final = 13
_BATCHES: Final = ((3, 1, 4), (2, 1, 17), (5, 1, 33))
_STEPS: Final = ((2, 5, 1), (7, 1, 3), (6, 16, 9))
"""Sizes of N and T in the runs, which differ so that no two dims are equal by chance."""
_LEAST, _MOST = 5, 40
_ROUNDOFF: Final = {"fp32": 2.0**-23, "fp16": 2.0**-10, "bf16": 2.0**-7}


@dataclass(frozen=True, slots=True)
class _Close(Agree):
    """As `Agree`, but at least some units in the last place of 1: outputs may be small differences."""

    def allowed(self, expected: Array, dtype: DType) -> Array:
        least = max(_ROUNDOFF[self.precision], _ROUNDOFF["fp16"] if dtype.name == "float16" else 0.0)
        return np.maximum(Agree.allowed(self, expected, dtype), 8 * least)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of one network: `agrees`; `amplified`, as it makes small changes of what it reads large; `differs`."""

    kind: str
    why: str = ""


def draw_network(number: int) -> Network:
    """Network `number`: about 5 to 40 nodes of one opset, with dynamic dims."""
    rng = random.Random(number)
    real = rng.choices(("float32", "float16", "float64"), (14, 5, 1))[0]
    symbols = {"N": rng.choice(_BATCHES), "T": rng.choice(_STEPS)}
    network = Network(rng, rng.randint(_OLDEST, newest_opset()), real, symbols)
    layers.new_input(network)
    if network.flag():
        layers.new_input(network)
    wanted = rng.randint(_LEAST, rng.choice((_MOST // 2, _MOST)))
    kinds, shares = list(TEMPLATES), list(TEMPLATES.values())
    for _ in range(8 * _MOST):
        if sum(node.op_type != "Constant" for node in network.nodes) >= wanted:
            break
        mark = network.mark
        try:
            rng.choices(kinds, shares)[0](network)
        except NotDrawn:
            network.undo(mark)
    return network


def compare_network(network: Network, place: str = "ref") -> Verdict:
    """`ref` beside ONNX Runtime, or the code for a place beside `ref`, in every run.

    A place is `cpu` or the arch of a GPU, which is emulated; perhaps with a precision, and with `bound`: then the code
    is for the sizes of the first run. With `passes` nothing is compiled: `ref` runs what the passes of any arch make of
    the network, and it is lowered to a plan.
    """
    arch, *settings = place.split(":")
    precision = next((setting for setting in settings if setting in _ROUNDOFF), "fp32")
    bound = "bound" in settings
    model = network.model()
    program = load(model)
    code: Callable[[Mapping[str, Array]], Mapping[str, Any]] | None = None
    if arch != "ref":
        dims = {name: sizes[0] for name, sizes in network.symbols.items() if bound and name in _symbols(model)}
        if "passes" in settings:
            code = partial(_run, _piped(load_onnx(program, dims=dims), arch, precision))
        else:
            made = argosy.compile(program, targets=(arch,), jobs=1, precision=precision, dims=dims)
            code = argosy.Session(made, device=arch if arch == "cpu" else f"emulated:{arch}", checked=True).run
    rule = _Close(network.quantised, precision)
    for run in network.runs[:1] if bound else network.runs:
        feeds = network.feeds(run)
        ours = _run(program.main, feeds)
        if code is None:
            expected, why = _onnxruntime(model, feeds)
            if expected is None:
                return Verdict("not run", why)
            wrong = compare(expected, ours, rule)
        else:
            wrong = compare(ours, code(feeds), rule)
        if wrong:
            kind = "amplified" if _amplifies(network, model, run, rule) else "differs"
            return Verdict(kind, f"run {run}: {'; '.join(map(str, wrong))}")
    return Verdict("agrees")


def _piped(program: Program, arch: str, precision: str) -> Module:
    """The module that an arch makes its kernels of. Raises where it makes no plan."""
    (target,) = resolve_targets([arch])
    options = CompileOptions(precision=precision)
    module = Code(target, options).piped(program.main)
    target.outline(module, options)
    return module


def _run(module: Module, feeds: Mapping[str, Array]) -> dict[str, Any]:
    results = Interpreter(module).run([feeds[name] for name in module.parameter_names], Env())
    return dict(zip(module.result_names, map(np.asarray, results), strict=True))


def _symbols(model: ModelProto) -> set[str]:
    return {dim.dim_param for entry in model.graph.input for dim in entry.type.tensor_type.shape.dim}


def _onnxruntime(model: ModelProto, feeds: Mapping[str, Array]) -> tuple[dict[str, Any] | None, str]:
    results, why = run_onnxruntime(model, dict(feeds))
    if results is None:
        return None, why
    return dict(zip((entry.name for entry in model.graph.output), map(np.asarray, results), strict=True)), ""


def _amplifies(network: Network, model: ModelProto, run: int, rule: _Close) -> bool:
    """Whether ONNX Runtime itself disagrees once inputs and constants have changed by some units in their last place.

    Then what differs says nothing: the network takes near numbers from each other, or decides by a small difference.
    """
    numbers = np.random.default_rng(run)
    least = 2.0**-10 if any(value.dtype == "float16" for value in network.values) else 2.0**-23
    step = 8 * max(least, _ROUNDOFF[rule.precision])

    def changed(array: Array) -> Array:
        if array.dtype.kind != "f":
            return array
        return np.asarray(array * (1 + step * numbers.uniform(-1, 1, array.shape))).astype(array.dtype)

    expected, _ = _onnxruntime(model, network.feeds(run))
    if expected is None:
        return False
    for _ in range(4):
        other = ModelProto()
        other.CopyFrom(model)
        for entry in other.graph.initializer:
            entry.CopyFrom(numpy_helper.from_array(changed(numpy_helper.to_array(entry)), entry.name))
        found, _ = _onnxruntime(other, {name: changed(array) for name, array in network.feeds(run).items()})
        if found is None or compare(expected, found, rule):
            return True
    return False
