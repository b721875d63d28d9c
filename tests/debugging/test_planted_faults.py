"""Each planted fault is found, blamed on the part that has it, and reduced to a few nodes; nobody says where it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace

import pytest

import argosy
from argosy.compiler import compile_program, load_onnx, resolve_targets
from argosy.debugging import Bisection, Reduced, bisect, reduce_model
from argosy.debugging.reduction.nodes import nodes_of
from argosy.errors import ArgosyError
from argosy.host_cpu import physical_cores
from argosy.inputs import make_inputs
from argosy.options import CompileOptions, Dimensions
from argosy.verification import Report
from tests.debugging.faults.catalog import FAULTS
from tests.debugging.faults.fault import Fault

MOST_NODES = 3

every_fault = pytest.mark.parametrize("fault", FAULTS, ids=str)


def verified(fault: Fault) -> Report:
    """What `verify` says of the fault's model."""
    return argosy.verify(
        fault.model().SerializeToString(), targets=fault.targets, device=fault.device, against=fault.against,
        dims=fault.dims, inputs=fault.inputs, options=replace(fault.options, dims=Dimensions.of(fault.dims)),
    )  # fmt: skip


def bisected(fault: Fault) -> Bisection:
    """What `bisect` says of the fault's model, on the inputs that `verify` takes."""
    model, dims = fault.model().SerializeToString(), Dimensions.of(fault.dims)
    program = load_onnx(model, dims=dims)
    artifact = compile_program(program, resolve_targets(fault.targets), replace(fault.options, dims=dims))
    inputs = make_inputs(program.inputs, fault.inputs, dims, program=lambda: program).values
    against_others = model if fault.against == "onnxruntime" else None
    return bisect(program, artifact, inputs, device=fault.device, model=against_others)


def reduced(fault: Fault) -> Reduced | None:
    """What is left of the fault's model."""
    return reduce_model(
        fault.model().SerializeToString(), targets=fault.targets, device=fault.device, against=fault.against,
        dims=fault.dims, inputs=fault.inputs, options=fault.options, seconds=200,
    )  # fmt: skip


def own_names(names: Iterable[str]) -> list[str]:
    """The names of nodes without those of the nodes that they are in."""
    return [name.rpartition("/")[2] for name in names]


@contextmanager
def planted(fault: Fault) -> Iterator[None]:
    """In the block the fault is there. Skips where this machine can't show it."""
    if physical_cores() < fault.cores:
        pytest.skip(f"needs {fault.cores} cores")
    with fault.plant():
        yield


def test_there_are_enough() -> None:
    assert len(FAULTS) >= 60
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
    sizes = [len(fault.model().graph.node) for fault in FAULTS]
    assert min(sizes) >= 8
    assert max(sizes) <= 30


def test_instructions_of_a_program_that_is_bound_wrongly_are_no_answer(caplog: pytest.LogCaptureFixture) -> None:
    """They are compared with what ref says of the bound program: that this is another one is told."""
    fault = next(fault for fault in FAULTS if fault.name == "bind_dims")
    for planting, told in ((nullcontext(), False), (planted(fault), True)):
        with planting:
            report = argosy.verify(
                fault.model().SerializeToString(), targets=fault.targets, dims=fault.dims, inputs=fault.inputs,
                options=CompileOptions(dims=Dimensions.of(fault.dims)), per_instruction=True,
            )  # fmt: skip
        assert report.passed is not told
        assert all(entry.passed for entry in report.instructions)
        assert ("with its dims bound, the program gives other results by ref" in caplog.text) is told


@every_fault
def test_it_is_found(fault: Fault) -> None:
    assert verified(fault).passed, "without the fault"
    with planted(fault):
        if fault.raises:
            with pytest.raises(ArgosyError):
                verified(fault)
        else:
            assert not verified(fault).passed, "with the fault"


@every_fault
def test_it_is_blamed(fault: Fault) -> None:
    with planted(fault):
        found = bisected(fault)
    assert found.blame is not None
    assert found.blame.part == fault.blame, str(found)
    assert own_names(found.nodes)[-1:] == list(fault.nodes[-1:]) or not fault.nodes, str(found)
    assert found.cured == bool(found.blame.without), str(found)


@every_fault
def test_it_is_reduced(fault: Fault) -> None:
    with planted(fault):
        small = reduced(fault)
    assert small is not None
    left = list(nodes_of(small.model.graph))
    assert len(left) <= MOST_NODES, str(small)
    assert set(own_names(node.name for node in left)) >= set(fault.nodes), str(small)
