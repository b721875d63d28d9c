"""Triton kernels to code for any AMD or NVIDIA GPU, by the compilers inside the `triton` package; no device is needed.

Triton runs in worker processes of its own, each with bounds on time and memory: generated text can make it fail, crash
or hang, and then that kernel is refused with the reason while the others go on. The process that compiles never
imports it. Sources have one virtual file name and no line information, so equal sources give equal bytes in any folder.
"""

from __future__ import annotations

import base64
import hashlib
import json
import logging
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from typing import Any, Final, Literal

import msgspec

from argosy.errors import MissingExtraError
from argosy.options import cache_folder
from argosy.toolchains.cache import DiskCache
from argosy.toolchains.gpu_code_object import facts_of, instruction_bytes
from argosy.toolchains.triton_crew import TritonCrew

__all__ = [
    "CompiledKernel", "GpuCode", "Refused", "TritonSource", "assembled", "compile_kernels", "compile_stages",
    "kernel_cache",
    "triton_version",
]  # fmt: skip

log = logging.getLogger("argosy.toolchains")

_FORMS: Final = {"cuda": ("cubin", "ptx"), "hip": ("hsaco", "amdgcn")}
"""The code object of a backend and its assembly, as Triton names them."""


@dataclass(frozen=True, slots=True)
class GpuCode:
    """What code is made for, in Triton's words: the backend (`cuda`, `hip`), its arch, threads in a warp.

    `portable` asks for assembly that a driver finishes (PTX) instead of a code object. `generic` names the AMD arch
    that the code object is made for where it is not `arch` but one that stands for several, of which `arch` is one.
    `ptx_version` asks for PTX of that version, times ten, that older drivers know; 0 is the newest. `llvm_features`
    turns one of LLVM's features of an AMD arch on (`+…`) or off (`-…`).
    """

    backend: Literal["cuda", "hip"]
    arch: int | str
    warp_size: int
    portable: bool = False
    generic: str = ""
    ptx_version: int = 0
    llvm_features: str = ""


@dataclass(frozen=True, slots=True)
class TritonSource:
    """One kernel: its text, the function that is the kernel, and the type of each parameter in order.

    `divisible` are the places of parameters that are multiples of 16 (pointers: aligned to 16 bytes), `options` those
    of Triton's backend (`num_warps`, `num_stages` …). The text of one in `gluon`, Triton's language of layouts, calls
    that `tl` as well.
    """

    entry: str
    text: str
    types: tuple[tuple[str, str], ...]
    divisible: tuple[int, ...] = ()
    options: tuple[tuple[str, int | bool | str], ...] = ()
    language: Literal["triton", "gluon"] = "triton"


class CompiledKernel(msgspec.Struct, frozen=True):
    """A code object, or PTX, and its assembly text, with what a launch needs to know: threads, bytes of shared memory.

    `scratch` is the size of the global scratch memory of one program in bytes; `maps` are the recipes of tensor maps.
    Of a kernel that takes some, `offsets` say where each parameter lies: maps are aligned in the memory that parameters
    are copied to, which begins at no multiple of 64.
    `spilled` counts registers of a thread that lie in memory, as far as the code says (PTX does not).
    """

    form: Literal["cubin", "ptx", "hsaco"]
    code: bytes
    assembly: str
    entry: str
    threads: int
    shared: int
    scratch: int = 0
    scratch_align: int = 1
    maps: list[Any] = msgspec.field(default_factory=list)
    spilled: int = 0
    offsets: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a kernel could not be compiled."""

    reason: str


def triton_version() -> str:
    """The version of the compiler: part of every cache key and of a variant's. MissingExtraError without one."""
    try:
        return metadata.version("triton")
    except metadata.PackageNotFoundError:
        raise MissingExtraError("triton", "gpu", "compiling for GPUs") from None


def kernel_cache() -> DiskCache:
    """The cache of compiled kernels."""
    return DiskCache(cache_folder() / "kernels")


_RECORD: Final = 2
"""The version of what the cache holds of a kernel."""


def compile_kernels(
    sources: Sequence[TritonSource],
    target: GpuCode,
    *,
    crew: TritonCrew | None = None,
    jobs: int | None = None,
    cache: DiskCache | None = None,
    cached: bool = True,
) -> list[CompiledKernel | Refused]:
    """Compile each source, in parallel processes; what the cache holds is not compiled if `cached`.

    The processes are those of `crew`, else up to `jobs` of this call's own (see `TritonCrew`). Raises
    MissingExtraError without the compiler, EnvironmentError_ where no process can be started. A kernel that Triton
    can't compile is Refused.
    """
    version = triton_version()
    store = kernel_cache() if cache is None else cache
    keys = [_key(source, target, version) for source in sources]
    found: dict[str, CompiledKernel | Refused] = {}
    missing: dict[str, TritonSource] = {}
    for key, source in zip(keys, sources, strict=True):
        if key in found or key in missing:
            continue
        held = _held(store, key) if cached else None
        if held is None:
            missing[key] = source
        else:
            found[key] = held
    if missing:
        log.info("compiling %d of %d kernels for %s", len(missing), len(sources), target.arch)

        def made(key: str, crew: TritonCrew) -> CompiledKernel | Refused:
            source = missing[key]
            answer = _made(crew.ask(_job(source, target)), target)
            if isinstance(answer, CompiledKernel):
                about = {"name": source.entry, "target": str(target.arch), "triton": version}
                store.put(key, msgspec.msgpack.encode(answer), about)
            return answer

        with nullcontext(crew) if crew is not None else TritonCrew(jobs) as workers:
            # The longest first, so that the last process to end ends early.
            order = sorted(missing, key=lambda key: -len(missing[key].text))
            going = {key: workers.start(key, partial(made, key, workers)) for key in order}
            found.update({key: each.result() for key, each in going.items()})
        store.trim()
    return [found[key] for key in keys]


def compile_stages(
    sources: Sequence[TritonSource], target: GpuCode, *, jobs: int | None = None
) -> list[tuple[CompiledKernel | Refused, dict[str, str]]]:
    """Compile each source anew, without the cache: the kernel, and the text of each stage on the way, in order."""
    triton_version()
    binary = _FORMS[target.backend][0]

    def made(source: TritonSource, crew: TritonCrew) -> tuple[CompiledKernel | Refused, dict[str, str]]:
        answer = crew.ask(_job(source, target) | {"stages": True})
        texts = {name: text for name, text in answer.get("files", {}).items() if name != binary}
        return _made(answer, target), texts

    with TritonCrew(jobs) as crew:
        going = [crew.start(str(number), partial(made, each, crew)) for number, each in enumerate(sources)]
        return [each.result() for each in going]


def assembled(texts: Sequence[tuple[str, str, str]], *, jobs: int | None = None) -> list[bytes]:
    """The objects that AMD assembly texts become, each with its arch and LLVM's features.

    Raises ValueError for a text that is none.
    """
    triton_version()

    def made(text: str, arch: str, features: str, crew: TritonCrew) -> bytes:
        answer = crew.ask({"assemble": text, "arch": arch, "llvm_features": features, "backend": "hip"})
        if "error" in answer:
            raise ValueError(answer["error"])
        return base64.b64decode(answer["files"]["object"])

    with TritonCrew(jobs) as crew:
        going = [crew.start(str(number), partial(made, *each, crew)) for number, each in enumerate(texts)]
        return [each.result() for each in going]


def _held(store: DiskCache, key: str) -> CompiledKernel | None:
    payload = store.get(key)
    return None if payload is None else msgspec.msgpack.decode(payload, type=CompiledKernel)


def _key(source: TritonSource, target: GpuCode, version: str) -> str:
    texts = (
        _RECORD, source.text, source.entry, source.types, source.divisible, sorted(_options(source, target).items()),
        target.backend,
        target.arch, target.warp_size, target.portable, target.generic,
        target.ptx_version, version, *([target.llvm_features] if target.llvm_features else []),
        *([source.language] if source.language != "triton" else []),
    )  # fmt: skip
    return hashlib.sha256(json.dumps(texts).encode()).hexdigest()


_OWN_ARGUMENTS: Final = ",".join(
    f"amdgpu-no-{name}" for name in ("implicitarg-ptr", "dispatch-ptr", "dispatch-id", "queue-ptr")
)
"""LLVM's attributes (AMDGPUUsage, "AMDGPU Attributes") of a kernel that reads no argument but its own. Without them it
asks the driver for all that there are where it can't see that, as around asynchronous copies."""


def _options(source: TritonSource, target: GpuCode) -> dict[str, int | bool | str]:
    """Those of Triton's backend."""
    options = dict(source.options)
    if target.ptx_version:
        options["ptx_version"] = target.ptx_version
    if target.backend == "hip" and "num_programs" not in source.text:
        options["llvm_fn_attrs"] = _OWN_ARGUMENTS
    return options


def _job(source: TritonSource, target: GpuCode) -> dict[str, Any]:
    return {
        "text": source.text,
        "entry": source.entry,
        "types": source.types,
        "divisible": source.divisible,
        "options": _options(source, target),
        "backend": target.backend,
        "arch": target.arch,
        "warp_size": target.warp_size,
        "generic": target.generic,
        "llvm_features": target.llvm_features,
        "language": source.language,
    }


def _made(answer: dict[str, Any], target: GpuCode) -> CompiledKernel | Refused:
    if "error" in answer:
        return Refused(answer["error"])
    about, files = answer["metadata"], answer["files"]
    form, text = _FORMS[target.backend]
    if about["profile_scratch_size"] or about["num_ctas"] != 1:
        return Refused("it asks for profiling memory or clusters, which launches here don't have")
    code = files[text].encode() if target.portable else base64.b64decode(files[form])
    maps = about["tensordesc_meta"] or []
    kind: Literal["cubin", "ptx", "hsaco"] = "ptx" if target.portable else "cubin" if form == "cubin" else "hsaco"
    if kind == "hsaco" and instruction_bytes(code) != instruction_bytes(base64.b64decode(files["object"])):
        return Refused("its assembly text is not that of its code object")
    facts = facts_of(kind, code)
    if facts.hidden:
        return Refused(f"it asks for arguments that launches here don't have: {', '.join(facts.hidden)}")
    return CompiledKernel(
        kind,
        code,
        files[text],
        about["name"],
        about["num_warps"] * about["warp_size"],
        about["shared"],
        about["global_scratch_size"],
        about["global_scratch_align"],
        maps,
        facts.spilled,
        tuple(parameter.offset for parameter in facts.parameters) if maps else (),
    )
