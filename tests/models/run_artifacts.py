"""Runs artifacts on saved inputs where only Argosy's base package is installed; started by test_fresh_environment.

`python run_artifacts.py FOLDER`: for every NAME.argosy runs each NAME-*.in.npz and writes NAME-*.out.npz.
"""

import importlib.util
import sys
from pathlib import Path

import numpy as np

import argosy


def main() -> None:
    """Run everything in the folder."""
    for absent in ("onnx", "onnxruntime", "triton", "google.protobuf"):
        try:
            found = importlib.util.find_spec(absent)
        except ModuleNotFoundError:
            found = None
        if found is not None:
            raise SystemExit(f"{absent} is installed: this is no fresh environment")
    folder = Path(sys.argv[1])
    for path in sorted(folder.glob("*.argosy")):
        session = argosy.Session(path)
        for feed in sorted(folder.glob(f"{path.stem}-*.in.npz")):
            with np.load(feed) as inputs:
                outputs = session.run({name: inputs[name] for name in inputs.files})
            names = list(outputs)
            arrays = {f"value{index}": outputs[name] for index, name in enumerate(names)}
            np.savez(str(feed).replace(".in.npz", ".out.npz"), names=np.array(names), **arrays)
    loaded = [name for name in sys.modules if name.startswith(("argosy.compiler", "argosy.passes", "argosy.frontends"))]
    if loaded:
        raise SystemExit(f"the compiler was loaded: {loaded}")


if __name__ == "__main__":
    main()
