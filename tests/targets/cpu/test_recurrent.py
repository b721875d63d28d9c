"""Recurrent layers on the CPU agree with the interpreter: sizes around panels and tiles, every option."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import argosy
from argosy.artifact.plan import CallStep, StraightBlock
from argosy.ir import Builder, Env, Module, Program
from argosy.ir.dtype import FLOAT32, dtype
from argosy.ir.interpreter import Interpreter
from argosy.ops.quantize import Dequantize
from argosy.ops.recurrent import GATES, Recurrent
from tests.targets.cpu.against_ref import agree, check
from tests.targets.cpu.loops import needs_compiler

pytestmark = needs_compiler
DEFAULTS = {"rnn": ("tanh",), "gru": ("sigmoid", "tanh"), "lstm": ("sigmoid", "tanh", "tanh")}


@dataclass(slots=True)
class Layer:
    """A layer, as a module with its arguments."""

    kind: str
    hidden: int = 19
    batch: int = 1
    direction: str = "forward"
    element: str = "float32"
    weights: bool = True
    symbolic: bool = False
    with_bias: bool = True
    lengths: bool = False
    states: bool = False
    peepholes: bool = False
    activations: tuple[str, ...] | None = None
    codes: str = ""
    """The element type of recurrent weights that are dequantised; with `scale_axis` they have several scales."""
    scale_axis: int | None = None
    inputs: int = 7
    """Of which weights of both kinds are codes where they are many."""
    options: dict[str, Any] = field(default_factory=dict)
    arguments: list[Any] = field(default_factory=list)

    def module(self) -> Module:
        rng, steps, inputs = np.random.default_rng(5), 6, self.inputs
        names = self.activations or DEFAULTS[self.kind] * (2 if self.direction == "bidirectional" else 1)
        numbers = tuple(0.3 + 0.1 * place for place in range(len(names)))
        op = Recurrent(self.kind, self.direction, names, numbers, numbers, **self.options)
        build, rows = Builder(), GATES[self.kind] * self.hidden

        def given(name: str, shape: tuple[int, ...], *, constant: bool = False) -> Any:
            value = rng.uniform(-0.5, 0.5, shape).astype(dtype(self.element).numpy)
            if constant:
                return build.constant(value)
            self.arguments.append(value)
            return build.tensor_parameter(name, self.element, self._dims(shape))

        x = given("x", (steps, self.batch, inputs))
        directions = op.directions
        shape = (directions, rows, inputs)
        coded = self.codes and inputs > 7
        w = self._dequantised(build, rng, shape) if coded else given("w", shape, constant=self.weights)
        shape = (directions, rows, self.hidden)
        r = self._dequantised(build, rng, shape) if self.codes else given("r", shape, constant=self.weights)
        b = given("b", (directions, 2 * rows), constant=self.weights) if self.with_bias else None
        lengths = None
        if self.lengths:
            self.arguments.append(rng.integers(0, steps + 1, self.batch).astype(np.int32))
            lengths = build.tensor_parameter("lengths", "int32", self._dims((self.batch,)))
        state = (directions, self.batch, self.hidden)
        h = given("h", state) if self.states else None
        c = given("c", state) if self.states and self.kind == "lstm" else None
        p = given("p", (directions, 3 * self.hidden), constant=self.weights) if self.peepholes else None
        results = build.add_all(op, x, w, r, b, lengths, h, c, p)
        return build.module({f"y{place}": result for place, result in enumerate(results)})

    def _dequantised(self, build: Builder, rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
        zero = 128 if self.codes == "uint8" else 0
        codes = (rng.integers(-128, 128, shape) + zero).astype(dtype(self.codes).numpy)
        count = () if self.scale_axis is None else shape[self.scale_axis]
        scale = rng.uniform(0.001, 0.004, count).astype(np.float32)
        zeros = [build.constant(np.full(count, zero, codes.dtype))] if zero else []
        op = Dequantize(FLOAT32, self.scale_axis or 0)
        return build.add(op, build.constant(codes), build.constant(scale), *zeros)

    def _dims(self, shape: tuple[int, ...]) -> list[Any]:
        if not self.symbolic:
            return list(shape)
        return ["steps" if size == 6 else "batch" if size == self.batch else size for size in shape]

    def check(self) -> None:
        """Native code and the interpreter agree."""
        module = self.module()
        check(module, [(self.arguments, {"steps": 6, "batch": self.batch} if self.symbolic else {})], str(self))


KINDS = ["rnn", "gru", "lstm"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("hidden", [1, 16, 33])
@pytest.mark.parametrize("batch", [1, 5, 13])
def test_sizes(kind: str, hidden: int, batch: int) -> None:
    Layer(kind, hidden, batch, lengths=batch == 13, states=batch != 5).check()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("direction", ["reverse", "bidirectional"])
def test_directions(kind: str, direction: str) -> None:
    Layer(kind, batch=9, direction=direction, lengths=True, states=True, symbolic=True).check()
    Layer(kind, batch=2, direction=direction, weights=False).check()


@pytest.mark.parametrize("element", ["float16", "bfloat16", "float64"])
def test_element_types(element: str) -> None:
    Layer("lstm", element=element, batch=3, states=True).check()
    Layer("gru", element=element, batch=3, options={"linear_before_reset": True}).check()


@pytest.mark.parametrize("with_bias", [True, False])
def test_gru_that_resets_after_the_product(with_bias: bool) -> None:
    for direction in ("forward", "bidirectional"):
        options = {"linear_before_reset": True}
        Layer("gru", batch=4, with_bias=with_bias, direction=direction, options=options, lengths=True).check()


def test_options_of_lstm() -> None:
    Layer("lstm", batch=4, peepholes=True, states=True, options={"clip": 0.4}).check()
    Layer("lstm", batch=4, peepholes=True, states=True, direction="bidirectional", weights=False).check()
    Layer("lstm", batch=4, options={"input_forget": True}, with_bias=False).check()


@pytest.mark.parametrize(
    "names", [("relu", "softsign"), ("hardsigmoid", "leakyrelu"), ("elu", "softplus"), ("affine", "scaledtanh")]
)
def test_activations(names: tuple[str, ...]) -> None:
    Layer("gru", batch=2, activations=names).check()
    Layer("gru", batch=2, activations=(*names, "sigmoid", "thresholdedrelu"), direction="bidirectional").check()


def test_a_run_packs_no_weights() -> None:
    """A run is the product of the inputs, perhaps their packing, and the steps."""
    artifact = argosy.compile(Program(Layer("lstm", 64, 3).module()), targets=("cpu",), strict=True)
    (block,) = artifact.plan(artifact.variants[0].key).body
    assert isinstance(block, StraightBlock)
    assert sum(isinstance(step, CallStep) for step in block.steps) <= 3


CODED = [
    Layer("lstm", 80, codes="int8"),
    Layer("lstm", 83, 3, "bidirectional", codes="int8", scale_axis=0, states=True, peepholes=True),
    Layer("lstm", 72, 9, "reverse", codes="uint8", scale_axis=1, lengths=True, symbolic=True),
    Layer("gru", 90, 2, codes="int8", scale_axis=1),
    Layer("gru", 90, 1, "bidirectional", codes="uint8", scale_axis=0, options={"linear_before_reset": True}),
    Layer("rnn", 140, 4, codes="int8", with_bias=False),
    Layer("lstm", 83, 3, "bidirectional", codes="uint8", scale_axis=1, inputs=70),
    Layer("gru", 76, 1, codes="int8", inputs=90, symbolic=True),
]


@pytest.mark.parametrize("layer", CODED, ids=str)
def test_recurrent_weights_stay_in_codes(layer: Layer) -> None:
    """They are multiplied as they come: nothing that is held has floats for them."""
    layer.arguments.clear()
    module = layer.module()
    artifact = argosy.compile(Program(module), targets=("cpu",), strict=True)
    plan = artifact.plan(artifact.variants[0].key)
    held = [plan.buffers[number].type for record in plan.prepare for number in record.results]
    assert any(kind.startswith("int8[") for kind in held), held
    size = GATES[layer.kind] * layer.hidden * min(layer.hidden, max(layer.inputs, 70))
    floats = [math.prod(map(int, re.findall(r"\d+", kind[7:]))) for kind in held if kind.startswith("float32")]
    assert max(floats) < size, held
    layer.arguments.clear()
    layer.check()


@pytest.mark.parametrize("level", ["x86-64-v2", "x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("layer", [CODED[1], CODED[4]], ids=str)
def test_codes_on_levels(level: str, layer: Layer) -> None:
    """Levels without products of bytes agree with the interpreter too."""
    layer.arguments.clear()
    module = layer.module()
    try:
        session = argosy.Session(argosy.compile(Program(module), targets=(level,), strict=True), device="cpu")
    except argosy.errors.DeviceError as refusal:
        pytest.skip(str(refusal))
    found = session.run(dict(zip(module.parameter_names, layer.arguments, strict=True)))
    for name, value in zip(module.result_names, Interpreter(module).run(layer.arguments, Env()), strict=True):
        agree(found[name], np.asarray(value), f"{level} {layer}")


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf, 1e33, 1e-38, 0.0])
def test_codes_meet_states_of_every_size(special: float) -> None:
    """States that are no finite numbers, that are huge, and of which one is far above the others."""
    layer = Layer("gru", 80, 3, codes="int8", states=True, with_bias=False)
    module = layer.module()
    states = layer.arguments[-1]
    states[0, 0, 5] = states[0, 1] = special
    with np.errstate(all="ignore"):
        check(module, [(layer.arguments, {})], str(special))
