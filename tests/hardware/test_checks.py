"""The checks of a device, on Triton's interpreter with little memory: they pass where all is right, and only there."""

from __future__ import annotations

from collections.abc import Iterator
from ctypes import c_size_t
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import argosy
from argosy.runtime.devices import gpu
from argosy.runtime.gpu import fitting
from argosy.targets.gpu import variant
from benchmarks.models import catalog
from tests.conformance.cases import load_cases
from tests.hardware import check_errors, device_memory, kernels_first, pack_checks, shortage
from tests.hardware.__main__ import main
from tests.hardware.check_ptx import complaints
from tests.hardware.check_sanitizer import choose, kernel_names
from tests.hardware.check_threads import differing_runs
from tests.hardware.device_memory import DeviceMemory
from tests.hardware.pack_models import ordered, rounded
from tests.hardware.pack_suite import pack as pack_suite
from tests.hardware.packs import PackError, Packs, PackWriter
from tests.hardware.run_models import judge_model
from tests.hardware.suite import STEM
from tests.hardware.trials import CHECKS, MODELS, Run, Trial, add_trial, read_trial, trial_names
from tests.targets.gpu.interpreted import InterpretedDevice, interpreted_kernels

pytestmark = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")

LITTLE = 1 << 20


class Driver:
    """What tells how much of an interpreted device's memory is free."""

    def __init__(self, device: InterpretedDevice) -> None:
        self._device = device

    def call(self, name: str, free: Any, total: Any) -> None:
        assert name == "free_memory"
        free._obj.value, total._obj.value = self._device.free_memory, self._device.info.memory


@pytest.fixture(autouse=True)
def device() -> Iterator[InterpretedDevice]:
    """A machine whose GPU is Triton's interpreter."""
    made = InterpretedDevice(LITTLE)
    memory = DeviceMemory(made, Driver(made))  # type: ignore[arg-type]
    with (
        mock.patch.object(variant, "compile_kernels", interpreted_kernels),
        mock.patch.object(fitting, "devices", return_value=(made.info,)),
        mock.patch.object(check_errors, "devices", return_value=(made.info,)),
        mock.patch.object(gpu, "open_device", return_value=made),
        mock.patch.object(DeviceMemory, "of_first_device", return_value=memory),
    ):
        yield made


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes that an interpreter has time for; it can't run kernels from several threads."""
    for name, value in {"_SMALL": 5, "_SLACK": 0, "_CYCLES": 3, "_THREADS": 1, "_ROWS": 24, "_WIDE": 12}.items():
        monkeypatch.setattr(shortage, name, value)
    monkeypatch.setattr(device_memory, "_LEAST", 512)
    monkeypatch.setattr(pack_checks, "_LARGE", 1000)


@pytest.fixture
def squares(small: None) -> bytes:
    """The artifact of `squares` for the interpreter."""
    with mock.patch.object(variant, "compile_kernels", interpreted_kernels):
        return argosy.compile(pack_checks.squares(), targets=["sm_90"], strict=True).to_bytes()


def product(scale: float = 1) -> Trial:
    """A product of two inputs; expected is that, times `scale`."""
    net = "lstm_small"
    sizes = {"batch": 2, "sequence": 3}
    feeds = catalog.feeds(net, sizes)
    artifact = argosy.compile(catalog.make(net), targets=["sm_90"], strict=True)
    expected = argosy.Session(artifact, device="ref").run(feeds)
    return Trial(net, artifact.to_bytes(), (Run("few", feeds, {k: v * scale for k, v in expected.items()}),))


def packed(folder: Path, stem: str, *trials: Trial) -> Packs:
    with PackWriter(folder, stem) as writer:
        for trial in trials:
            add_trial(writer, trial)
    return Packs(folder, stem)


def test_a_model_goes_there_and_is_judged(tmp_path: Path) -> None:
    right = product()
    packs = packed(tmp_path, MODELS, right, replace(product(1.01), name="wrong", note="why"))
    assert trial_names(packs) == [right.name, "wrong"]
    assert read_trial(packs, right.name).artifact == right.artifact
    assert judge_model(packs, right.name, "cuda").reason == ""
    assert "elements differ" in judge_model(packs, "wrong", "cuda").reason
    assert "PackError" in judge_model(packs, "another", "cuda").reason


def test_a_trial_is_never_cut_in_two(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).bytes(60_000)
    runs = tuple(Run(f"{n}", {"x": np.frombuffer(noise[n:], np.uint8)}, {}) for n in range(2))
    with PackWriter(tmp_path, MODELS, limit=300_000) as writer:
        for name in "ab":
            add_trial(writer, Trial(name, name.encode(), runs))
        with pytest.raises(PackError):
            writer.add("too large", np.random.default_rng(1).bytes(310_000))
    for path in writer.written:
        path.rename(tmp_path / f"alone-{path.name.rpartition('-')[2]}")
    assert trial_names(Packs(tmp_path, "alone")) == ["a", "b"]


def test_packs_are_filled_and_the_first_has_the_most() -> None:
    trials = [Trial(f"{size}", np.random.default_rng(size).bytes(size * 1000), ()) for size in (60, 70, 20, 25, 10)]
    assert [each.name for each in ordered(trials, 101_000)] == ["60", "20", "10", "70", "25"]


def test_rounded_weights_are_near_and_short() -> None:
    model = catalog.make("bert_small")
    before = {t.name: argosy_array(t) for t in model.graph.initializer}
    after = {t.name: argosy_array(t) for t in rounded(model).graph.initializer}
    changed = [name for name in before if (before[name] != after[name]).any()]
    assert changed
    for name in changed:
        assert np.abs(before[name] - after[name]).max() <= 2**-8 * np.abs(before[name]).max()
        assert not (after[name].view(np.uint32) & 0xFFFF).any()


def argosy_array(tensor: Any) -> Any:
    import onnx  # noqa: PLC0415

    return onnx.numpy_helper.to_array(tensor)


def test_equal_bits_are_told_from_others(squares: bytes) -> None:
    session = argosy.Session(squares, device="cuda")
    x = np.arange(4, dtype=np.float32)
    assert not differing_runs(session, [{"x": x}, {"x": x[:2]}], threads=1, runs=4)
    answers = [{"y": x}, {"y": x}, {"y": -x}, ValueError("no")]
    with mock.patch.object(session, "run", side_effect=answers):
        assert differing_runs(session, [{"x": x}], threads=1, runs=3) == {"y differs": 1, "ValueError: no": 1}


@pytest.mark.usefixtures("small")
def test_portable_code_is_chosen_where_nothing_nearer_is_there(tmp_path: Path) -> None:
    trials = pack_checks.pack("sm_90", "compute_80", "sm_100", nets=["lstm_small"])
    packs = packed(tmp_path, CHECKS, *trials)
    portable = [name for name in trial_names(packs) if name.startswith("portable")]
    assert len(portable) == 3
    for name in portable:
        assert complaints(read_trial(packs, name), "cuda") == [], name
    swapped = replace(read_trial(packs, portable[0]), name="portable beside native")
    assert "was chosen" in complaints(swapped, "cuda")[0]
    for name in ("foreign", "old driver", "too large"):
        assert check_errors.refusal(packs, name, "cuda") == []
    assert check_errors.refusal(packs, "mistaken", "cuda") == ["it was not refused"], "the interpreter runs everything"


def test_without_a_device(squares: bytes) -> None:
    assert check_errors.without_device(squares) == []


@pytest.mark.parametrize("check", [check for _, check in shortage.CHECKS_OF_MEMORY])
def test_memory_that_runs_out(squares: bytes, check: Any) -> None:
    assert check(squares) == []


def test_a_leak_is_found(squares: bytes, device: InterpretedDevice) -> None:
    with mock.patch.object(InterpretedDevice, "free"):
        assert any("leaked" in each for each in shortage.in_runs(squares))


def test_ballast_leaves_what_it_shall(device: InterpretedDevice) -> None:
    memory = DeviceMemory.of_first_device()
    with memory.scarce(100_000):
        free = c_size_t(memory.free()).value
        assert 100_000 <= free < 100_000 + device_memory._LEAST + 512
    assert memory.free() == LITTLE


def test_models_are_told_one_by_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    packed(tmp_path, MODELS, replace(product(), note="strict"), replace(product(1.01), name="wrong"))
    assert main(["run-models", str(tmp_path), "--workers", "1"]) == 1
    out = capsys.readouterr().out
    assert "lstm_small (strict; few): agrees" in out
    assert "1 of 2 models agree" in out


def test_cases_for_the_sanitizer_are_of_every_kind_and_run_under_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ("add", "sub", "mul", "softmax_axis_0", "matmul_2d", "cumsum_1d", "string_concat")
    cases = [case for case in load_cases(("node",)) if case.name.removeprefix("test_") in names]
    with mock.patch.object(kernels_first, "compile_kernels", interpreted_kernels):
        pack_suite(tmp_path, cases, "sm_90", loose=True, workers=1, limit=60)
    packs = Packs(tmp_path, STEM)
    assert kernel_names(packs.content("node/test_matmul_2d")) == {"dot_matrix_product"}
    chosen = choose(packs, cases, 4)
    assert chosen == choose(packs, cases, 4)
    assert len(set(chosen)) == 4
    kinds = {"softmax_axis_0", "matmul_2d", "cumsum_1d"}
    assert kinds <= {name.removeprefix("node/test_") for name in chosen}
    assert "node/test_string_concat" not in choose(packs, cases)
    tool = tmp_path / "tool"
    for ending, status, words in (("", 0, "clean, 6 cases right"), ("; exit 9", 1, "ERRORS, 6 cases right")):
        tool.write_text(f'#!/bin/sh\nshift 4\n"$@"{ending}\n', encoding="utf-8")
        tool.chmod(0o755)
        command = ["check-sanitizer", str(tmp_path), "--device", "ref", "--tool", "memcheck", "--sanitizer", str(tool)]
        assert main(command) == status
        assert words in capsys.readouterr().out
