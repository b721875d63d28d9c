"""The code of a variant for people and as JSON: what each kernel is, needs and holds, and how it came about."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from argosy.artifact.artifact import Artifact
    from argosy.artifact.manifest import VariantRecord
    from argosy.artifact.plan import Block, CodeRecord, LaunchStep

__all__ = ["HEADER", "code_json", "code_rows", "has_toolchain", "kernel_texts"]

GPU_FORMS = ("hsaco", "cubin", "ptx")


def code_json(
    artifact: Artifact, variant: VariantRecord, *, wanted: str = "", texts: bool = False
) -> list[dict[str, Any]]:
    """An object for each code object of the variant, in the order of the plan; `wanted` is part of an entry's name.

    With `texts` there are source, stages and assembly too, made again by the toolchain of the gpu extra, and `same`
    says whether that gave the bytes that the artifact holds; without it what is not stored is left out.
    """
    plan = artifact.plan(variant.key)
    launches = {step.code: step for step in _launches((*(b for p in plan.prepare for b in p.body), *plan.body))}
    told = []
    for number, code in enumerate(plan.code):
        each = _one(artifact, variant, code, launches.get(number), wanted)
        if each is not None:
            told.append(each)
    if texts:
        _add_texts(artifact, variant, told)
    for each in told:
        each.pop("code", None)
    return told


def _one(
    artifact: Artifact, variant: VariantRecord, code: CodeRecord, step: LaunchStep | None, wanted: str
) -> dict[str, Any] | None:
    from argosy.toolchains.gpu_code_object import facts_of, matrix_instructions

    content = artifact.entry(variant.key, code.path)
    if code.form not in GPU_FORMS:
        told: dict[str, Any] = {"entry": code.path, "form": code.form, "bytes": len(content)}
        return told if wanted in code.path else None
    facts = facts_of(code.form, content)
    if wanted not in facts.entry:
        return None
    assembly = artifact.entry(variant.key, code.assembly).decode() if code.assembly else None
    if code.form == "ptx":
        assembly = content.decode()
    return {
        "entry": facts.entry,
        "form": facts.form,
        "bytes": len(content),
        "arch": facts.arch,
        "triple": facts.triple,
        "elf_flags": facts.flags,
        "threads": step.block[0] if step else None,
        "wave_size": facts.wave_size,
        "registers": facts.registers,
        "scalar_registers": facts.scalar_registers,
        "accumulation_registers": facts.accumulation_registers,
        "spilled_registers": facts.spills,
        "stack_bytes": facts.stack,
        # What the launch asks for comes on top of what the code reserves.
        "shared_bytes": (facts.shared or 0) + (step.shared if step else 0),
        "parameter_bytes": facts.parameter_bytes,
        "matrix_instructions": None if assembly is None else matrix_instructions(assembly),
        "assembly": assembly,
        "source_node": step.source if step else "",
        "code": content,
    }


def _add_texts(artifact: Artifact, variant: VariantRecord, told: list[dict[str, Any]]) -> None:
    """Source and stages of each kernel, made again. Raises MissingExtraError without the toolchain."""
    from argosy.targets.gpu.remaking import remade_kernels
    from argosy.toolchains.gpu_code_object import matrix_instructions

    kernels = [each for each in told if each["form"] in GPU_FORMS]
    if not kernels:
        return
    made = remade_kernels(artifact.program().main, variant, {each["entry"] for each in kernels})
    for each in kernels:
        found = made.get(each["entry"])
        if found is None:
            each["same"] = False
            continue
        each["same"] = found.code == each["code"]
        each["source"] = found.source
        each["stages"] = dict(found.stages)
        if each["assembly"] is None:
            each["assembly"] = found.stages.get("ptx")
            each["matrix_instructions"] = matrix_instructions(each["assembly"] or "")


def has_toolchain() -> bool:
    """Whether the gpu extra is installed."""
    return importlib.util.find_spec("triton") is not None


def _launches(blocks: Sequence[Block]) -> Iterator[LaunchStep]:
    from argosy.artifact.plan import IfBlock, LaunchStep, StraightBlock

    for block in blocks:
        if isinstance(block, StraightBlock):
            yield from (step for step in block.steps if isinstance(step, LaunchStep))
        elif isinstance(block, IfBlock):
            yield from _launches((*block.then, *block.otherwise))
        else:
            yield from _launches(block.body)


HEADER = ("kernel", "form", "arch", "flags", "bytes", "threads", "registers", "shared", "spills", "matrix")


def code_rows(told: Sequence[dict[str, Any]]) -> list[tuple[str, ...]]:
    """A row for each code object, under HEADER; `-` is what the code does not say."""
    rows = []
    for each in told:
        if each["form"] not in GPU_FORMS:
            rows.append((each["entry"], each["form"], "", "", str(each["bytes"]), *[""] * 5))
            continue
        matrix = each["matrix_instructions"]
        flags = each["elf_flags"]
        spilled = each["spilled_registers"]
        rows.append(
            (
                each["entry"],
                each["form"],
                each["arch"],
                "-" if flags is None else f"{flags:#x}",
                str(each["bytes"]),
                _text(each["threads"]),
                _text(each["registers"]),
                str(each["shared_bytes"]),
                _text(spilled) if spilled is not None else f"{_text(each['stack_bytes'])} B",
                "?" if matrix is None else str(sum(matrix.values())),
            )
        )
    return rows


def _text(number: int | None) -> str:
    return "-" if number is None else str(number)


def kernel_texts(told: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Everything about each kernel: its facts, its source, the stages and the assembly."""
    for each in told:
        yield f"==== {each['entry']}"
        for name, value in each.items():
            if name not in ("assembly", "source", "stages", "entry"):
                yield f"{name}: {value}"
        last = {"assembly": each.get("assembly") or ""}
        stages = {name: text for name, text in each.get("stages", {}).items() if text != last["assembly"]}
        for name, text in ({"source": each.get("source") or ""} | stages | last).items():
            if text:
                yield f"---- {name}"
                yield text.rstrip()
