"""Run by the interpreter of a fresh environment: artifacts on given inputs, outputs written beside them.

    python run_artifacts.py FOLDER

FOLDER/<name>.argosy is run on each FOLDER/<name>.<n>.in.npz, which makes FOLDER/<name>.<n>.out.npz.
"""

import importlib.util
import sys
from pathlib import Path

import numpy as np

import argosy

COMPILER_SIDE = ("argosy.compiler", "argosy.frontends", "argosy.passes", "argosy.rewrite", "argosy.targets")


def main(folder: Path) -> None:
    """Run everything in the folder, then prove that no compiler took part."""
    for extra in ("onnx", "onnxruntime", "triton", "ziglang", "PIL"):
        if importlib.util.find_spec(extra) is not None:
            raise SystemExit(f"{extra} is installed: this is not the base package alone")
    for artifact in sorted(folder.glob("*.argosy")):
        session = argosy.Session(artifact)
        for given in sorted(folder.glob(f"{artifact.stem}.*.in.npz")):
            with np.load(given) as inputs:
                outputs = session.run(dict(inputs))
            np.savez(given.with_name(given.name.replace(".in.npz", ".out.npz")), **outputs)
    loaded = [name for name in sys.modules if name.startswith(COMPILER_SIDE)]
    if loaded:
        raise SystemExit(f"running artifacts loaded the compiler: {loaded}")


main(Path(sys.argv[1]))
