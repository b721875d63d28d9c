"""Every option that changes numbers reaches the code that is verified, and the rule is that of the code that runs."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import argosy
from argosy.artifact.manifest import VariantRecord
from argosy.emulation.c_engine.build import engine_reason
from argosy.emulation.refusal import NotEmulated
from argosy.options import CompileOptions
from argosy.targets.base import precision_of
from argosy.verification import Report, Tolerance
from tests.cli.conftest import Call

FLOAT = TensorProto.FLOAT
EMULATED: Final = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None or bool(engine_reason()), reason="needs triton and the emulator"
)


def model() -> onnx.ModelProto:
    """A 3x3 convolution, a logarithm and a matrix product, each an output."""
    source = np.random.default_rng(0)
    weights = {"k": source.normal(size=(16, 16, 3, 3)) * 0.1, "w": source.normal(size=(64, 32))}
    inputs: dict[str, list[int | str | None]] = {"x": [1, 16, 20, 20], "p": [4000], "a": ["N", 64]}
    graph = helper.make_graph(
        [
            helper.make_node("Conv", ["x", "k"], ["conv"], pads=[1, 1, 1, 1]),
            helper.make_node("Log", ["p"], ["log"]),
            helper.make_node("MatMul", ["a", "w"], ["dot"]),
        ],
        "g",
        [helper.make_tensor_value_info(name, FLOAT, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, FLOAT, None) for name in ("conv", "log", "dot")],
        [numpy_helper.from_array(value.astype(np.float32), name) for name, value in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def verified(arch: str = "cpu", device: str | None = None, **options: Any) -> Report:
    return argosy.verify(
        model(), targets=(arch,), device=device, against="ref64", dims={"N": 32}, options=CompileOptions(**options)
    )


def errors(report: Report) -> dict[str, float]:
    return {difference.name: difference.relative for difference in report.cases[0].differences}


def changed(report: Report) -> dict[str, int]:
    return {difference.name: difference.different for difference in report.cases[0].differences}


@pytest.mark.parametrize(("precision", "step", "share"), [("fp16", 2.0**-11, "0.01"), ("bf16", 2.0**-8, "0.05")])
@pytest.mark.parametrize("device", ["cpu", pytest.param("emulated:gfx942", marks=EMULATED)])
def test_short_products_are_verified_as_such(precision: str, step: float, share: str, device: str) -> None:
    """Their error is that of operands rounded to the type, which no float32 code has."""
    arch = device.rpartition(":")[2]
    plain, short = (verified(arch, device, precision=name) for name in ("fp32", precision))
    assert plain.passed
    assert short.passed
    for name in ("conv", "dot"):
        assert errors(plain)[name] < 1e-6
        assert step / 10 < errors(short)[name] < 2 * step
    assert f"largest difference <= {share} (float32)" in short.tolerance
    assert "largest difference <= 0.001 (float32)" in plain.tolerance


def test_accuracy_changes_functions_and_convolutions() -> None:
    exact, standard, relaxed = (verified(accuracy=name) for name in ("exact", "standard", "relaxed"))
    assert exact.passed and standard.passed and relaxed.passed  # noqa: PT018 - three of one kind
    assert changed(exact)["log"] <= 1 < changed(standard)["log"], "within half an ulp, and not"
    assert errors(relaxed)["conv"] > 3 * errors(standard)["conv"], "Winograd's F(4x4)"
    assert changed(exact)["conv"] != changed(standard)["conv"], "Winograd's F(2x2)"


@EMULATED
def test_tf32_is_what_matrix_units_are_given() -> None:
    """Emulation has no such instruction and says so: that is the code that would have been verified."""
    assert verified("gfx942", "emulated:gfx942").passed
    with pytest.raises(NotEmulated, match="xf32"):
        verified("gfx942", "emulated:gfx942", allow_tf32=True)


def test_tf32_forgives_nothing_where_no_unit_has_it() -> None:
    report = verified(allow_tf32=True)
    assert "largest difference <= 0.001 (float32)" in report.tolerance
    assert changed(report) == changed(verified())


@EMULATED
def test_numbers_of_a_gpu_are_those_of_the_code(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(model(), path)
    words = ("verify", path, "--gpu-arch", "gfx942", "--dim", "N=4", "--emulate", "--json")
    told = json.loads(call(*words, "--gpu-arch-params", "{num_cu:40}").out)
    assert "num_cu" in told["variant"] or "40" in told["variant"], told["variant"]
    assert told["variant"] != json.loads(call(*words).out)["variant"]
    assert call(*words, "--gpu-wavefront-size", "7").code == 2
    with_wave = json.loads(call(*words, "--gpu-wavefront-size", "64").out)
    assert with_wave["passed"]


def test_the_rule_is_that_of_the_variant_that_runs() -> None:
    """Of files with several variants: `ref` in one with fp16 code, a CPU beside a GPU whose units have tf32."""
    program = argosy.load_onnx(model())
    short = argosy.compile(program, targets=["cpu"], precision="fp16")
    assert "0.01 (float32)" in argosy.verify(program, short, dims={"N": 2}).tolerance
    assert "0.001 (float32)" in argosy.verify(program, short, dims={"N": 2}, device="ref", against="ref64").tolerance
    variants = {
        arch: VariantRecord("", "", arch, "", numeric={"precision": "fp32", "allow_tf32": True})
        for arch in ("x86-64-v3", "gfx90a", "gfx942", "sm_80", "sm_75")
    }
    found = {arch: precision_of(variant) for arch, variant in variants.items()}
    assert found == dict.fromkeys(("x86-64-v3", "gfx90a", "sm_75"), "fp32") | dict.fromkeys(("gfx942", "sm_80"), "tf32")
    assert Tolerance(precision="tf32").rule(program.outputs.values()).startswith("largest difference <= 0.01 (float32)")


def test_each_case_names_what_ran_it() -> None:
    report = argosy.verify(model(), targets=("cpu",), dims={"N": (1, 8)}, cases=2)
    assert report.passed
    first, second = (case.variant for case in report.cases)
    assert first != second
    assert first == report.variant
    assert f"  {second}" in str(report).splitlines(), "the rule is the same, and said once"


def test_options_that_change_no_code_are_told(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(model(), path)
    for option in ("--allow-tf32", "--fast-math"):
        words = ("compile", path, "--arch", "cpu", option, "-o", tmp_path / "m.argosy")
        assert option in call(*words).err
        assert call(*words, "--strict").code == 2
    words = ("compile", path, "--arch", "sm_80", "--allow-tf32", "-o", tmp_path / "m.argosy")
    assert "--allow-tf32" not in call(*words).err


def test_options_for_code_that_is_there_are_refused(call: Call, tmp_path: Path) -> None:
    path, artifact = tmp_path / "m.onnx", tmp_path / "m.argosy"
    onnx.save(model(), path)
    argosy.compile(path, targets=["cpu"]).save(artifact)
    answer = call("verify", path, artifact, "--fp16")
    assert answer.code == 2
    assert "compiled already" in answer.err
    with pytest.raises(argosy.errors.UsageError, match="there is an artifact"):
        argosy.verify(path, artifact, options=CompileOptions(precision="fp16"))
