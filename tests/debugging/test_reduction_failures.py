"""Errors, crashes and hangs of the compiler are reduced too, and what a command of the user looks for."""

from __future__ import annotations

import os
import runpy
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import argosy
from argosy.compiler import resolve_targets
from argosy.debugging import Reduced, reduce_model
from argosy.debugging.reduction.checks import Verification, _outcome
from argosy.debugging.reduction.child import Child
from argosy.debugging.reduction.outcome import Outcome
from argosy.errors import ArgosyError, CompileError, DeviceError, UsageError
from argosy.frontends.onnx.importer import Scope
from argosy.ir.module import Module
from argosy.options import CompileOptions, plain_environment
from argosy.verification import Tolerance
from tests.debugging.faults.catalog import FAULTS
from tests.debugging.planting import ModelBuilder, array, is_maximum, plant
from tests.targets.mirror import MirrorTarget

TARGETS = [MirrorTarget(1)]


def failing(name: str = "culprit") -> ModelBuilder:
    """A chain of 30 nodes with a maximum in it."""
    build = ModelBuilder(2, 8)
    build.chain(14)
    build.add("ReduceMax", axes=[1], keepdims=1, name=name)
    build.add("Mul", "b")
    build.chain(14)
    return build


def at_maximum(act: Callable[[], None]) -> Callable[[Module], Module]:
    """A fault that shows where a module has a maximum along axes."""

    def change(module: Module) -> Module:
        if any(map(is_maximum, module.walk())):
            act()
        return module

    return change


def reduced(model: Any, kind: str, **arguments: Any) -> Reduced:
    found = reduce_model(model, targets=TARGETS, **arguments)
    assert found is not None
    assert found.kind == kind
    onnx.checker.check_model(found.model, full_check=True)
    return found


def raise_compile_error() -> None:
    raise CompileError("there is no register left for 'v14' of 30", where="culprit")


def raise_key_error() -> None:
    raise KeyError("lost")


@pytest.mark.parametrize(("act", "told"), [(raise_compile_error, "no register"), (raise_key_error, "KeyError")])
def test_an_error_of_the_compiler(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, act: Callable[[], None], told: str
) -> None:
    plant(monkeypatch, at_maximum(act))
    found = reduced(failing().model(), "error")
    assert found.nodes == ("culprit (ReduceMax)",)
    assert told in found.failure
    found.save(tmp_path)
    assert exit_code(tmp_path) == 1
    monkeypatch.undo()
    assert exit_code(tmp_path) == 0


def exit_code(folder: Path) -> Any:
    """What the script in a folder of a reduction exits with, here, where the fault is planted."""
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(folder / "reproduce.py"), run_name="__main__")
    return ended.value.code


def test_another_error_is_another_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tanh alone fails in its own way, a maximum together with a tanh in another: both are kept."""

    def change(module: Module) -> Module:
        tanh = any("tanh" in str(instruction.op.attributes()) for instruction in module.walk())
        if tanh and any(map(is_maximum, module.walk())):
            raise_key_error()
        if tanh:
            raise_compile_error()
        return module

    plant(monkeypatch, change)
    found = reduced(failing().model(), "error")
    assert sorted(node.op_type for node in found.model.graph.node) == ["ReduceMax", "Tanh"]


def test_a_model_that_is_refused() -> None:
    build = failing()
    build.add("Concat", build.weight("other", np.zeros((3, 3), np.float32)), axis=0, name="joined")
    build.chain(9)
    found = reduce_model(build.model(), targets=TARGETS)
    assert found is not None
    assert found.kind == "error"
    assert found.nodes == ("joined (Concat)",)


def test_a_node_that_is_not_supported() -> None:
    build = failing()
    build.add("Sing", domain="com.example", name="song")
    build.chain(9)
    model = build.model()
    model.opset_import.append(helper.make_opsetid("com.example", 1))
    found = reduce_model(model, targets=TARGETS)
    assert found is not None
    assert found.nodes == ("song (Sing)",)
    assert "com.example::Sing" in found.failure


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the fault is planted in this process alone")
def test_a_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, at_maximum(os.abort))
    found = reduced(failing().model(), "crash")
    assert found.nodes == ("culprit (ReduceMax)",)
    assert "SIGABRT" in found.failure


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the fault is planted in this process alone")
def test_a_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, at_maximum(lambda: time.sleep(600)))
    build = ModelBuilder(2, 8)
    build.add("Tanh")
    build.add("ReduceMax", axes=[1], keepdims=1, name="culprit")
    build.add("Exp")
    build.add("Tanh")
    found = reduced(build.model(), "hang", seconds=2.0, checks=5)  # a busy machine may take a second for what is good
    assert found.nodes == ("culprit (ReduceMax)",)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the fault is planted in this process alone")
@pytest.mark.parametrize(("act", "kind"), [(os.abort, "crash"), (lambda: time.sleep(600), "hang")])
def test_reading_a_model_may_crash_or_hang(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, act: Callable[[], None], kind: str
) -> None:
    """Then it does not do so here, where values of what is right are asked for."""
    real = Scope._import_node

    def guilty(self: Scope, proto: onnx.NodeProto, label: str) -> None:
        if proto.op_type == "ReduceMax":
            act()
        real(self, proto, label)

    monkeypatch.setattr(Scope, "_import_node", guilty)
    build = ModelBuilder(2, 8)
    build.add("Tanh")
    build.add("ReduceMax", axes=[1], keepdims=1, name="culprit")
    build.add("Exp")
    build.add("Tanh")
    found = reduced(build.model(), kind, seconds=2.0, checks=5)
    assert found.nodes == ("culprit (ReduceMax)",)
    assert "its inputs are made for their types alone" in caplog.text


def test_a_model_without_an_end() -> None:
    """A loop that nothing ends, whoever runs it."""
    going, on, state = (helper.make_tensor_value_info(name, kind, dims) for name, kind, dims in HEAD)
    iteration = helper.make_tensor_value_info("i", TensorProto.INT64, [])
    nodes = [helper.make_node("Identity", ["going"], ["on"]), helper.make_node("Tanh", ["state"], ["next"])]
    following = helper.make_tensor_value_info("next", TensorProto.FLOAT, [2, 8])
    body = helper.make_graph(nodes, "body", [iteration, going, state], [on, following])
    build = ModelBuilder(2, 8)
    build.add("Tanh")
    build.add_over("Loop", ["", "", build.last], name="endless", body=body)
    build.add("Exp")
    found = reduced(build.model(), "hang", seconds=2.0, checks=4)
    assert found.nodes[0] == "endless (Loop)"


HEAD = [("going", TensorProto.BOOL, []), ("on", TensorProto.BOOL, []), ("state", TensorProto.FLOAT, [2, 8])]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the fault is planted in this process alone")
def test_a_fault_of_a_device_is_looked_for_in_children() -> None:
    """What runs there needs threads of its own: those of this process, which has used them, are not in a fork."""
    fault = next(fault for fault in FAULTS if fault.name == "barrier")
    asked: dict[str, Any] = {"targets": fault.targets, "device": fault.device, "dims": {"N": 5}}
    assert argosy.verify(fault.model(), **asked).passed
    with fault.plant():
        found = reduce_model(fault.model(), **asked, seconds=100.0)
    assert found is not None
    assert (found.kind, found.nodes) == ("error", ("guilty (MatMul)",))
    assert "a race" in found.failure
    nodes = {node.name or node.op_type for node in fault.model().graph.node}
    assert found.failure.partition(": ")[0] in nodes, "where in the model, before the kernel that does it"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the fault is planted in this process alone")
@pytest.mark.parametrize(("act", "code"), [("os.abort()", 1), ("time.sleep(600)", 1), ("None", 0)])
def test_a_script_looks_for_a_crash_or_hang_from_outside(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, act: str, code: int
) -> None:
    plant(monkeypatch, at_maximum(os.abort))
    build = ModelBuilder(2, 2)
    build.add("ReduceMax", axes=[1], keepdims=1)
    seconds = 5.0 if "sleep" in act else 60.0  # a busy machine takes its time for what ends
    reduced(build.model(), "crash", seconds=seconds).save(tmp_path)
    (tmp_path / "sitecustomize.py").write_text(FAULT.format(act=act))
    places = os.pathsep.join([str(tmp_path), *sys.path])
    done = subprocess.run(
        [sys.executable, str(tmp_path / "reproduce.py")],
        env={**plain_environment(), "PYTHONPATH": places},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert ("is there" if code else "is gone") in done.stdout


FAULT = """
import os, time
from tests.targets.mirror import MirrorTarget
real = MirrorTarget.pipeline
MirrorTarget.pipeline = lambda self, options: ({act}, real(self, options))[1]
"""


@pytest.mark.parametrize("fresh", [False, True])
def test_a_child_tells_what_a_verification_finds(*, fresh: bool) -> None:
    """A fork, or where that is not possible a new interpreter, which gets everything through a pipe."""
    right = partial(_outcome, sought("ref"), failing().model().SerializeToString(), {"x": array(2, 8)})
    with Child(100, fresh=fresh) as child:
        assert child.run(right) == Outcome("agrees")
        with pytest.raises(DeviceError, match="no device 'abacus'"):
            child.run(partial(_outcome, sought("abacus"), *right.args[1:]))


def sought(device: str) -> Verification:
    return Verification(resolve_targets(["cpu"]), device, False, "ref", Tolerance(), CompileOptions())


def test_a_function_can_not_be_written_down(tmp_path: Path) -> None:
    found = reduce_model(failing().model(), check=lambda model, _: "culprit" in {n.name for n in model.graph.node})
    assert found is not None
    found.save(tmp_path)
    assert {file.name for file in tmp_path.iterdir()} == {"model.onnx", "inputs.npz", "report.json"}


CHECK = """
import sys
import zipfile
held = zipfile.ZipFile(sys.argv[2]).namelist()
raw = open(sys.argv[1], "rb").read()
sys.exit(0 if len(held) == 1 and b"ReduceMax" in raw else 1)
"""


def test_a_command_decides(tmp_path: Path) -> None:
    script = tmp_path / "a check.py"
    script.write_text(CHECK)
    command = f"{shlex.quote(sys.executable)} {shlex.quote(str(script))} {{model}} {{inputs}}"
    found = reduced(failing().model(), "check", check=command)
    assert found.nodes == ("culprit (ReduceMax)",)
    found.save(tmp_path / "small")
    assert exit_code(tmp_path / "small") == 1
    script.write_text("raise SystemExit(3)")
    assert exit_code(tmp_path / "small") == 0


def test_a_command_without_places_gets_the_model_last() -> None:
    found = reduced(failing("grep me").model(), "check", check="grep -q 'grep me'")
    assert found.nodes == ("grep me (ReduceMax)",)


def test_a_command_that_does_not_hold_for_the_model_is_told() -> None:
    with pytest.raises(UsageError, match="does not hold for the model itself"):
        reduce_model(failing().model(), check="grep -q nothing-of-this-kind")
    with pytest.raises(UsageError, match="can't be started"):
        reduce_model(failing().model(), check="no-such-program-anywhere")


def test_a_failure_that_comes_and_goes_is_told() -> None:
    answers = iter([True, False])
    with pytest.raises(UsageError, match="does not show again"):
        reduce_model(failing().model(), check=lambda *_: next(answers))


def test_a_check_may_raise_what_ends_the_reduction() -> None:
    def check(model: onnx.ModelProto, inputs: Mapping[str, Any]) -> bool:
        raise ArgosyError("enough")

    with pytest.raises(ArgosyError, match="enough"):
        reduce_model(failing().model(), check=check)
