"""A small artifact with a part of every kind, and its pieces, for the tests of this folder."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from argosy.artifact.artifact_writer import Content, write_artifact
from argosy.artifact.container_writer import ContainerWriter
from argosy.artifact.manifest import (
    PROGRAM_ENTRY,
    SCHEMA,
    Manifest,
    ModelInfo,
    Option,
    Producer,
    ValueInfo,
    VariantRecord,
    WeightRecord,
    variant_folder,
    variant_key,
    weight_entry,
)
from argosy.artifact.plan import (
    PLAN,
    ArenaRecord,
    BindingRecord,
    BufferRecord,
    CallStep,
    CarriedRecord,
    CheckDim,
    CheckStep,
    CodeRecord,
    CollectedRecord,
    ComputeDim,
    CopyStep,
    EvaluateStep,
    HiddenArgument,
    IfBlock,
    InputDim,
    LaunchStep,
    LoopBlock,
    PlanRecord,
    PointerArgument,
    PrepareRecord,
    RunStep,
    ScalarArgument,
    ScratchArgument,
    ShapeStep,
    SizeDemand,
    StraightBlock,
    TensorMapArgument,
)
from argosy.artifact.program import (
    PROGRAM,
    BytesValue,
    ConstantRecord,
    DimValue,
    DTypeValue,
    FloatValue,
    FormulaStep,
    FormulaValue,
    InlineLiteral,
    InstructionRecord,
    LiteralRef,
    ModuleRecord,
    ModuleValue,
    NamedType,
    NamedValue,
    ProgramRecord,
    SplatLiteral,
    StringsLiteral,
    SymbolRecord,
    TupleValue,
    TypeValue,
    Value,
)
from argosy.artifact.zipformat import sort_key

PRODUCER = Producer("argosy", "0.1.0")
WEIGHTS = {
    "conv.weight": np.arange(2048, dtype=np.float32).reshape(32, 64),
    "fc.weight": np.linspace(-1, 1, 1500, dtype=np.float32).reshape(15, 100),
}


def sha256(array: np.ndarray[Any, Any]) -> str:
    return hashlib.sha256(array.tobytes()).hexdigest()


def ref(array: np.ndarray[Any, Any]) -> LiteralRef:
    return LiteralRef(sha256(array), array.dtype.name, array.shape)


def program(weights: Mapping[str, np.ndarray[Any, Any]] = WEIGHTS) -> ProgramRecord:
    """A program with every kind of value and operand; not one that means anything."""
    constants = tuple(
        InstructionRecord("constant", 1, results=("float32[2, 2]",), attributes={"value": ref(array)}, names=(name,))
        for name, array in weights.items()
    )
    count = len(constants)
    formula = FormulaValue(2, (FormulaStep("add", (0, ConstantRecord(FloatValue("0.5")))), FormulaStep("max", (1, 2))))
    attributes: dict[str, Value] = {
        "axis": -1,
        "keep": True,
        "mode": "constant",
        "alpha": FloatValue("-0.0"),
        "nothing": None,
        "raw": BytesValue(b"\x00\xff"),
        "to": DTypeValue("bfloat16"),
        "size": DimValue("2*N + 1"),
        "kind": TypeValue("sequence(float32[N])"),
        "pads": TupleValue((0, 1, TupleValue((FloatValue("nan"), DimValue("N"))))),
        "formula": formula,
        "bias": InlineLiteral("float32", bytes(8), (2,)),
        "zero": SplatLiteral("int4", b"\x07", (1000, 1000)),
        "labels": StringsLiteral(("cat", "dög"), (2,)),
    }
    main = ModuleRecord(
        "main",
        (NamedType("x", "float32[N, 3]"), NamedType("flag", "bool[]")),
        (
            *constants,
            InstructionRecord(
                "pointwise", 2, ((-1, 0), (0, 0), None), ("float32[N, 3]",), attributes, ("y",), "Add (node 3 → 'y')"
            ),
            InstructionRecord("if", 1, ((-1, 1), (count, 0)), ("float32[?, 3]",), {"body": ModuleValue(1)}),
        ),
        (NamedValue("out", (count + 1, 0)), NamedValue("also", (-1, 0))),
    )
    body = ModuleRecord("body", (NamedType("", "float32[N, 3]"),), (), (NamedValue("", (-1, 0)),))
    return ProgramRecord((main, body), (SymbolRecord("N", 1, 512), SymbolRecord("?nonzero")), {"opset": "21"})


def plan(weights: Mapping[str, np.ndarray[Any, Any]] = WEIGHTS) -> PlanRecord:
    """A plan with every kind of buffer, block, step and argument."""
    weight = next(iter(weights.values()))
    buffers = (
        BufferRecord("input", "float32[N, 3]"),
        BufferRecord("input", "bool[]"),
        BufferRecord("weight", "float32[32, 64]", ref(weight)),
        BufferRecord("prepared", "float16[64, 32]"),
        BufferRecord("planned", "float32[N, 3]", arena=0, size="12*N"),
        BufferRecord("planned", "int64[]", arena=1, size=64),
        BufferRecord("pooled", "float32[?, 3]"),
        *(BufferRecord("value", "float32[N, 3]") for _ in range(8)),
        BufferRecord("view", "int64[]", base=5, shift=56, size=8),
    )
    steps = (
        EvaluateStep("pointwise", 2, (7,), (0, None, 2), {"body": ModuleValue(0), "w": ref(weight)}, "Add (node 3)"),
        CopyStep(7, 4),
        ShapeStep("?nonzero", 7, 0),
        LaunchStep(
            0, "kernel", ("ceildiv(N, 256)", 1, 1), (256, 1, 1), 320,
            (
                PointerArgument(0, 4, "4*N"), ScalarArgument(8, "int32", "N"), ScratchArgument(16, 1024, zeroed=True),
                TensorMapArgument(64, 3, "float16", (32, "N"), ("64*N",), (32, 8), 128),
                HiddenArgument(192, 4, "hidden_block_count_x"),
            ),
            (3, 4), (6,), 4096, 16, (2, 1, 1), cooperative=True, stream=1, waits=(0,), signal=1, source="Conv (node 4)",
        ),
        CallStep(1, "argosy_conv", "N", 8, (PointerArgument(0, 6),), (6,), (5, 15), 4096),
        CheckStep((SizeDemand("N", "2*M", 1), SizeDemand("N", 3, -1, "both")), "Add (node 4)"),
        RunStep(5),
    )  # fmt: skip
    branch = IfBlock(
        1,
        (StraightBlock((CopyStep(0, 8),)),),
        (StraightBlock((CopyStep(7, 8), CopyStep(7, 9))),),
        "If (node 5)",
    )
    loop = LoopBlock(
        (StraightBlock((EvaluateStep("add", 1, (11,), (10, 0)), EvaluateStep("not", 1, (12,), (1,)))),),
        trip_count=5,
        condition=1,
        next_condition=12,
        iteration=13,
        carried=(CarriedRecord(8, 10, 11, 9),),
        collected=(CollectedRecord(11, 14, 0, reverse=True),),
        source="Loop (node 6)",
    )
    return PlanRecord(
        (BindingRecord("x", 0), BindingRecord("flag", 1)),
        (BindingRecord("out", 9), BindingRecord("also", 14)),
        buffers,
        (StraightBlock(steps, capture=True), branch, loop),
        (SymbolRecord("N", 1, 512), SymbolRecord("M"), SymbolRecord("?nonzero")),
        (InputDim("N", 0, 0), ComputeDim("M", "2*N"), CheckDim(0, 1, 3)),
        (ArenaRecord("device", 256), ArenaRecord("host", 64)),
        (CodeRecord("code/kernel.hsaco", "hsaco", "asm/kernel.s"), CodeRecord("code/cpu.so", "elf")),
        (PrepareRecord("transpose", (3,), (StraightBlock((EvaluateStep("transpose", 1, (3,), (2,)),)),)),),
        (ModuleRecord("inner", (NamedType("a", "float32[N, 3]"),), (), (NamedValue("b", (-1, 0)),)),),
        streams=2,
        events=2,
    )


def variant(arch: str = "gfx000", **changed: Any) -> VariantRecord:
    fields: dict[str, Any] = {
        "family": "test",
        "words": f"{arch}, fp32",
        "numeric": {"precision": "fp32", "allow_tf32": False},
        "toolchain": {"triton": "3.9.0"},
    } | changed
    record = VariantRecord(key="", arch=arch, **fields)
    return msgspec.structs.replace(record, key=variant_key(record))


CODE = {
    "code/kernel.hsaco": b"\x7fELF" + bytes(range(256)),
    "code/cpu.so": b"\x7fELF" + b"1" * 99,
    "asm/kernel.s": b"s_endpgm\n" * 20,
}


def parts(
    *variants: VariantRecord,
    weights: Mapping[str, np.ndarray[Any, Any]] = WEIGHTS,
    model: str = "net",
    storage: str = "embedded",
    options: Mapping[str, Option] | None = None,
) -> tuple[Manifest, dict[str, Content]]:
    """The manifest (entries not filled in) and the contents of an artifact."""
    raw = PROGRAM.to_msgpack(program(weights))
    contents: dict[str, Content] = {PROGRAM_ENTRY: raw}
    for record in variants:
        folder = variant_folder(record.key)
        contents[f"{folder}plan.msgpack"] = PLAN.to_msgpack(plan(weights))
        contents |= {folder + name: code for name, code in CODE.items()}
    rows: dict[str, WeightRecord] = {}
    for array in weights.values():
        digest = sha256(array)
        rows[digest] = WeightRecord(array.dtype.name, array.shape, array.nbytes, storage)  # type: ignore[arg-type]
        if storage == "embedded":
            contents[weight_entry(digest)] = array.tobytes()
    manifest = Manifest(
        SCHEMA,
        PRODUCER,
        ModelInfo(model, hashlib.sha256(raw).hexdigest()),
        (ValueInfo("x", "float32[N, 3]", ("N", 3)), ValueInfo("flag", "bool[]", ())),
        (ValueInfo("out", "float32[?, 3]", ("?", 3)), ValueInfo("also", "sequence(float32[N])")),
        symbols=(SymbolRecord("N", 1, 512),),
        variants=variants,
        weights=rows,
        options=dict(options or {}),
    )
    return manifest, contents


def artifact(*variants: VariantRecord, **changed: Any) -> bytes:
    """The bytes of a valid artifact."""
    return written(*parts(*(variants or (variant(),)), **changed))


def written(manifest: Manifest, contents: Mapping[str, Content]) -> bytes:
    """The bytes of an artifact with these parts."""
    file = io.BytesIO()
    write_artifact(file, manifest, contents)
    return file.getvalue()


def rebuild(contents: Mapping[str, bytes], order: Sequence[str] | None = None) -> bytes:
    """A container of any entries, the manifest among them: checksums are right, nothing else is looked at."""
    file = io.BytesIO()
    writer = ContainerWriter(file)
    for name in order or sorted(contents, key=sort_key):
        writer.add(name, contents[name])
    writer.finish()
    return file.getvalue()


def unchecked(contents: Mapping[str, bytes], manifest: Mapping[str, Any]) -> bytes:
    """An artifact with any contents: hashes, sizes and offsets are right, no rule is looked at."""
    file = io.BytesIO()
    writer = ContainerWriter(file)
    entries = {}
    for name in sorted(contents, key=sort_key):
        written = writer.add(name, contents[name])
        entry = written.entry
        entries[name] = {"sha256": written.sha256, "offset": entry.start, "size": entry.size, "stored": entry.stored}
    writer.add("manifest.json", msgspec.json.encode({**manifest, "entries": entries}, order="sorted"))
    writer.finish()
    return file.getvalue()
