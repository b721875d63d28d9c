"""The driver table against the vendors' own headers: names, arguments and their sizes, numbers of enumerators."""

from __future__ import annotations

import ctypes

import pytest

from argosy.drivers import api
from tests.runtime.gpu.headers import numbers, signatures

KINDS = ("cuda", "hip")
ROWS = {kind: {getattr(row, kind): row for row in api.FUNCTIONS} for kind in KINDS}
ROWS["hip"][api.PROPERTIES.hip] = api.PROPERTIES
ROWS["cuda"] |= {row.cuda: row for row in (api.LAUNCH_WITH, *api.TENSOR_MAPS)}


@pytest.mark.parametrize("kind", KINDS)
def test_functions_take_what_the_header_says(kind: str) -> None:
    found = signatures(kind, list(ROWS[kind]))
    for name, row in ROWS[kind].items():
        assert [ctypes.sizeof(each) for each in row.arguments] == [each.size for each in found[name]], name
        for ours, theirs in zip(row.arguments, found[name], strict=True):
            pointed = getattr(ours, "_type_", "")  # a class for POINTER(class), else a letter
            if not isinstance(pointed, str):
                assert ctypes.sizeof(pointed) == theirs.points_to, f"{name} writes {theirs.points_to} bytes"


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_are_those_of_the_header(kind: str) -> None:
    rows = {**api.ATTRIBUTES, **api.CONSTANTS}
    told = numbers(kind, [getattr(row, f"{kind}_name") for row in rows.values()])
    assert [row.of(kind) for row in rows.values()] == told


def test_launches_with_attributes_are_as_the_header_has_them() -> None:
    config, attribute = api.LaunchConfig, api.LaunchAttribute
    members = {"shared": "sharedMemBytes", "stream": "hStream", "attributes": "attrs", "count": "numAttrs"}
    asked = [f"offsetof(CUlaunchConfig, {name})" for name in members.values()]
    asked += ["offsetof(CUlaunchConfig, blockDimX)", "sizeof(CUlaunchConfig)", "sizeof(CUlaunchAttribute)"]
    asked += ["offsetof(CUlaunchAttribute, value)", "CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION"]
    ours = [getattr(config, name).offset for name in members]
    ours += [config.block.offset, ctypes.sizeof(config), ctypes.sizeof(attribute), attribute.value.offset]
    assert numbers("cuda", asked) == [*ours, api.PROGRAMMATIC]


def test_the_properties_of_hip_are_where_the_header_has_them() -> None:
    struct = "hipDeviceProp_tR0600"
    asked = [f"sizeof({struct})", f"offsetof({struct}, gcnArchName)", f"sizeof((({struct}*)0)->gcnArchName)"]
    assert numbers("hip", asked) == [api.PROPERTIES_BYTES, api.ARCH_PLACE, api.ARCH_BYTES]
