"""`argosy.why`: what is told of nodes whose way one can foresee, and how nodes are named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx
import onnx.parser
import pytest

import argosy
from argosy.artifact.plan import CallStep, steps_in
from argosy.errors import UsageError
from argosy.explaining import ArchReport, NodeReport
from argosy.toolchains.triton import CompiledKernel, Refused, TritonSource, compile_kernels
from benchmarks.models import catalog
from benchmarks.models.family import serialize

CPU = "x86-64-v3"
MIX = """<ir_version: 10, opset_import: ["" : 21, "own" : 1]>
g (float[N, 4] x, int64 n, bool c) => (float[N, 4] y, float[N, 4] z) {
  zero = Constant<value_float = 0.0>()
  a = Identity(x)
  s = Shape(a)
  b = Reshape(a, s)
  k = Constant<value_floats = [1.0, 2.0, 3.0, 4.0]>()
  kk = Mul(k, k)
  d = Add(b, kk)
  e = Add(b, kk)
  f = own.twice(d)
  g = Mul(f, e)
  dead = Exp(g)
  y = Loop(n, c, g) <body = inner (int64 i, bool cc, float[N, 4] v) => (bool co, float[N, 4] w) {
    co = Identity(cc) w = Tanh(v) }>
  z = If(c) <then_branch = t () => (float[N, 4] p) { p = Sin(d) }, else_branch = u () => (float[N, 4] r) { r = Cos(g) }>
}
<domain: "own", opset_import: ["" : 21]> twice (p) => (q) { h = Sqrt(p) q = Neg(h) }"""
NODES = {
    "zero": "Constant (node 0 → 'zero')",
    "shape": "Shape (node 2 → 's')",
    "reshape": "Reshape (node 3 → 'b')",
    "kk": "Mul (node 5 → 'kk')",
    "add": "Add (node 6 → 'd')",
    "again": "Add (node 7 → 'e')",
    "twice": "twice (node 8 → 'f')",
    "mul": "Mul (node 9 → 'g')",
    "loop": "Loop (node 11 → 'y')",
    "tanh": "Loop (node 11 → 'y')/body/Tanh (node 1 → 'w')",
    "if": "If (node 12 → 'z')",
}


@pytest.fixture(scope="module")
def mix() -> bytes:
    content: bytes = onnx.parser.parse_model(MIX).SerializeToString()
    return content


def asked(model: bytes | Path, *nodes: str, arch: str = CPU) -> tuple[NodeReport, ArchReport]:
    (node,) = argosy.why(model, nodes, targets=[arch]).nodes
    (report,) = node.archs
    return node, report


def test_a_line_for_each_node(mix: bytes) -> None:
    found = {node.name: node.archs[0].summary for node in argosy.why(mix, targets=[CPU]).nodes}
    assert found[NODES["zero"]] == "no instruction: what it gives is there already, or nothing needs it"
    assert found[NODES["reshape"]] == "nothing is left to do: x is read in its place"
    assert found[NODES["shape"]] == f"in {NODES['reshape']}: nothing is left to do: x is read in its place"
    assert found[NODES["kk"]] == "its value is a constant"
    assert found["Exp (node 10 → 'dead')"] == "nothing reads it any more, and it is removed"
    assert found[NODES["again"]].startswith(f"in {NODES['add']}: ")
    assert found[NODES["tanh"]] == "elementwise loops"
    assert found[NODES["loop"]].startswith("control flow, with ")
    assert len(found) == 17


def test_pass_by_pass(mix: bytes) -> None:
    node, told = asked(mix, "e")
    assert (node.name, node.op, node.outputs) == (NODES["again"], "Add", ("e",))
    assert node.imported == ("|x0, x1| add(x0, x1) : float32[N, 4]  of b, kk",)
    merged = next(change for change in told.changes if change.fate)
    assert (merged.phase, merged.name) == ("normalise", "eliminate_common")
    assert merged.fate == f"{NODES['add']} gives the same, and is read in its place"
    assert merged.before == ("|x0, x1| add(x0, x1) : float32[N, 4]  of x, kk",), "b is x by then"
    assert told.changes[-1].name == "fuse_loops"
    _, told = asked(mix, "b")
    names = [(change.name, change.fired) for change in told.changes]
    assert names == [("normalize_attributes", ("give_reshape_dims",)), ("simplify_views", ("reshape_to_same",))]


def test_a_function_is_one_node(mix: bytes) -> None:
    node, told = asked(mix, "twice")
    assert node.imported == (
        "|x0| sqrt(x0) : float32[N, 4]  of d",
        "|x0| neg(x0) : float32[N, 4]  of h",
    )
    inner = (f"{NODES['twice']}/Sqrt (node 0 → 'h')", f"{NODES['twice']}/Neg (node 1 → 'q')")
    assert told.ways[0].nodes == (*inner, NODES["mul"])
    assert asked(mix, f"{NODES['twice']}/Neg (node 1 → 'q')")[0].name == NODES["twice"]


def test_the_way_it_is_done_is_that_of_the_compiled_plan() -> None:
    model = serialize(catalog.make("resnet_small"))[0]
    artifact = argosy.compile(model, targets=[CPU])
    (variant,) = artifact.variants
    plan = artifact.plan(variant.key)
    bodies = (plan.body, *(record.body for record in plan.prepare))
    steps = [step for body in bodies for step in steps_in(body) if isinstance(step, CallStep)]
    ways = [way for node in argosy.why(model, targets=[CPU]).nodes for way in node.archs[0].ways]
    told = {line.split(",")[0].removeprefix("call ") for way in ways for line in way.steps}
    assert told == {step.entry for step in steps}
    assert {kernel for way in ways for kernel in way.kernels} >= told
    sources = {step.source for step in steps}
    assert all(any(source in way.nodes for way in ways) for source in sources)


SIZES = {"batch": (1, 8), "sequence": (16,)}


@pytest.fixture(scope="module")
def bert() -> bytes:
    return serialize(catalog.make("bert_small"))[0]


def test_code_for_single_sizes_is_told_beside_the_general(bert: bytes) -> None:
    """The first token is picked by a kernel of its own where the size is open, and by the product behind it else."""
    (picked,) = argosy.why(bert, "pooler/Gather", targets=[CPU], dims=SIZES).nodes
    assert [(each.arch, each.words, each.dims) for each in picked.archs] == [
        (CPU, CPU, {}),
        (CPU, f"{CPU}, batch=1", {"batch": 1}),
        (CPU, f"{CPU}, batch=8", {"batch": 8}),
    ]
    for told in picked.archs[1:]:
        bound = argosy.why(bert, "pooler/Gather", targets=[CPU], dims={**told.dims, "sequence": 16})
        assert told.ways == bound.nodes[0].archs[0].ways, "that of a model with the size bound"
        assert told.changes[0].name == "bind_dims"
    (reference,) = argosy.why(bert, "pooler/Gather", targets=["ref"], dims=SIZES).nodes[0].archs
    assert reference.dims == {}, "it has no code"
    with pytest.raises(UsageError, match="no dim called 'rows'"):
        argosy.why(bert, targets=[CPU], dims={"rows": (1, 8)})


def test_each_variant_of_an_artifact_is_told_as_its_plan_is(bert: bytes) -> None:
    made = argosy.compile(bert, targets=[CPU], dims={"batch": (1, 8), "sequence": (16, 32)}, accuracy="exact")
    artifact = argosy.Artifact.open(made.to_bytes())
    nodes = argosy.why(artifact).nodes
    for place, variant in enumerate(artifact.variants):
        told = [node.archs[place] for node in nodes]
        assert all((each.words, each.dims) == (variant.words, variant.dims) for each in told)
        plan = artifact.plan(variant.key)
        bodies = (plan.body, *(record.body for record in plan.prepare))
        entries = {step.entry for body in bodies for step in steps_in(body) if isinstance(step, CallStep)}
        steps = [step for each in told for way in each.ways for step in way.steps if step.startswith("call ")]
        found = {step.split(",")[0].removeprefix("call ") for step in steps}
        assert found == {entry for entry in entries if not entry.startswith("check_sizes")}
        assert not any(each.note for each in told)
    one = argosy.why(artifact, "pooler/Gather", dims={"batch": 8, "sequence": 32}).nodes[0].archs
    assert [each.dims for each in one] == [{"batch": 8, "sequence": 32}]
    some = argosy.why(artifact, "pooler/Gather", dims={"batch": 8}).nodes[0].archs
    assert [each.dims for each in some] == [{}, {"batch": 8, "sequence": 16}, {"batch": 8, "sequence": 32}]
    low = argosy.why(artifact, "pooler/Gather", dims={"batch": "1..7", "sequence": 16}).nodes[0].archs
    assert [each.dims for each in low] == [{}, {"batch": 1, "sequence": 16}]
    (general,) = argosy.why(artifact, "pooler/Gather", dims={"batch": 5}).nodes[0].archs
    assert general.dims == {}
    assert [each.words for each in argosy.why(artifact, "pooler/Gather", targets=["ref"]).nodes[0].archs] == ["ref"]


def test_what_an_artifact_has_no_code_for(bert: bytes) -> None:
    artifact = argosy.compile(bert, targets=[CPU, "gfx942"], precision="fp16", dims={"batch": 1, "sequence": 16})
    (told,) = argosy.why(artifact, "pooler/Gather", targets=["cdna3"]).nodes[0].archs
    assert told.words == "gfx942, fp16"
    with pytest.raises(UsageError, match="it has no code for sm_90") as caught:
        argosy.why(artifact, targets=["gfx942,sm_90"])
    assert caught.value.hint == f"it has code for {CPU}, gfx942"
    with pytest.raises(UsageError, match="an artifact is compiled already"):
        argosy.why(artifact, precision="fp16")


def test_kernels_that_an_artifact_has_not_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The artifact was made without what Triton refused; outlined, all of it is there."""
    text = '<ir_version: 10, opset_import: ["" : 21]> g (float[64, 64] x) => (float[64, 64] y) { y = MatMul(x, x) }'
    model = onnx.parser.parse_model(text).SerializeToString()
    (way,) = asked(model, "y", arch="gfx942")[1].ways
    monkeypatch.setattr("argosy.targets.gpu.variant.compile_kernels", _but_one(way.kernels[-1]))
    artifact = argosy.compile(model, targets=["gfx942"])
    told = argosy.why(artifact, "y").nodes[0].archs[0]
    assert told.note.startswith(f"{way.kernels[-1]} not in the artifact: ")
    monkeypatch.undo()
    told = argosy.why(argosy.compile(model, targets=["gfx942"]), "y").nodes[0].archs[0]
    assert not told.note, "the file says that Triton took them"


def _but_one(entry: str) -> Any:
    """Triton, given for one kernel a text that is none of its own."""

    def compile_most(sources: Sequence[TritonSource], *given: Any, **options: Any) -> list[CompiledKernel | Refused]:
        bad = [replace(each, text="x +") if each.entry == entry else each for each in sources]
        return compile_kernels(bad, *given, **options)

    return compile_most


def test_what_triton_refuses_is_told_where_kernels_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    text = '<ir_version: 10, opset_import: ["" : 21]> g (float[64, 64] x) => (float[64, 64] y) { y = MatMul(x, x) }'
    model = onnx.parser.parse_model(text).SerializeToString()
    (way,) = asked(model, "y", arch="gfx942")[1].ways

    monkeypatch.setattr("argosy.targets.gpu.variant.compile_kernels", _but_one(way.kernels[-1]))
    told = argosy.why(model, "y", targets=["gfx942"], toolchains=True).nodes[0].archs[0]
    (other,) = told.ways
    assert other.kernels != way.kernels
    assert any(line.startswith(f"{way.solution}: ") and "SyntaxError" in line for line in other.declined)
    assert not told.note


def test_weights_are_done_at_load() -> None:
    model = serialize(catalog.make("resnet_small"))[0]
    _, told = asked(model, "stem/BatchNormalization", arch="gfx942")
    assert told.summary == "in stem/Conv: elementwise, once at load; matrix convolution, with stem/Relu"
    assert [change.name for change in told.changes if change.fate == "it is part of stem/Conv"] == ["fold_scales"]
    once, convolution = told.ways
    assert once.at_load
    assert once.steps
    assert convolution.nodes == ("stem/Conv", "stem/Relu")
    assert "rows=" in convolution.config
    assert "Triton" in told.note


def test_a_host_step_says_why() -> None:
    text = '<ir_version: 10, opset_import: ["" : 21]> g (string[N] x) => (string[N] y) { y = StringConcat(x, x) }'
    _, told = asked(onnx.parser.parse_model(text).SerializeToString(), "StringConcat")
    (way,) = told.ways
    assert way.host
    assert way.declined == ("string_concat has values that only the host holds: string[N]",)
    assert told.summary == f"on the host, by numpy: {way.declined[0]}"
    assert way.steps == ("evaluate string_concat by numpy, %0, %0 → %1",)


def test_rules_that_declined_say_why() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21]> g (float[N, 4] x) => (float[N, 4] y) {
      zero = Constant<value_float = 0.0>()  y = Add(x, zero) }"""
    _, told = asked(onnx.parser.parse_model(text).SerializeToString(), "Add")
    (change,) = (change for change in told.changes if change.declined)
    assert change.name == "simplify_algebra"
    assert change.declined == ("add_zero: the summand is +0, and -0 + +0 is +0",)
    assert change.before == change.after == change.fired == ()


def test_the_reference_and_other_sources(mix: bytes, tmp_path: Path) -> None:
    assert asked(mix, "tanh", arch="ref")[1].summary.startswith("numpy evaluates the program as it was imported")
    program = argosy.load_onnx(mix)
    node = argosy.why(program, NODES["add"], targets=[CPU]).nodes[0]
    assert (node.op, node.outputs) == ("Add", ("d",))
    assert {each.name for each in argosy.why(program, targets=["ref"]).nodes} >= {NODES["add"], NODES["tanh"]}


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("Tanh", "tanh"),
        ("tanh", "tanh"),
        ("w", "tanh"),
        ("9", "mul"),
        ("node 9", "mul"),
        ("Mul (node 9 → 'g')", "mul"),
        ("g", "mul"),
        ("Tanh (node 1 → 'w')", "tanh"),
        ("If", "if"),
    ],
)
def test_ways_to_name_a_node(mix: bytes, name: str, found: str) -> None:
    assert asked(mix, name, arch="ref")[0].name == NODES[found]


@pytest.mark.parametrize(
    ("name", "what", "hint"),
    [
        ("Add", "2 nodes are meant by 'Add'", f"name one of: {NODES['add']}; {NODES['again']}"),
        ("Tanhh", "the model has no node 'Tanhh'", "did you mean 'Tanh'?"),
        ("99", "the model has no node '99'", ""),
        ("~~~~", "the model has no node '~~~~'", "without --node all nodes are listed"),
    ],
)
def test_names_that_are_none(mix: bytes, name: str, what: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        argosy.why(mix, name, targets=["ref"])
    assert caught.value.what == what
    assert hint in caught.value.hint
