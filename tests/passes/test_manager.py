"""The pass manager: phases, housekeeping, observers, and what a failing pass leaves behind."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from argosy.errors import CompileError, EnvironmentError_, InternalError, ModelError, UsageError
from argosy.ir import Builder, Instruction, Module, TensorType
from argosy.ir.dtype import INT64
from argosy.ir.printer import print_module
from argosy.ir.program_files import read_program
from argosy.ops.view import Reshape
from argosy.passes import NORMALISE
from argosy.passes.bind_dims import BindDims
from argosy.passes.fold_constants import FoldConstants
from argosy.passes.manager import (
    PassContext,
    PassManager,
    Phase,
    Stage,
    Timings,
    diff_text,
    dump_into,
    make_pass,
    pass_names,
    register_pass,
)


@dataclass(frozen=True)
class Step:
    """A pass made of a function, for tests."""

    name: str
    change: Callable[[Module], Module]

    def run(self, module: Module, context: PassContext) -> Module:
        return self.change(module)


def program() -> Module:
    build = Builder()
    x = build.tensor_parameter("x", "float32", ["N", 4])
    weight = build.constant(np.arange(36, dtype=np.float32).reshape(9, 4))
    total = build.pointwise("add", x, build.pointwise("mul", weight, build.constant(np.float32(2))))
    build.pointwise("exp", total)
    return build.module({"y": total})


def same(module: Module) -> Module:
    return module


def looking(seen: list[Module]) -> Step:
    """A pass that notes what it was given."""

    def look(module: Module) -> Module:
        seen.append(module)
        return module

    return Step("look", look)


def fail(error: Exception) -> Callable[[Module], Module]:
    def change(_: Module) -> Module:
        raise error

    return change


def test_dead_code_goes_before_the_first_pass() -> None:
    seen: list[Module] = []
    PassManager((Phase("p", (looking(seen),)),)).run(program())
    assert [instruction.op.name for instruction in seen[0].instructions][-1] == "pointwise"
    assert len(seen[0].instructions) == len(program().instructions) - 1


def test_a_phase_repeats_while_it_changes_something() -> None:
    left = [2]

    def twice(module: Module) -> Module:
        left[0] -= 1
        return dataclasses.replace(module, name=f"m{left[0]}") if left[0] >= 0 else module

    stages: list[Stage] = []
    PassManager((Phase("p", (Step("twice", twice), Step("same", same)), rounds=9),), observers=(stages.append,)).run(
        program()
    )
    assert [(stage.name, stage.changed) for stage in stages] == [
        ("twice", True),
        ("same", False),
        ("twice", True),
        ("same", False),
        ("twice", False),
        ("same", False),
    ]
    assert [stage.number for stage in stages] == [1, 2, 3, 4, 5, 6]


def test_it_stops_after_the_pass_asked_for() -> None:
    stages: list[Stage] = []
    PassManager((NORMALISE,), stop_after="fold_constants", observers=(stages.append,)).run(program())
    assert stages[-1].name == "fold_constants"


def test_an_invalid_result_is_the_pass_s_fault() -> None:
    def spoil(module: Module) -> Module:
        last = module.results[0].instruction
        bad = Instruction(last.op, last.operands, (TensorType(INT64, (1,)),), (None,), last.names, last.source)
        return Module(module.name, module.parameters, (*module.instructions[:-1], bad), (bad.result(),), ("y",))

    with pytest.raises(InternalError, match="pass spoil_types"):
        PassManager((Phase("p", (Step("spoil_types", spoil),)),)).run(program())


@pytest.mark.parametrize("error", [RuntimeError("boom"), CompileError("boom"), InternalError("boom", where="node")])
def test_a_failure_has_the_module_that_the_pass_was_given(tmp_path: Path, error: Exception) -> None:
    manager = PassManager((Phase("p", (Step("break_things", fail(error)),)),))
    with pytest.raises((CompileError, InternalError), match="pass break_things.*boom") as caught:
        manager.run(program())
    assert isinstance(caught.value, CompileError) == isinstance(error, CompileError)
    assert caught.value.stage == "break_things"
    for name, content in caught.value.evidence().items():
        (tmp_path / name).write_bytes(content)
    again = read_program(tmp_path / "before-break_things.txt").main
    seen: list[Module] = []
    PassManager((Phase("p", (looking(seen),)),)).run(program())
    assert print_module(again) == print_module(seen[0])


def test_the_model_s_own_fault_is_no_defect_of_a_pass() -> None:
    build = Builder()
    x = build.tensor_parameter("x", "float32", ["N"])
    module = build.module({"y": build.add(Reshape((2, -1)), x, source="Reshape_7")})
    with pytest.raises(ModelError, match="pass bind_dims: Reshape_7") as caught:
        PassManager((Phase("p", (BindDims.of({"N": 3}),)),)).run(module)
    assert not caught.value.evidence()


def test_a_diff_keeps_the_numbers_of_what_stays() -> None:
    def chain(*primitives: str) -> Module:
        build = Builder()
        value = build.tensor_parameter("x", "float32", [4])
        weight = build.constant(np.arange(99, dtype=np.float32))
        for primitive in primitives:
            value = build.pointwise(primitive, value)
        return build.module({"y": value, "w": weight})

    told = diff_text(chain("exp", "neg", "abs", "tanh"), chain("exp", "abs", "tanh")).splitlines()
    changed = [line[1:].strip() for line in told if line[0] in "+-" and line[1:2] not in "+-"]
    assert changed == [
        "%3 = pointwise(%2) {formula = |x0| neg(x0)} : float32[4]",
        "%4 = pointwise(%3) {formula = |x0| abs(x0)} : float32[4]",
        "%4 = pointwise(%2) {formula = |x0| abs(x0)} : float32[4]",
    ]
    assert "%5 = pointwise(%4) {formula = |x0| tanh(x0)} : float32[4]" in "\n".join(told)
    (constant,) = (line for line in told if "constant" in line)
    assert len(constant) < 60


def test_passes_are_found_by_name() -> None:
    assert make_pass("fold-constants", {"small_bytes": 8}) == FoldConstants(small_bytes=8)
    with pytest.raises(UsageError, match="did you mean 'fold_constants'"):
        make_pass("fold_constant")
    with pytest.raises(UsageError, match="cannot be made"):
        make_pass("fold_constants", {"tiny": 8})
    assert {step.name for step in NORMALISE.passes} < set(pass_names())


def test_a_pass_is_named_like_its_file() -> None:
    with pytest.raises(InternalError, match="named like its file"):

        @register_pass
        @dataclass(frozen=True)
        class Misnamed:
            name = "do_something"


def test_a_diff_shows_what_changed() -> None:
    before = program()
    after = PassManager((NORMALISE,)).run(before)
    lines = diff_text(before, after).splitlines()
    assert any(line.startswith("-") and "mul" in line for line in lines)


def test_time_is_told_by_pass() -> None:
    timings = Timings()
    PassManager((NORMALISE,), observers=(timings,)).run(program())
    rows = {row.name: row for row in timings.rows}
    assert list(rows) == [step.name for step in NORMALISE.passes]
    assert rows["fold_constants"].changes == 1
    assert rows["fold_constants"].runs == 2
    assert all(row.seconds >= 0 for row in rows.values())
    assert len(str(timings).splitlines()) == 1 + len(rows)


def test_dumps_are_written_after_passes_that_change_something(tmp_path: Path) -> None:
    PassManager((NORMALISE,), observers=(dump_into(tmp_path / "dumps"),)).run(program())
    files = sorted(file.name for file in (tmp_path / "dumps").iterdir())
    assert files == ["000.txt", "005-normalise-fold_constants.txt"]
    texts = [(tmp_path / "dumps" / file).read_text(encoding="utf-8") for file in files]
    assert texts[0] != texts[1]
    (tmp_path / "file").touch()
    with pytest.raises(EnvironmentError_, match="could not be written"):
        PassManager((NORMALISE,), observers=(dump_into(tmp_path / "file"),)).run(program())


def test_folding_keeps_within_its_bounds() -> None:
    module = program()
    bound = PassManager((Phase("p", (FoldConstants(small_bytes=8, large_bytes=8),)),)).run(module)
    assert [instruction.op.name for instruction in bound.instructions].count("pointwise") == 2
    free = PassManager((Phase("p", (FoldConstants(),)),)).run(module)
    assert [instruction.op.name for instruction in free.instructions].count("pointwise") == 1
