"""Code of the parts of a model that are compared one by one, in a folder: made on one machine, run on another.

A machine of a fleet has no compiler, and the one with the compiler has not the device. So the parts are compiled where
that can be done, for every variant of an artifact, and kept by a hash of what they compute; where the device is, the
same parts are cut from the artifact's program and their code is looked up.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from argosy import __version__
from argosy.artifact.artifact import Artifact
from argosy.artifact.artifact_writer import array_bytes
from argosy.artifact.atomic import atomic_file, check_unused, make_folder
from argosy.artifact.manifest import VariantRecord
from argosy.compiler import compile_program, load_onnx
from argosy.errors import ArgosyError, CompileError, UsageError
from argosy.inputs import write_npz
from argosy.inputs.files import read_named
from argosy.ir.hashing import model_hash
from argosy.ir.literal import Literal
from argosy.ir.module import Constant
from argosy.ir.program import Program
from argosy.ir.types import Type
from argosy.verification.code import Code
from argosy.verification.cutting import Cut, Truth
from argosy.verification.instructions import compile_parts

__all__ = ["Parts", "Saved", "save_parts"]

_ABOUT: Final = "about.json"
_INPUTS: Final = "inputs.npz"
_WEIGHTS: Final = "weights"

Content: TypeAlias = "bytes | memoryview"


@dataclass(frozen=True, slots=True)
class Saved:
    """What `save_parts` wrote for one variant: programs, and those of them that don't compile."""

    variant: str
    programs: int
    failed: int

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"variant": self.variant, "programs": self.programs, "failed": self.failed}

    def __str__(self) -> str:
        words = f"{self.variant}: {self.programs} programs"
        return f"{words}, {self.failed} of which do not compile" if self.failed else words


@dataclass(frozen=True, slots=True)
class Parts:
    """A folder of `save_parts`: code of parts of one artifact's program, and the inputs that they were cut with."""

    folder: Path
    model: str
    variants: Mapping[str, str]

    @staticmethod
    def open(folder: str | Path) -> Parts:
        """The parts in a folder. Raises UsageError for anything else, and for those of another version."""
        place = Path(folder)
        hint = "argosy verify ARTIFACT --save-parts FOLDER writes one"
        try:
            about = json.loads((place / _ABOUT).read_text(encoding="utf-8"))
            version, model, variants = (about[name] for name in ("argosy", "model", "variants"))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UsageError("this is no folder of parts", where=str(folder), hint=hint) from error
        if version != __version__:
            raise UsageError(
                f"its parts are those of argosy {version}, and this is {__version__}", where=str(folder),
                hint="save them anew, or use that version",
            )  # fmt: skip
        return Parts(place, model, variants)

    def inputs(self, types: Mapping[str, Type]) -> dict[str, Any]:
        """The inputs that the parts were cut with; absent ones are None."""
        return {**dict.fromkeys(types), **read_named(self.folder / _INPUTS, types)}

    def weights(self, program: Program) -> Mapping[str, Content]:
        """Weights by SHA-256, for an artifact of the program that leaves them out: its constants, and those here."""
        return _Weights(_constants(program), self.folder / _WEIGHTS)

    def code(self, variant: VariantRecord, model: str, device: str | None) -> Code:
        """The code of the parts for a variant of the model with this hash. Raises UsageError where there is none."""
        if model != self.model:
            raise UsageError(
                "its parts are those of another model", where=str(self.folder), hint="save those of this artifact"
            )
        if variant.key not in self.variants:
            known = "; ".join(self.variants.values())
            raise UsageError(
                f"it has no parts for {variant.words}, only for {known}", where=str(self.folder),
                hint="save those of the artifact that is verified",
            )  # fmt: skip
        return _KeptCode(variant, self.folder, device)


class _KeptCode(Code):
    """Code that was made elsewhere."""

    is_kept = True

    def __init__(self, variant: VariantRecord, folder: Path, device: str | None) -> None:
        made = Code.of(variant, device)
        super().__init__(made.target, made.options, device)
        self._variant = variant
        self._folder = folder

    def run_part(self, part: Cut) -> dict[str, Any]:
        key = _key_of(part, self._variant)
        failure, file = self._folder / f"{key}.txt", self._folder / f"{key}.argosy"
        if failure.is_file():
            raise CompileError(failure.read_text(encoding="utf-8").strip())
        if not file.is_file():
            raise UsageError(
                "no code of it was saved", where=str(self._folder), hint="save the parts anew, of this artifact"
            )
        weights = _Weights(_constants(part.program), self._folder / _WEIGHTS)
        return self._outputs(Artifact.open(file, weights=weights), part)


class _SavedCode(Code):
    """Code that is kept in a folder instead of being run: its results are those of ref."""

    is_kept = True

    def __init__(self, variant: VariantRecord, folder: Path) -> None:
        made = Code.of(variant)
        super().__init__(made.target, made.options)
        self._variant = variant
        self._folder = folder
        self.failed = 0

    def run_part(self, part: Cut) -> dict[str, Any]:
        key = _key_of(part, self._variant)
        self.compiles += 1
        try:
            artifact = compile_program(part.program, (self.target,), self.options, weights="omit")
        except ArgosyError as error:
            self.failed += 1
            _write(self._folder / f"{key}.txt", f"{error.what}\n".encode())
            raise
        own = _constants(part.program)
        for digest, literal in artifact.weights.items():
            if digest not in own:  # made by the compiler: another order of a weight, say
                _write(self._folder / _WEIGHTS / digest, array_bytes(literal.stored))
        artifact.save(self._folder / f"{key}.argosy")
        return dict(part.expected)


class _Weights(Mapping[str, Content]):
    """Weights by SHA-256: the constants of a program, and what else is in a folder."""

    def __init__(self, own: Mapping[str, Literal], folder: Path) -> None:
        self._own = own
        self._folder = folder

    def __getitem__(self, digest: str) -> Content:
        found = self._own.get(digest)
        if found is not None:
            return array_bytes(found.stored)
        try:
            return (self._folder / digest).read_bytes()
        except OSError:
            raise KeyError(digest) from None

    def __contains__(self, digest: object) -> bool:
        return digest in self._own or (isinstance(digest, str) and (self._folder / digest).is_file())

    def __iter__(self) -> Iterator[str]:
        return iter(self._own)

    def __len__(self) -> int:
        return len(self._own)


def save_parts(program: Program, artifact: Artifact, inputs: Mapping[str, Any], folder: str | Path) -> Sequence[Saved]:
    """Compile what `argosy.verify(…, per_instruction=True)` runs, for each variant that takes these inputs.

    Nothing of it is run, so no device is needed. The folder takes the inputs along, and code; the weights stay in the
    artifact. Raises UsageError for a folder that is not empty, and where no variant takes inputs of these sizes.
    """
    place = Path(folder)
    check_unused(place, "name another folder, new or empty")
    truth = Truth.by_name(program.main, inputs)
    chosen = [
        variant
        for variant in artifact.variants
        if all(truth.symbols.get(name) == size for name, size in variant.dims.items())
    ]
    if not chosen:
        raise UsageError("the artifact has no code for inputs of these sizes", where=artifact.where)
    make_folder(place / _WEIGHTS)
    saved: list[Saved] = []
    for variant in chosen:
        code = _SavedCode(variant, place)
        bound = load_onnx(program, dims=dict(variant.dims))
        compile_parts(Truth.by_name(bound.main, inputs) if variant.dims else truth, code)
        saved.append(Saved(variant.words, code.compiles, code.failed))
    write_npz(place / _INPUTS, inputs)
    about = {
        "argosy": __version__,
        "model": artifact.model_hash,
        "variants": {variant.key: variant.words for variant in chosen},
    }
    _write(place / _ABOUT, f"{json.dumps(about, indent=2)}\n".encode())  # the last, so that a folder with it is whole
    return saved


def _key_of(part: Cut, variant: VariantRecord) -> str:
    return hashlib.sha256(f"{model_hash(part.program)} {variant.key}".encode()).hexdigest()[:32]


def _constants(program: Program) -> dict[str, Literal]:
    literals = (step.op.literal for step in program.main.walk() if isinstance(step.op, Constant))
    return {literal.digest: literal for literal in literals}


def _write(path: Path, content: Content) -> None:
    with atomic_file(path) as file:
        file.write(content)
