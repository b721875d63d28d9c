"""What is left behind when the compiler fails: a folder with all that it takes to see the failure again.

`<cache>/reproducers/<what>-<digest>/` holds the program, or the model where it could not be imported; the options; the
error; the versions; what the failing part gave as evidence (the module before a pass, the source that a toolchain
refused); and README.txt with the command that shows the failure again. Equal failures have one folder.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import platform
import re
import shlex
import shutil
import tempfile
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from argosy.artifact.artifact import PRODUCER
from argosy.errors import ArgosyError, CompileError, InternalError
from argosy.ir.program import Program
from argosy.ir.program_files import CONSTANTS_LIMIT, program_files
from argosy.options import CompileOptions, Dimensions, DimRequest, cache_folder
from argosy.targets.base import Target

__all__ = ["KEPT", "Case", "compile_case", "import_case", "leaving_reproducer", "option_words",
           "read_case"]  # fmt: skip

KEPT: Final = 20
"""Folders that are kept, the newest."""

_PACKAGES: Final = ("numpy", "ml_dtypes", "msgspec", "onnx", "ziglang", "triton")
_ADDRESS: Final = re.compile(r"\bat 0x[0-9a-f]+")
_UNFINISHED: Final = "."
_PROGRAM: Final = "program"
_MODEL: Final = "model.onnx"
_README: Final = """\
Argosy failed in {stage}:

  {error}

To see it again, in this folder:

  {command}

error.txt has the traceback, options.json the options and targets, versions.json what it ran with.
{more}
The folder holds the model with its weights: think of that before you send it to anybody.
"""


@dataclass(frozen=True, slots=True)
class Case:
    """What was being done: the files it needs, by name, and the words after `argosy` that do it again beside them.

    `stage` says what it was, where the error does not tell which part of it failed; `told` is what is told of options.
    """

    stage: str
    files: Callable[[], Mapping[str, bytes]]
    words: Sequence[str]
    told: Mapping[str, Any]


def compile_case(program: Program, targets: Sequence[Target], options: CompileOptions) -> Case:
    """The compile of a program for some targets; what binds its dims has done so already."""
    options = dataclasses.replace(options, dims=Dimensions(options.dims.specialised))
    arch = [word for target in targets for word in target.command_words()]
    told = {"options": dataclasses.asdict(options), "targets": arch}
    words = ("compile", f"{_PROGRAM}.txt", *arch, *option_words(options), "-o", "again.argosy")
    return Case("compile", lambda: program_files(_PROGRAM, program), words, told)


def import_case(model: object, dims: Dimensions, *, skip_unknown: bool, strict: bool) -> Case:
    """The import of a model (a path, bytes, ModelProto or Program)."""
    file = f"{_PROGRAM}.txt" if isinstance(model, Program) else _MODEL
    flags = [word for word, on in (("--skip-unknown", skip_unknown), ("--strict-onnx", strict)) if on]
    told = {"dims": dataclasses.asdict(dims), "skip_unknown": skip_unknown, "strict": strict}
    return Case("import", lambda: _model_files(model), ("read", file, *_dimension_words(dims), *flags), told)


def read_case(program: Program, words: Sequence[str]) -> Case:
    """Passes on a program, as the words of `argosy read` ask."""
    return Case("read", lambda: program_files(_PROGRAM, program), ("read", f"{_PROGRAM}.txt", *words), {})


@contextmanager
def leaving_reproducer(case: Callable[[], Case] | None) -> Iterator[None]:
    """A context from which no failure of the compiler leaves without a reproducer, whose path the error's hint tells.

    Without a case none is written, and all else is the same.

    Failures are CompileError, InternalError and whatever nobody foresaw, which becomes an InternalError; and what a
    pass says is wrong with a model that was read without a word. What else is the user's, the model's or the machine's
    fault goes through as it is.
    """
    try:
        yield
    except (CompileError, InternalError) as error:
        _tell(error, error, case)
        raise
    except ArgosyError as error:
        if error.stage:  # a part of the compiler has left evidence all the same
            _tell(error, error, case)
        raise
    except (MemoryError, OSError):
        raise
    except Exception as error:
        told = InternalError(f"{type(error).__name__}: {error}")
        _tell(told, error, case)
        raise told from error


def option_words(options: CompileOptions) -> list[str]:
    """What a command line says to have these options."""
    words = [f"--{options.precision}"] if options.precision != "fp32" else []
    words += _dimension_words(options.dims)
    for word, value, usual in (("accuracy", options.accuracy, "standard"), ("compile-mode", options.mode, "balanced")):
        words += [f"--{word}", value] if value != usual else []
    words += [
        f"--{name.replace('_', '-')}"
        for name in ("strict", "allow_tf32", "fast_math", "slim", "debug")
        if getattr(options, name)
    ]
    words += [word for part in options.without for word in ("--without", part)]
    return words + (["--jobs", str(options.jobs)] if options.jobs is not None else [])


def _dimension_words(dims: Dimensions) -> list[str]:
    """What a command line says to ask the same of the dims."""
    words = [word for request in dims.dims for word in ("--dim", f"{request.name}={_sizes(request)}")]
    for name, shape in dims.shapes:
        words += ["--input-shape", f"{name}={','.join(map(str, shape)) or 'scalar'}"]
    return words + (["--batch", str(dims.batch)] if dims.batch is not None else [])


def _sizes(request: DimRequest) -> str:
    return ",".join(map(str, request.values)) or f"{request.lower}..{request.upper}"


def _tell(told: ArgosyError, error: Exception, case: Callable[[], Case] | None) -> None:
    """Write the folder, and put a line about it under the hint of `told`."""
    if case is None:
        return
    try:
        line = f"reproducer: {_written(case(), told, error)}"
    except Exception as problem:  # noqa: BLE001 - what failed first is what the user must see
        line = f"no reproducer could be written: {problem}"
    told.hint = f"{told.hint}\n{line}" if told.hint else line
    told.args = (told.what, told.where, told.hint)


def _written(case: Case, told: ArgosyError, error: Exception) -> Path:
    """The folder for a failure: written, or found where the same one was met before."""
    stage = told.stage or case.stage
    text = str(told)
    evidence = told.evidence()
    files = {**case.files(), **evidence, "options.json": _json(case.told), "versions.json": _json(_versions())}
    digest = hashlib.sha256(_ADDRESS.sub("", text).encode("utf-8", "surrogatepass"))
    for name in sorted(files):
        digest.update(f"\n{name} {hashlib.sha256(files[name]).hexdigest()}".encode())
    files["error.txt"] = "".join(traceback.format_exception(error)).encode("utf-8", "surrogatepass")
    files["README.txt"] = _readme(case, stage, text, files, evidence).encode("utf-8", "surrogatepass")
    name = re.sub(r"[^\w.-]+", "-", stage)
    folder = cache_folder() / "reproducers" / f"{name}-{digest.hexdigest()[:12]}"
    _write(folder, files)
    _prune(folder.parent)
    return folder


def _readme(case: Case, stage: str, text: str, files: Mapping[str, bytes], evidence: Iterable[str]) -> str:
    more = [f"{name}: what was being worked on." for name in evidence]
    begins = {name: content.splitlines()[0].decode() for name, content in files.items() if name.endswith(".txt")}
    more += [f"{name}: {line.removeprefix('# ')}." for name, line in begins.items() if line.startswith("# ")]
    if case.words[1] not in files:
        more.append(f"{case.words[1]} is over {CONSTANTS_LIMIT >> 20} MiB and was left out: put it here.")
    return _README.format(
        stage=stage,
        error=text.replace("\n", "\n  "),
        command=shlex.join(["argosy", *case.words]),
        more="".join(f"{line}\n" for line in more),
    )


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write a folder at once; one that is there is newer now."""
    if folder.is_dir():
        os.utime(folder)
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=folder.parent))
    try:
        for name, content in files.items():
            (made / name).write_bytes(content)
        made.rename(folder)
    except OSError:
        shutil.rmtree(made, ignore_errors=True)
        if not folder.is_dir():  # else another process has written the same
            raise


def _prune(parent: Path) -> None:
    """Remove all but the newest folders."""
    with contextlib.suppress(OSError):  # another process may be at it
        found = [each for each in parent.iterdir() if each.is_dir() and not each.name.startswith(_UNFINISHED)]
        for old in sorted(found, key=lambda each: each.stat().st_mtime)[:-KEPT]:
            shutil.rmtree(old, ignore_errors=True)


def _json(value: object) -> bytes:
    return f"{json.dumps(value, indent=2, ensure_ascii=False, default=str)}\n".encode("utf-8", "surrogatepass")


def _versions() -> dict[str, str]:
    """The versions of everything that has a say in what the compiler does."""
    found = {
        "argosy": PRODUCER.version,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
    }
    for package in _PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found


def _model_files(model: object) -> dict[str, bytes]:
    """A model as it was given, without data that lies in other files."""
    if isinstance(model, Program):
        return program_files(_PROGRAM, model)
    if isinstance(model, bytes):
        return {_MODEL: model}
    if isinstance(model, str | os.PathLike):
        path = Path(model)
        return {_MODEL: path.read_bytes()} if path.stat().st_size <= CONSTANTS_LIMIT else {}
    proto: Any = model
    return {_MODEL: proto.SerializeToString()}
