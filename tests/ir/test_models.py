"""Models as users have them: valid as imported, and the same after a way through their text."""

from __future__ import annotations

import pytest
from onnx.backend.test.case.node import collect_testcases

import argosy
from argosy.errors import UnsupportedError
from argosy.ir import Program
from argosy.ir.hashing import model_hash
from argosy.ir.parser import parse_program
from argosy.ir.printer import print_program
from argosy.ir.validate import validate
from benchmarks.models import catalog, real
from tests.ir.structure import literals_in, same_program
from tests.models import real_models

BUILT = [
    "resnet_small",
    "mobilenet_small",
    "bert_small",
    "vit_small",
    "lstm_small",
    "decoder_small",
    "two_branches_small",
]


def check(program: Program) -> None:
    validate(program)
    text = print_program(program)
    again = parse_program(text, {literal.digest: literal for literal in literals_in(program)})
    assert print_program(again) == text
    assert same_program(again, program)
    assert model_hash(again) == model_hash(program)
    validate(again)


@pytest.mark.parametrize("name", BUILT)
def test_built_models(name: str) -> None:
    check(argosy.load_onnx(catalog.make(name)))


@pytest.mark.models
@pytest.mark.parametrize("model_id", [entry.id for entry in real.models("per-change")])
def test_real_models(model_id: str) -> None:
    check(argosy.load_onnx(real_models.path(model_id)))


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore")  # onnx computes the expected outputs of its cases, some of them NaN
def test_every_case_of_onnx() -> None:
    checked = 0
    for case in collect_testcases(""):
        try:
            program = argosy.load_onnx(case.model)
        except UnsupportedError:
            continue
        check(program)
        checked += 1
    assert checked > 1500
