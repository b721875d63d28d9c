"""Each planted fault is found by `argosy.verify`, and nothing is found without it."""

from __future__ import annotations

from dataclasses import replace

import pytest

import argosy
from argosy.errors import ArgosyError
from argosy.host_cpu import physical_cores
from argosy.options import Dimensions
from argosy.verification import Report
from tests.debugging.faults.catalog import FAULTS
from tests.debugging.faults.fault import Fault


def verified(fault: Fault) -> Report:
    """What `verify` says of the fault's model."""
    return argosy.verify(
        fault.model().SerializeToString(), targets=fault.targets, device=fault.device, against=fault.against,
        dims=fault.dims, inputs=fault.inputs, options=replace(fault.options, dims=Dimensions.of(fault.dims)),
    )  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_a_fault_is_found(fault: Fault) -> None:
    if physical_cores() < fault.cores:
        pytest.skip(f"needs {fault.cores} cores")
    assert verified(fault).passed, "without the fault"
    with fault.plant():
        if fault.raises:
            with pytest.raises(ArgosyError):
                verified(fault)
        else:
            assert not verified(fault).passed, "with the fault"
