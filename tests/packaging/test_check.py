"""Real installations from a local server: what `argosy index check` does, and that it sees what is wrong.

The wheel of argosy is built here and listed in the index; numpy and the like come from this machine's ordinary index.
"""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import argosy
from argosy import host_cpu
from argosy.artifact.artifact import Artifact
from argosy.packaging.build import build_index, install_line
from argosy.packaging.check import check_index
from argosy.packaging.index import Index
from argosy.packaging.package import package
from argosy.packaging.pip import fresh_environment, ordinary_index, run_pip, run_python
from benchmarks.models import catalog
from benchmarks.models.family import serialize
from tests.cli import models
from tests.packaging.releases import files

ROOT = Path(__file__).resolve().parents[2]
ARCHS = ("x86-64-v2", "x86-64-v2-windows")
RUN = """\
import json, sys
import numpy, net
session = net.session()
x = numpy.linspace(-1, 1, 12, dtype=numpy.float32).reshape(3, 4)
print(json.dumps({"variant": session.variant, "y": session.run({"x": x})["y"].tolist()}))
"""

on_x86 = pytest.mark.skipif(
    (host_cpu.system(), host_cpu.isa()) != ("linux", "x86_64"), reason="the code is for Linux on x86-64"
)


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this argosy."""
    folder = tmp_path_factory.mktemp("runtime")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def built(folder: Path, runtime: Path) -> Index:
    model = models.classifier(folder / "model.onnx")
    argosy.compile(model, targets=ARCHS).save(folder / "fleet.argosy")
    package(Artifact.open(folder / "fleet.argosy"), name="net", version="1.2", folder=folder / "dist")
    return build_index(folder / "dist", folder / "dist", also=[runtime])


@on_x86
def test_a_fresh_environment_gets_its_code_and_runs_it(tmp_path: Path, runtime: Path) -> None:
    index = built(tmp_path, runtime)
    python = fresh_environment(tmp_path / "environment")
    base = (tmp_path / "dist").as_uri()
    line = install_line(index.releases[0], ["x86-64-v2"], base=base, ordinary=ordinary_index())
    assert line[:3] == ["pip", "install", "--index-url"]
    done = run_pip(line[1:], python)
    assert done.returncode == 0, done.stdout + done.stderr
    done = run_python(python, RUN)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["variant"] == "x86-64-v2, fp32"
    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_allclose(found["y"], models.classify(x), rtol=1e-5)


@on_x86
@pytest.mark.nightly
def test_a_good_index_is_found_good(tmp_path: Path, runtime: Path) -> None:
    index = built(tmp_path, runtime)
    findings = list(check_index(index, tmp_path / "dist", ordinary=ordinary_index()))
    assert [(finding.index, finding.good) for finding in findings] == [
        (name, True) for name in ("x86-64-v2", "x86-64-v2", "x86-64-v2-windows", "x86-64-v2-windows", "all", "all")
    ], findings
    words = [finding.words for finding in findings]
    assert words[0] == "gives code for x86-64-v2 alone, and refuses cuda, hip; here runs x86-64-v2, fp32"
    assert words[1] == "fails: x86-64-v2-windows is not of this index"
    assert words[2] == "fails: its wheel is for other systems"
    assert all(finding.command.startswith("pip install --index-url http://127.0.0.1:") for finding in findings)


@on_x86
@pytest.mark.nightly
def test_weights_in_wheels_of_their_own_come_along(tmp_path: Path, runtime: Path) -> None:
    artifact = argosy.compile(serialize(catalog.make("resnet_small"))[0], targets=("x86-64-v2",))
    made = package(artifact, name="net", version="1.2", folder=tmp_path, limit=200_000)
    assert [wheel.note.role for wheel in made].count("weights") > 1
    index = build_index(tmp_path, tmp_path, also=[runtime])
    findings = list(check_index(index, tmp_path, ordinary=ordinary_index()))
    assert [finding.good for finding in findings] == [True] * 4, findings
    assert findings[0].words.endswith("here runs x86-64-v2, fp32")


@on_x86
@pytest.mark.nightly
def test_foreign_code_in_a_wheel_is_found(tmp_path: Path, runtime: Path) -> None:
    """A wheel of one arch that brings the code of another along."""
    built(tmp_path, runtime)
    dist = tmp_path / "dist"
    (mine,) = dist.glob("net_device_x86_64_v2-*.whl")
    (other,) = dist.glob("net_device_x86_64_v2_windows-*.whl")
    foreign = {name: raw for name, raw in files(other).items() if name.endswith(".argosy")}
    with zipfile.ZipFile(mine, "a") as archive:
        for name, raw in foreign.items():
            archive.writestr(name, raw)
    index = build_index(dist, dist, also=[])
    findings = list(check_index(index, dist, ordinary=ordinary_index(), only="x86-64-v2"))
    assert [finding.good for finding in findings] == [False, True]
    assert "it gives code for x86-64-v2, x86-64-v2-windows" in findings[0].words
