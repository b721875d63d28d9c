"""`python -m benchmarks.accuracy` measures the largest errors against float64, by op family and element type.

    python -m benchmarks.accuracy                              this CPU
    python -m benchmarks.accuracy --device emulated:gfx942     AMD code, emulated on this CPU
    python -m benchmarks.accuracy pack FOLDER --arch sm_90     compiles for a GPU elsewhere
    python -m benchmarks.accuracy run FOLDER --device cuda     measures there, with numpy, ml_dtypes and msgspec alone
    python -m benchmarks.accuracy table                        writes the tables of docs/accuracy.md from the results

Inputs come from seeds; the truth is the program in float64 (`argosy.verification.widened`). With `-o FILE`, or `--save`
into benchmarks/results/, the figures are kept as JSON.
"""

from __future__ import annotations

import argparse
import platform
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

import argosy
from argosy.drivers.machine import this_machine
from argosy.errors import ArgosyError
from benchmarks.accuracy.measured import Figure, Packed, Results, measure
from benchmarks.accuracy.table import write_tables

if TYPE_CHECKING:
    from argosy.artifact.manifest import VariantRecord
    from benchmarks.accuracy.cases import Case

RESULTS: Final = Path(__file__).resolve().parents[1] / "results"
_INDEX: Final = "cases.json"
_MOST: Final = 48 << 20


def chosen(only: str | None) -> Iterator[tuple[Case, str]]:
    """The families and their element types, or those families whose name has `only` in it."""
    from benchmarks.accuracy.cases import CASES  # noqa: PLC0415 - needs onnx

    yield from ((case, element) for case in CASES for element in case.elements if only is None or only in case.family)


def compiled(case: Case, element: str, arch: str) -> argosy.Artifact:
    """The code of a family for an arch, without host steps: those would be numpy's own accuracy."""
    return argosy.compile(case.model(element), targets=[arch], strict=True)


def here(arch: str, device: str, only: str | None) -> Results:
    """Compile and measure on this machine."""
    figures: list[Figure] = []
    variant = None
    for case, element in chosen(only):
        packed = Packed(case.family, element, "", case.ranges, case.pointwise)
        try:
            figure, variant = measure(packed, compiled(case, element, arch), device)
        except ArgosyError as error:
            figure = Figure(case.family, element, reason=str(error).splitlines()[0])
        print(line(figure), flush=True)
        figures.append(figure)
    return results(figures, variant, device)


def pack(folder: Path, arch: str, only: str | None) -> None:
    """Write an artifact for each family and element type, and an index of them."""
    folder.mkdir(parents=True, exist_ok=True)
    index: list[Packed] = []
    for number, (case, element) in enumerate(chosen(only)):
        name = f"{number:03}.argosy"
        try:
            compiled(case, element, arch).save(folder / name)
            index.append(Packed(case.family, element, name, case.ranges, case.pointwise))
        except ArgosyError as error:
            index.append(Packed(case.family, element, "", reason=str(error).splitlines()[0]))
        print(f"{case.family} in {element}: {index[-1].reason or index[-1].file}", flush=True)
    (folder / _INDEX).write_bytes(msgspec.json.encode(index))
    if (size := sum(path.stat().st_size for path in folder.iterdir())) > _MOST:
        raise SystemExit(f"the pack has {size} bytes, more than {_MOST}")


def run(folder: Path, device: str) -> Results:
    """Measure the artifacts of a folder."""
    figures: list[Figure] = []
    variant = None
    for packed in msgspec.json.decode((folder / _INDEX).read_bytes(), type=list[Packed]):
        if packed.reason:
            figure = Figure(packed.family, packed.element, reason=packed.reason)
        else:
            try:
                figure, variant = measure(packed, folder / packed.file, device)
            except ArgosyError as error:
                figure = Figure(packed.family, packed.element, reason=str(error).splitlines()[0])
        print(line(figure), flush=True)
        figures.append(figure)
    return results(figures, variant, device)


def results(figures: Sequence[Figure], variant: VariantRecord | None, device: str) -> Results:
    """The figures with the arch of the code, the kind of device that ran it, and the versions that took part."""
    versions = {"argosy": argosy.__version__, "python": platform.python_version(), "numpy": np.__version__}
    if variant is None:
        raise SystemExit("nothing was measured")
    kind = device.partition(":")[0]
    gpus = this_machine().gpus if kind in ("cuda", "hip") else ()
    return Results(kind, variant.arch, versions | variant.toolchain, figures, gpus[0].name if gpus else "")


def line(figure: Figure) -> str:
    """A figure as text."""
    told = figure.reason or f"{figure.ulp:12.3g} ulp {figure.share:10.2g} of the largest"
    return f"{figure.family:34} {figure.element:9} {told}"


def main(words: Sequence[str] | None = None) -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.accuracy", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("verb", nargs="?", default="here", choices=("here", "pack", "run", "table"))
    parser.add_argument("folder", nargs="?", type=Path, help="of a pack")
    parser.add_argument("--arch", help="what to compile for (default: what the device is)")
    parser.add_argument("--device", default="cpu", help="what runs it (default: cpu)")
    parser.add_argument("--only", help="families with this in their name")
    parser.add_argument("-o", "--output", type=Path, help="where the figures go as JSON")
    parser.add_argument("--save", action="store_true", help="keep the figures in benchmarks/results")
    options = parser.parse_args(words)
    if options.verb == "table":
        return write_tables(RESULTS)
    if options.verb in ("pack", "run") and options.folder is None:
        parser.error(f"{options.verb} needs a folder")
    arch = options.arch or options.device.rpartition(":")[2]
    if options.verb == "pack":
        pack(options.folder, arch, options.only)
        return 0
    found = run(options.folder, options.device) if options.verb == "run" else here(arch, options.device, options.only)
    paths = [options.output] if options.output else []
    paths += [RESULTS / f"accuracy-{found.arch}.json"] if options.save else []
    for path in paths:
        path.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
