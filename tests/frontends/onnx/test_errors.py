"""What an error says: which node, what was expected, what was found, and what to do. One row for each kind of fault.

`where` is the whole place but for the model; `what` and `hint` are parts that must be there.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
import onnx.parser
import pytest
from onnx import ModelProto, TensorProto

from argosy.errors import ArgosyError, BranchError, InternalError, ModelError, UnsupportedError
from argosy.frontends.onnx import ImportOptions, load
from argosy.options import Dimensions
from tests.conformance.cases import load_cases


@dataclass(frozen=True, slots=True)
class Fault:
    """A model with a fault, as a graph in ONNX's text form, and how it is told."""

    graph: str
    where: str
    what: str
    hint: str = ""
    opsets: str = '"" : 17'
    strict: bool = False
    change: Callable[[ModelProto], Any] | None = None
    kind: type[ArgosyError] = ModelError


ONE = "g (float[2] x) => (float[2] y) { y = Abs(x) }"
WEIGHT = "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Add(x, w) }"
THEN = "then_branch = a () => (float[2] p) { p = Abs(x) }"
LOCAL = '"" : 18, "local" : 1'


def function(body: str, call: str = "local.f(x)") -> str:
    return f"g (float[2] x) => (float[2] y) {{ y = {call} }} {body}"


def weight(**fields: Any) -> Callable[[ModelProto], None]:
    """Set fields of the initializer."""

    def change(model: ModelProto) -> None:
        tensor = model.graph.initializer[0]
        for name, value in fields.items():
            if name == "dims":
                tensor.dims[:] = value
            else:
                setattr(tensor, name, value)
                if name == "raw_data":
                    tensor.ClearField("float_data")

    return change


def f(opsets: str, signature: str, body: str) -> str:
    """A function of the model in text form."""
    return f'<domain: "local", opset_import: [{opsets}]> {signature} {{ {body} }}'


FAULTS = {
    # ---- ops, domains, versions
    "unknown op": Fault(
        "g (float[2] x) => (float[2] y) { a = Abs(x) y = Convolution(a) }", "",
        "1 node(s) that Argosy does not support:\n  - Convolution (node 1 → 'y'): ai.onnx::Convolution, opset 17",
        "--skip-unknown", kind=UnsupportedError,
    ),
    "misspelt op": Fault(
        "g (float[2] x) => (float[2] y) { y = Sigmoyd(x) }", "", "ai.onnx::Sigmoyd, opset 17 (did you mean 'Sigmoid'?)",
        kind=UnsupportedError,
    ),
    "unknown ops, all at once": Fault(
        "g (float[2] x) => (float[2] y) { [first] a = Quux(x) y = acme.Bar(a) }", "",
        "2 node(s) that Argosy does not support:\n  - first: ai.onnx::Quux, opset 17\n"
        "  - Bar (node 1 → 'y'): acme::Bar, opset 3 (no op of this domain is known; a model may bring along its own as "
        "functions)",
        opsets='"" : 17, "acme" : 3', kind=UnsupportedError,
    ),
    "domain that is not imported": Fault(
        "g (float[2] x) => (float[2] y) { y = com.microsoft.FastGelu(x) }", "FastGelu (node 0 → 'y')",
        "the domain 'com.microsoft' is used but not imported", "leave out --strict-onnx", strict=True,
    ),
    "op newer than the opset": Fault(
        "g (float[2] x) => (float[2] y) { y = LayerNormalization(x, x) }", "LayerNormalization (node 0 → 'y')",
        "LayerNormalization has the form of opset 17, the model imports 9", "leave out --strict-onnx",
        opsets='"" : 9', strict=True,
    ),
    "opset too new": Fault(
        ONE, "", "opset_import lists version 999 of ai.onnx; the newest that is known here is", "earlier opset",
        opsets='"" : 999', kind=UnsupportedError,
    ),
    "opset of ai.onnx.ml too new": Fault(
        ONE, "", "opset_import lists version 99 of ai.onnx.ml", "earlier opset", opsets='"" : 17, "ai.onnx.ml" : 99',
        kind=UnsupportedError,
    ),
    "opset too old": Fault(ONE, "", "version 0 of ai.onnx, expected 1 or later", opsets='"" : 0'),
    "two opsets": Fault(ONE, "", "the versions 17 and 3 of ai.onnx", opsets='"" : 17, "ai.onnx" : 3'),
    # ---- attributes
    "unknown attribute": Fault(
        "g (float[2] x) => (float[2] y) { y = LeakyRelu<slope = 0.5>(x) }", "LeakyRelu (node 0 → 'y')",
        "LeakyRelu (opset 17) has no attribute 'slope'", "it has alpha",
    ),
    "missing attribute": Fault(
        "g (float[2] x) => (float[4] y) { [join] y = Concat(x, x) }", "join",
        "attribute 'axis' is missing, expected INT",
    ),
    "attribute of another type": Fault(
        'g (float[2] x) => (float[4] y) { y = Concat<axis = "0">(x, x) }', "Concat (node 0 → 'y')",
        "attribute 'axis' has type STRING, expected INT",
    ),
    "attribute out of its set": Fault(
        'g (float[1, 1, 2, 2] x) => (float[1, 1, 2, 2] y) { y = Conv<auto_pad = "SOME">(x, x) }',
        "Conv (node 0 → 'y')", "attribute 'auto_pad' is 'SOME', expected one of NOTSET, VALID, SAME_UPPER, SAME_LOWER",
    ),
    "attribute out of range": Fault(
        "g (float[2, 2] x) => (float[2, 2] y) { y = Softmax<axis = 5>(x) }", "Softmax (node 0 → 'y')",
        "axis is 5, expected -2..1",
    ),
    "attribute that is no text": Fault(
        'g (float[1, 1, 2, 2] x) => (float[1, 1, 2, 2] y) { y = Conv<auto_pad = "SOME">(x, x) }',
        "Conv (node 0 → 'y')", "which is not UTF-8",
        change=lambda model: setattr(model.graph.node[0].attribute[0], "s", b"\xff\xfe"),
    ),
    "attribute of an op that has none": Fault(
        "g (float[2] x) => (float[2] y) { y = Relu<slope = 0.5>(x) }", "Relu (node 0 → 'y')",
        "Relu (opset 17) has no attribute 'slope'", "it has no attributes",
    ),
    "element type that is none": Fault(
        "g (float[2] x) => (float[2] y) { y = Cast<to = 99>(x) }", "Cast (node 0 → 'y'): attribute 'to'",
        "unknown element type number 99", "1 = float32",
    ),
    "two values of a constant": Fault(
        "g (float[2] x) => (float[2] y) { y = Constant<value_float = 1.0, value_int = 2>() }",
        "Constant (node 0 → 'y')",
        "has the attributes value_float, value_int, expected one that gives the value", "leave one",
    ),
    # ---- inputs and outputs of nodes
    "type that the op does not take": Fault(
        "g (string[2] x) => (float[2] y) { y = Exp(x) }", "Exp (node 0 → 'y')",
        "input 0 ('x') is tensor(string), Exp (opset 17) takes tensor(bfloat16) or tensor(double) or", "Cast",
    ),
    "a float for a shape": Fault(
        "g (float[2] x, float[1] s) => (float[2] y) { y = Reshape(x, s) }", "Reshape (node 0 → 'y')",
        "input 1 ('s') is tensor(float), Reshape (opset 17) takes tensor(int64)", "'shape' of Reshape",
    ),
    "a tensor for a sequence": Fault(
        "g (float[2] x) => (int64 y) { y = SequenceLength(x) }", "SequenceLength (node 0 → 'y')",
        "input 0 ('x') is tensor(float), SequenceLength (opset 17) takes seq(",
    ),
    "types that differ": Fault(
        "g (float[2] x, int64[2] z) => (float[2] y) { y = Add(x, z) }", "Add (node 0 → 'y')",
        "one element type, found float32, int64", "Cast",
    ),
    "type that only strict refuses": Fault(
        "g (float[2] x, int32[1] s) => (float[2] y) { y = Reshape(x, s) }", "Reshape (node 0 → 'y')",
        "input 1 ('s') is tensor(int32), Reshape (opset 17) takes tensor(int64)", "leave out --strict-onnx",
        strict=True,
    ),
    "too few inputs": Fault(
        "g (float[2] x) => (float[2] y) { y = Add(x) }", "Add (node 0 → 'y')", "input 1 ('B' of Add) is missing"
    ),
    "input left out": Fault(
        "g (float[2] x) => (float[2] y) { y = Add(, x) }", "Add (node 0 → 'y')", "input 0 ('A' of Add) is missing"
    ),
    "too few inputs of a variadic op": Fault(
        "g (float[2] x) => (float[2] y) { y = Concat<axis = 0>() }", "Concat (node 0 → 'y')", "is missing"
    ),
    "too many inputs": Fault(
        "g (float[2] x) => (float[2] y) { y = Abs(x, x) }", "Abs (node 0 → 'y')",
        "has 2 inputs, Abs (opset 17) takes at most 1", "leave out --strict-onnx", strict=True,
    ),
    "too many outputs": Fault(
        "g (float[2] x) => (float[2] y) { y, z = Abs(x) }", "Abs (node 0 → 'y')",
        "has 2 outputs, Abs (opset 17) gives at most 1",
    ),
    "sequence for a tensor": Fault(
        "g (float[2] x) => (float[2] y) { q = SequenceConstruct(x) y = Abs(q) }", "Abs (node 1 → 'y')",
        "input 0 ('q') is seq(tensor(float)), Abs (opset 17) takes tensor(", "SequenceAt",
    ),
    "sequence of several types": Fault(
        "g (float[2] x, int64[2] z) => (seq(float[2]) y) { y = SequenceConstruct(x, z) }",
        "SequenceConstruct (node 0 → 'y')", "a sequence would hold float32[2] and int64[2]", "'z': int64[2] (an input)",
    ),
    "integers for a function of floats": Fault(
        "g (int64[2] x) => (int64[2] y) { y = Sqrt(x) }", "Sqrt (node 0 → 'y')", "sqrt is not defined for int64",
        "it takes float: convert its operands, in ONNX with Cast",
    ),
    "random numbers that are integers": Fault(
        "g (int64[2] x) => (int64[2] y) { y = RandomNormalLike(x) }", "RandomNormalLike (node 0 → 'y')",
        "there are no 'normal' random numbers of int64", "'dtype'",
    ),
    "scales and sizes": Fault(
        "g (float[1, 1, 2] x) => (float[1, 1, 2] y) { y = Resize(x) }", "Resize (node 0 → 'y')",
        "has neither scales nor sizes, expected one of them", "empty tensor",
    ),
    "op that is deprecated": Fault(
        "g (float[2] x, float[1] s) => (float[2] y) { y = Upsample(x, s) }", "Upsample (node 0 → 'y')",
        "Upsample is deprecated since opset 10, and no op of 17", "leave out --strict-onnx", strict=True,
    ),
    # ---- names
    "value that nobody gives": Fault(
        "g (float[2] x, float[2] weight) => (float[2] y) { y = Add(x, wieght) }", "Add (node 0 → 'y')",
        "reads 'wieght', which no node, input or initializer gives", "did you mean 'weight'?",
    ),
    "output that nobody gives": Fault(
        "g (float[2] x) => (float[2] y1) { y0 = Abs(x) }", "output 'y1'", "no node, input or initializer gives it",
    ),
    "name clash of nodes": Fault(
        "g (float[2] x) => (float[2] y) { y = Abs(x) y = Neg(x) }", "Neg (node 1 → 'y')",
        "the name 'y' is given twice, before by Abs (node 0 → 'y')", "rename",
    ),
    "name clash with an input": Fault(
        "g (float[2] x) => (float[2] x) { x = Abs(x) }", "Abs (node 0 → 'x')",
        "the name 'x' is given twice, before by an input", "rename",
    ),
    "name clash of initializers": Fault(
        "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}, float[2] w = {1, 2}> { y = Add(x, w) }",
        "initializer 'w'", "the name 'w' is given twice, before by an initializer", "rename",
    ),
    "inputs of one name": Fault(
        "g (float[2] x, float[2] x) => (float[2] y) { y = Abs(x) }", "input 1", "the name 'x' is given twice", "rename"
    ),
    "outputs of one name": Fault(
        "g (float[2] x) => (float[2] y, float[2] y) { y = Abs(x) }", "output 1", "the name 'y' is given twice", "rename"
    ),
    "cycle": Fault(
        "g (float[2] x) => (float[2] y) { y = Add(x, b) [minus] a = Neg(y) b = Exp(a) }", "Add (node 0 → 'y')",
        "is part of a cycle: it reads from Exp (node 2 → 'b'), that from minus, that from this node",
    ),
    "node that reads itself": Fault(
        "g (float[2] x) => (float[2] y) { z = Abs(x) y = Add(z, y) }", "Add (node 1 → 'y')", "it reads from itself"
    ),
    "name that is no text": Fault(
        ONE, "", "is not UTF-8", "damaged", change=lambda model: model.MergeFromString(b"\x3a\x05\x0a\x03\x22\x01\xff")
    ),
    # ---- shapes
    "product that does not fit": Fault(
        "g (float[2, 3] x, float[4, 2] z) => (float[2, 2] y) { y = MatMul(x, z) }", "MatMul (node 0 → 'y')",
        "the shapes [2, 3] and [4, 2] do not fit",
    ),
    "shapes that do not broadcast": Fault(
        "g (float[2, 3] x, float[4] z) => (float[2, 3] y) { y = Add(x, z) }", "Add (node 0 → 'y')",
        "the dims 3 and 4 do not broadcast: the shapes are [2, 3] and [4]",
    ),
    "reshape that does not fit": Fault(
        "g (float[2, 3] x) => (float[4, 4] y) <int64[2] s = {4, 4}> { y = Reshape(x, s) }", "Reshape (node 0 → 'y')",
        "the dims [2, 3] can't be reshaped to [4, 4]",
    ),
    "window that does not fit": Fault(
        "g (float[1, 1, 2] x) => (float[1, 1, 1] y) { y = MaxPool<kernel_shape = [5]>(x) }", "MaxPool (node 0 → 'y')",
        "",
    ),
    "rank that is not known": Fault(
        "g (float[] x) => (float[2] y) { y = LRN<size = 3>(x) }", "LRN (node 0 → 'y')",
        "needs the rank of its inputs, which is not known here", "--input-shape", kind=UnsupportedError,
        change=lambda model: model.graph.input[0].type.tensor_type.ClearField("shape"),
    ),
    "what an error about shapes shows": Fault(
        "g (float[2, 3] x) => (float[2, 3] y) <int64[1] n = {9}> { a = Abs(x) y, i = TopK(a, n) }",
        "TopK (node 1 → 'y')", "k is 9, expected 0..3, the size of axis 1",
        "check what it reads: X = 'a': float32[2, 3], K = 'n': int64[1] (a constant)",
    ),
    "label of two sizes": Fault(
        'g (float[2, 3] x) => (float[2, 3] y) { y = Einsum<equation = "ij,jk->ik">(x, x) }', "Einsum (node 0 → 'y')",
        "the label 'j' of 'ij,jk->ik' has the sizes 3 and 2, expected one",
    ),
    "parameters of other channels": Fault(
        "g (float[1, 3, 2] x, float[5] s) => (float[1, 3, 2] y) { y = BatchNormalization(x, s, s, s, s) }",
        "BatchNormalization (node 0 → 'y')", "scale is float32[5], expected [3]",
    ),
    "shape of an output": Fault(
        "g (float[2] x) => (float[3] y) { y = Abs(x) }", "output 'y'", "is declared [3], but has the shape [2]",
        "leave out --strict-onnx", strict=True,
    ),
    # ---- inputs, constants, external data
    "input of no type": Fault(
        ONE, "input 'x'", "has no element type", "1 = float32",
        change=lambda model: setattr(model.graph.input[0].type.tensor_type, "elem_type", 0),
    ),
    "input without a type": Fault(
        ONE, "input 'x'", "has no type", "tensor type", change=lambda model: model.graph.input[0].ClearField("type")
    ),
    "input of an unknown type": Fault(
        ONE, "input 'x'", "unknown element type number 77",
        change=lambda model: setattr(model.graph.input[0].type.tensor_type, "elem_type", 77),
    ),
    "constant of the wrong size": Fault(
        WEIGHT, "initializer 'w'", "raw_data holds 3 bytes, float32[2] needs 8", change=weight(raw_data=b"abc")
    ),
    "constant of too few values": Fault(
        WEIGHT, "initializer 'w'", "holds 2 values, float32[3] needs 3", change=weight(dims=[3])
    ),
    "constant that claims too much": Fault(
        WEIGHT, "initializer 'w'", "needs 4611686018427387904", change=weight(dims=[1 << 62])
    ),
    "constant with a negative dim": Fault(
        WEIGHT, "initializer 'w'", "has a negative dim: [-2]", change=weight(dims=[-2])
    ),
    "constant of an unknown type": Fault(
        WEIGHT, "initializer 'w'", "unknown element type number 99", change=weight(data_type=99)
    ),
    "constant node without a value": Fault(
        "g (float[2] x) => (float[2] y) { y = Constant() }", "Constant (node 0 → 'y')", "none of the attributes"
    ),
    "external data of a model without a folder": Fault(
        WEIGHT, "initializer 'w'", "lies in the external file 'w.bin', but the model came without a folder", "path",
        change=lambda model: external(model, location="w.bin"),
    ),
    # ---- subgraphs
    "branches of different types": Fault(
        "g (bool c, float[2] x) => (float[2] y) { y = If(c) <" + THEN +
        ", else_branch = b () => (int64[2] q) { q = Cast<to = 7>(x) }> }",
        "If (node 0 → 'y')", "result 0 is float32[2] in then_branch and int64[2] in else_branch", "Cast",
    ),
    "branches of different lengths": Fault(
        "g (bool c, float[2] x) => (float[2] y) { y = If(c) <" + THEN + ", else_branch = b () => () { }> }",
        "If (node 0 → 'y')", "the branches give 1 and 0 results",
    ),
    "branch with an input": Fault(
        "g (bool c, float[2] x) => (float[2] y) { y = If(c) <" + THEN +
        ", else_branch = b (float[2] i) => (float[2] q) { q = Abs(i) }> }",
        "If (node 0 → 'y')/else_branch", "the subgraph has 1 inputs, expected 0",
        kind=BranchError,
    ),
    "missing branch": Fault(
        "g (bool c, float[2] x) => (float[2] y) { y = If(c) <" + THEN + "> }", "If (node 0 → 'y')",
        "attribute 'else_branch' is missing, expected GRAPH",
        kind=BranchError,
    ),
    "condition that is no bool": Fault(
        "g (float c, float[2] x) => (float[2] y) { y = If(c) <" + THEN +
        ", else_branch = b () => (float[2] q) { q = Abs(x) }> }",
        "If (node 0 → 'y')", "input 0 ('c') is tensor(float), If (opset 17) takes tensor(bool)", "'cond' of If",
    ),
    "name of another branch": Fault(
        "g (bool c, float[2] x) => (float[2] y) { y = If(c) <" + THEN +
        ", else_branch = b () => (float[2] q) { q = Abs(p) }> }",
        "If (node 0 → 'y')/else_branch/Abs (node 0 → 'q')", "reads 'p', which no node, input or initializer gives",
        kind=BranchError,
    ),
    "loop body with too few inputs": Fault(
        "g (int64 m, float[2] x) => (float[2] y) { y = Loop(m, , x) <body = b (int64 i) => (bool c, float[2] p)"
        " { p = Abs(x) c = Cast<to = 9>(i) }> }",
        "Loop (node 0 → 'y')/body", "the subgraph has 1 inputs, expected 3",
    ),
    "loop body without results": Fault(
        "g (int64 m, float[2] x) => (float[2] y) { y = Loop(m, , x) <body = b (int64 i, bool c, float[2] a)"
        " => () {}> }",
        "Loop (node 0 → 'y')", "the body gives 0 results, expected at least 2",
    ),
    "loop that changes a type": Fault(
        "g (int64 m, float[2] x) => (float[2] y) { y = Loop(m, , x) <body = b (int64 i, bool c, float[2] a)"
        " => (bool d, int64[2] p) { d = Identity(c) p = Cast<to = 7>(a) }> }",
        "Loop (node 0 → 'y')", "carried value 0 is float32[2] before an iteration and int64[2] after it", "Cast",
    ),
    "inputs of a body of one name": Fault(
        "g (int64 m, float[2] x) => (float[2] y) { y = Loop(m, , x) <body = b (int64 i, bool i, float[2] a)"
        " => (bool d, float[2] p) { d = Identity(i) p = Abs(a) }> }",
        "Loop (node 0 → 'y')/body: input 1", "the name 'i' is given twice", "rename",
    ),
    "loop with a condition that is no bool": Fault(
        "g (int64 m, float[2] x) => (float[2] y) { y = Loop(m, , x) <body = b (int64 i, bool c, float[2] a)"
        " => (float[2] a2, float[2] p) { a2 = Identity(a) p = Abs(a) }> }",
        "Loop (node 0 → 'y')", "the body gives the condition float32[2], expected one bool", "its results are",
    ),
    "outputs that a body does not give": Fault(
        "g (int64 m, float[2] x) => (float[2] y) { y, z = Loop(m, , x) <body = b (int64 i, bool c, float[2] a)"
        " => (bool d, float[2] p) { d = Identity(c) p = Abs(a) }> }",
        "Loop (node 0 → 'y')", "has 2 outputs, Loop gives 1 here", "remove the output 'z'",
    ),
    "scan over nothing": Fault(
        "g (float[2] x) => (float[2] y) { y = Scan<num_scan_inputs = 2, body = b (float a, float c) => (float p)"
        " { p = Add(a, c) }>(x) }",
        "Scan (node 0 → 'y')", "num_scan_inputs is 2, expected 1..1",
    ),
    # ---- functions
    "function that calls itself": Fault(
        function(f(LOCAL, "f (p) => (q)", "q = local.h(p)") + f(LOCAL, "h (p) => (q)", "[again] q = local.f(p)")),
        "f (node 0 → 'y')/h (node 0 → 'q')/again",
        "the function local::f calls itself: local::f → local::h → local::f", "must not be recursive", LOCAL,
    ),
    "function with an unknown attribute": Fault(
        function(f(LOCAL, "f <alpha> (p) => (q)", "q = LeakyRelu<alpha: float = @alpha>(p)"), "local.f<beta = 1.0>(x)"),
        "f (node 0 → 'y')", "attribute 'beta' is not one of the function f", "it has alpha", LOCAL,
    ),
    "function with too many inputs": Fault(
        function(f(LOCAL, "f (p) => (q)", "q = Abs(p)"), "local.f(x, x)"), "f (node 0 → 'y')",
        "has 2 inputs, the function local::f takes 1", "", LOCAL,
    ),
    "function without its output": Fault(
        function(f(LOCAL, "f (p) => (q)", "r = Abs(p)")), "f (node 0 → 'y'): function local::f: output 'q'",
        "no node, input or initializer gives it", "", LOCAL,
    ),
    "fault inside a function": Fault(
        function(f(LOCAL, "f (p) => (q)", "a = Shape(p) q = Add(p, a)")), "f (node 0 → 'y')/Add (node 1 → 'q')",
        "one element type, found float32, int64", "Cast", LOCAL,
    ),
    "functions that double in each other": Fault(
        function(
            "".join(f(LOCAL, f"f{i} (p) => (q)", f"a = local.f{i + 1}(p) q = local.f{i + 1}(a)") for i in range(40))
            + f(LOCAL, "f40 (p) => (q)", "q = Abs(p)"),
            "local.f0(x)",
        ),
        "", "expand to too many nodes", "", LOCAL,
    ),
}  # fmt: skip


def external(model: ModelProto, **entries: str) -> None:
    tensor = model.graph.initializer[0]
    tensor.ClearField("float_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=value)


def parse(graph: str, opsets: str = '"" : 17') -> ModelProto:
    return onnx.parser.parse_model(f"<ir_version: 10, opset_import: [{opsets}]> {graph}")


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_faults_are_told(fault: Fault) -> None:
    model = parse(fault.graph, fault.opsets)
    if fault.change is not None:
        fault.change(model)
    with pytest.raises(ModelError) as caught:
        load(model.SerializeToString(), ImportOptions(strict=fault.strict))
    error = caught.value
    assert not isinstance(error, InternalError)
    assert type(error) is fault.kind
    if fault.where:
        assert error.where == f"model: {fault.where}"
    else:
        assert error.where.startswith("model")
    assert fault.what in error.what
    assert error.hint, "it does not say what to do"
    assert fault.hint in error.hint
    assert error.exit_code == 3


# ---- files


def written(folder: Path, **entries: str) -> Path:
    """A model with external data, beside a file of 8 bytes and below one that it may not read."""
    inner = folder / "model"
    inner.mkdir()
    (inner / "w.bin").write_bytes(bytes(8))
    (folder / "secret.bin").write_bytes(bytes(8))
    (inner / "link.bin").symlink_to(folder / "secret.bin")
    model = parse(WEIGHT)
    external(model, **entries)
    path = inner / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


@pytest.mark.parametrize(
    ("entries", "what", "hint"),
    [
        ({"location": "gone.bin"}, "external file 'gone.bin' is missing", "it must lie beside the model"),
        ({"location": "../secret.bin"}, "lies outside the model's folder", ""),
        ({"location": "/etc/hostname"}, "lies outside the model's folder", ""),
        ({"location": "link.bin"}, "lies outside the model's folder", ""),
        ({"location": ""}, "has no location", "external_data anew"),
        ({"location": "."}, "is missing", ""),
        ({"location": "w\0.bin"}, "is no file name", ""),
        ({"location": "w.bin", "offset": "4"}, "holds 8 bytes, the tensor needs 8 from 4 on", ""),
        ({"location": "w.bin", "offset": "-4"}, "offset = '-4', expected a number", ""),
        ({"location": "w.bin", "offset": "٣"}, "offset = '٣', expected a number", ""),
        ({"location": "w.bin", "offset": "9" * 5000}, "expected a number", ""),
        ({"location": "w.bin", "length": "4"}, "has length 4, the tensor needs 8 bytes", ""),
        ({}, "has no location", "external_data anew"),
    ],
)
def test_external_data(tmp_path: Path, entries: dict[str, str], what: str, hint: str) -> None:
    path = written(tmp_path, **entries)
    with pytest.raises(ModelError) as caught:
        load(path)
    assert caught.value.where == f"{path}: initializer 'w'"
    assert what in caught.value.what
    assert caught.value.hint
    assert hint in caught.value.hint


def test_good_external_data(tmp_path: Path) -> None:
    """Else the refusals above would show little."""
    load(written(tmp_path, location="w.bin", offset="0", length="8"))


@pytest.mark.parametrize(
    ("content", "what", "hint"),
    [
        (b"", "it holds no graph", ""),
        (b"not a model", "cannot be decoded", ""),
        (parse(ONE).SerializeToString()[:-12], "or only a part of one", ""),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n", "no", "git lfs pull"),
        (b"PK\x03\x04" + bytes(100), "no", "torch.onnx.export"),
        (b"\x1c\x00\x00\x00TFL3" + bytes(100), "no", "tf2onnx"),
        (b"\x89HDF\r\n\x1a\n" + bytes(100), "no", "tf2onnx"),
        (b"\x1f\x8b\x08" + bytes(100), "no", "unpack"),
    ],
)
def test_files_that_are_no_models(tmp_path: Path, content: bytes, what: str, hint: str) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    with pytest.raises(ModelError, match="not an ONNX model") as caught:
        load(path)
    assert caught.value.where == str(path)
    assert what in caught.value.what
    assert caught.value.hint
    assert hint in caught.value.hint


def test_paths_that_are_no_files(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"gone.onnx: no such file"):
        load(tmp_path / "gone.onnx")
    with pytest.raises(ModelError, match="cannot be read: Is a directory"):
        load(tmp_path)


def test_a_message_without_a_graph() -> None:
    with pytest.raises(ModelError, match="model: the model holds no graph"):
        load(ModelProto())


def test_what_is_let_pass_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "argosy.onnx"):
        load(parse("g (float[2] x) => (float[2] y) { y = Abs(x, x) }"))
        load(parse("g (float[2] x, int32[1] s) => (float[2] y) { y = Reshape(x, s) }"))
        load(parse("g (float[2] x) => (float[3] y) { y = Abs(x) }"))
        load(parse("g (float[2] x) => () { y = Abs(x) }"))
        load(parse("g (float[2] x) => (float[2] y) { y = FastGelu(x) }"))
    assert "Abs (node 0 → 'y'): has 2 inputs, Abs (opset 17) takes at most 1" in caplog.text
    assert "output 'y': is declared [3], but has the shape [2]" in caplog.text
    assert "the graph has no outputs, so that nothing is computed" in caplog.text
    assert caplog.text.count("FastGelu is no ai.onnx op of opset 17; taken from com.microsoft") == 1
    assert "input 1 ('s') is tensor(int32), Reshape (opset 17) takes tensor(int64)" in caplog.text


def test_negative_sizes_are_unknown(caplog: pytest.LogCaptureFixture) -> None:
    model = parse("g (float[N] x) => (float[M] y) { y = Abs(x) }")
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = -2
    with caplog.at_level(logging.WARNING, "argosy.onnx"):
        load(model)
    assert "input 'x': axis 0 has the size -2; taken as unknown" in caplog.text


def test_sizes_that_the_user_gives_are_not_compared_with_the_file(caplog: pytest.LogCaptureFixture) -> None:
    dims = Dimensions(shapes=(("x", (5,)),))
    with caplog.at_level(logging.WARNING, "argosy.onnx"):
        load(parse("g (float[N] x) => (float[2] y) { y = Abs(x) }"), ImportOptions(dims=dims))
    assert "declared" not in caplog.text


def test_a_model_without_opsets(caplog: pytest.LogCaptureFixture) -> None:
    """None were needed before IR version 3; later ones need them, and a function without has those of the model."""
    model = parse(ONE)
    del model.opset_import[:]
    with caplog.at_level(logging.WARNING, "argosy.onnx"):
        load(model)
    assert "the domain 'ai.onnx' is used but not imported; taken as version 1" in caplog.text
    caplog.clear()
    model.ir_version = 2
    load(model)
    assert not caplog.text
    made = parse(function(f(LOCAL, "f (p) => (q)", "s = Shape<start = 0>(p) q = Abs(p)")), LOCAL)
    del made.functions[0].opset_import[:]
    load(made, ImportOptions(strict=True))


@pytest.mark.nightly
def test_strict_takes_all_of_the_suite() -> None:
    """ONNX's suite keeps to the letter of the standard."""
    for case in load_cases(("node", "simple", "pytorch-converted", "pytorch-operator")):
        model = case.read()[0]
        try:
            load(model)
        except UnsupportedError:
            continue
        load(model, ImportOptions(strict=True))
