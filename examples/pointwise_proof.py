"""For every GPU arch: a chain of pointwise ops becomes one generated kernel, in code that names that arch and no other.

Needs no GPU; the gpu extra compiles. `python examples/pointwise_proof.py [ARCH …]` writes a line for each arch.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import argosy
from argosy.artifact.plan import LaunchStep, StraightBlock
from argosy.ir import Builder, Program
from argosy.targets.gpu.arch import ARCHS
from argosy.toolchains.gpu_code_object import CodeFacts, facts_of


def chain() -> Program:
    """max(0, (x + y) * x - y): four ops, of any number of rows."""
    b = Builder()
    x = b.tensor_parameter("x", "float32", ["N", 64])
    y = b.tensor_parameter("y", "float32", ["N", 64])
    scaled = b.pointwise("mul", b.pointwise("add", x, y), x)
    return Program(b.module({"z": b.pointwise(lambda v: v.max(0.0), b.pointwise("sub", scaled, y))}))


def proof(arch: str) -> CodeFacts:
    """What the one kernel says of itself. Raises AssertionError where there are more, or code for another arch."""
    artifact = argosy.compile(chain(), targets=(arch,), strict=True)
    (variant,) = artifact.variants
    plan = artifact.plan(variant.key)
    (block,) = plan.body
    steps = block.steps if isinstance(block, StraightBlock) else ()
    launches = [step for step in steps if isinstance(step, LaunchStep)]
    if (len(steps), len(launches), len(plan.code), len(plan.prepare)) != (1, 1, 1, 0):
        raise AssertionError(f"{arch}: not one kernel but {plan.body}")
    (step,), (code,) = launches, plan.code
    facts = facts_of(code.form, artifact.entry(variant.key, code.path))
    if facts.entry != step.entry or facts.arch != arch.replace("compute_", "sm_"):
        raise AssertionError(f"{arch}: the code holds {facts.entry} for {facts.arch}")
    return facts


def main(archs: Sequence[str]) -> None:
    """Prove it for these archs, or for all."""
    for arch in archs or ARCHS:
        facts = proof(arch)
        flags = "-" if facts.flags is None else f"{facts.flags:#x}"
        print(f"{arch:16} {facts.form:6} {facts.entry}  {facts.triple}  ELF flags {flags}, {facts.registers} registers")


if __name__ == "__main__":
    main(sys.argv[1:])
