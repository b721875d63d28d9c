"""Function bodies of the standard stand in for handlers, with the schema's defaults for what the call leaves out."""

from __future__ import annotations

from typing import Any

import onnx
import pytest
from onnx import helper

from argosy.frontends.onnx.functions import Functions


@pytest.mark.parametrize(("given", "alpha"), [({}, 1.0), ({"alpha": 0.5}, 0.5)])
def test_attributes_of_a_body_have_defaults(given: dict[str, Any], alpha: float) -> None:
    functions = Functions(onnx.ModelProto())
    call = helper.make_node("Elu", ["x"], ["y"], **given)
    body = functions.find(call, "", 22)
    assert body is not None
    nodes = functions.bind_attributes(body([]), call, {"X"})
    values = [entry.f for node in nodes for entry in node.attribute if entry.name == "value_float"]
    assert values[0] == alpha
    assert not any(entry.ref_attr_name for node in nodes for entry in node.attribute)
