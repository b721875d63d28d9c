"""What went into packs comes out of them, bit for bit, or is refused by name."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

import argosy
from tests.hardware.packs import PackError, Packs, PackWriter

RNG = np.random.default_rng(6)


def artifact(op: str) -> bytes:
    """An artifact whose weight, of 20 kB, is the same for all ops."""
    weight = helper.make_tensor("w", TensorProto.FLOAT, [5000], np.arange(5000, dtype=np.float32) ** 2)
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [5000]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node(op, ["x", "w"], ["y"])], "g", info[:1], info[1:], [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    return argosy.compile(model, targets=("ref",)).to_bytes()


def npz() -> bytes:
    """Bytes that look like an artifact, and are none."""
    file = io.BytesIO()
    np.savez(file, x=RNG.random(300), y=np.zeros(5))
    return file.getvalue()


CONTENTS = {
    "add": artifact("Add"),
    "mul": artifact("Mul"),
    "inputs": npz(),
    "empty": b"",
    "zeros": bytes(100_000),
    "noise": RNG.bytes(3000),
}


def pack(folder: Path, contents: dict[str, bytes], limit: int = 1 << 20) -> list[Path]:
    with PackWriter(folder, "some", limit=limit) as writer:
        for name, content in contents.items():
            writer.add(name, content, {"length": str(len(content))})
        writer.refuse("sin", "CompileError: sin: no kernel", {"length": "-"})
    return writer.written


def test_all_comes_back(tmp_path: Path) -> None:
    pack(tmp_path, CONTENTS)
    packs = Packs(tmp_path, "some")
    assert packs.names == (*CONTENTS, "sin")
    for name, content in CONTENTS.items():
        assert name in packs
        assert packs.content(name) == content
        assert packs.about(name) == {"length": str(len(content))}
        assert not packs.reason(name)
    assert packs.reason("sin") == "CompileError: sin: no kernel"
    for name, why in (("sin", "no kernel"), ("cos", "not packed")):
        with pytest.raises(PackError, match=f"{name}: .*{why}"):
            packs.content(name)


def test_what_artifacts_share_is_there_once(tmp_path: Path) -> None:
    alone = pack(tmp_path / "alone", {"add": CONTENTS["add"]})[0].stat().st_size
    both = pack(tmp_path / "both", {"add": CONTENTS["add"], "mul": CONTENTS["mul"]})[0].stat().st_size
    assert alone > 10_000, "the weight doesn't deflate well"
    assert both - alone < 5_000


def test_packs_are_no_longer_than_they_may_be(tmp_path: Path) -> None:
    contents = {f"noise {number}": RNG.bytes(20_000) for number in range(11)}
    written = pack(tmp_path, contents, limit=65_536)
    assert len(written) == 4
    assert all(path.stat().st_size <= 65_536 for path in written)
    packs = Packs(tmp_path, "some")
    assert all(packs.content(name) == content for name, content in contents.items())
    with pytest.raises(PackError, match="long: it takes 70.* bytes, and a pack has at most 65536"):
        pack(tmp_path, {"long": RNG.bytes(70_000)}, limit=65_536)


def test_equal_contents_give_equal_packs_in_place_of_the_old_ones(tmp_path: Path) -> None:
    first = [path.read_bytes() for path in pack(tmp_path, CONTENTS, limit=20_000)]
    assert len(first) > 1
    assert [path.read_bytes() for path in pack(tmp_path, CONTENTS, limit=20_000)] == first
    assert len(pack(tmp_path, {"empty": b""})) == len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("place", ["magic", "index", "part", "cut"])
def test_damage_is_found(tmp_path: Path, place: str) -> None:
    (path,) = pack(tmp_path, {"noise": CONTENTS["noise"], "add": CONTENTS["add"]})
    raw = bytearray(path.read_bytes())
    if place == "cut":
        del raw[-1]
    else:
        raw[{"magic": 3, "index": 40, "part": len(raw) - 6000}[place]] ^= 1
    path.write_bytes(raw)
    with pytest.raises(PackError, match=f"{tmp_path}.*(no pack|index)|add: what comes out"):
        Packs(tmp_path, "some").content("add")


def test_a_folder_without_packs_is_named(tmp_path: Path) -> None:
    with pytest.raises(PackError, match=f"{tmp_path}: there is no pack some-00.pack"):
        Packs(tmp_path, "some")


def test_what_comes_back_runs(tmp_path: Path) -> None:
    pack(tmp_path, CONTENTS)
    x = np.ones(5000, np.float32)
    found = argosy.Session(Packs(tmp_path, "some").content("mul"), device="ref").run({"x": x})["y"]
    np.testing.assert_array_equal(found, np.arange(5000, dtype=np.float32) ** 2)
