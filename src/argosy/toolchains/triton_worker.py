"""The process that runs Triton: reads a job a line, writes an answer a line, both JSON. Started by `toolchains.triton`.

A job is {text, entry, types, divisible, options, backend, arch, warp_size, generic, llvm_features, language}; an
answer is {files, metadata}, with binary files in base64, or {error}. A job {assemble, arch, llvm_features, backend} is
an AMD assembly text; the one file of its answer is the object. Triton's own output goes to standard error, so that
nothing mixes with answers.
"""

from __future__ import annotations

import base64
import copy
import gc
import json
import linecache
import os
import re
import sys
from collections.abc import Callable
from typing import Any

_FILE = "<argosy>"
"""The one name under which all sources are known: Triton writes it into what it compiles."""
_CODE_OBJECT = re.compile(r'(!"amdhsa_code_object_version", i32 )500')
_OWN_SHARED = re.compile(r"\.shared::cta\b")
_NAMES_OWN_SHARED = 78
"""The PTX version, times ten, that has this name for what `.shared` alone means too (PTX ISA, "Shared State Space")."""
_CODE = ("ptx", "cubin", "amdgcn", "hsaco")
"""The stages whose results are always wanted: code objects and their assembly."""
_KEPT = (
    "name", "shared", "num_warps", "num_ctas", "warp_size", "global_scratch_size", "global_scratch_align",
    "profile_scratch_size", "tensordesc_meta", "launch_cooperative_grid", "launch_pdl",
)  # fmt: skip


def main() -> None:
    """Serve jobs until standard input ends."""
    gc.disable()  # cycles are few, and collecting takes 6 % of the time; a crew ends processes before they are large
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        job = json.loads(line)
        try:
            answer = _assembled(job) if "assemble" in job else _compiled(job)
        except Exception as error:  # noqa: BLE001 - whatever goes wrong inside the compiler is the answer
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def _compiled(job: dict[str, Any]) -> dict[str, Any]:
    """The answer to a job.

    Some AMD archs copy tiles to shared memory past the registers; where Triton finds no such copies for a tile (of one
    row, say), they go through registers.
    """
    import triton  # noqa: PLC0415 - 0.2 s, in this process only
    from triton.backends.amd.compiler import is_async_copy_enabled  # noqa: PLC0415

    try:
        return _built(job)
    except RuntimeError:
        if job["backend"] != "hip" or not is_async_copy_enabled(job["arch"]):
            raise
    before = triton.knobs.amd.use_async_copy
    triton.knobs.amd.use_async_copy = False
    try:
        return _built(job)
    finally:
        triton.knobs.amd.use_async_copy = before


def _built(job: dict[str, Any]) -> dict[str, Any]:
    """What `triton.compile` does, without its cache: that hashes all of Triton, and writes and reads each stage."""
    import triton  # noqa: PLC0415
    from triton._C.libtriton import ir  # noqa: PLC0415
    from triton.backends.compiler import GPUTarget  # noqa: PLC0415
    from triton.compiler import make_backend  # noqa: PLC0415

    target = GPUTarget(job["backend"], job["arch"], job["warp_size"])
    generic, features = job.get("generic"), job.get("llvm_features")
    triton.knobs.runtime.add_stages_inspection_hook = (
        _generic_stages(generic) if generic else _featured_stages(features) if features else None
    )
    backend = make_backend(target)
    options = backend.parse_options(dict(job["options"]))
    text = job["text"]
    linecache.cache[_FILE] = (len(text), None, text.splitlines(True), _FILE)
    names, form = _language(job["language"])
    exec(compile(text, _FILE, "exec"), names)  # noqa: S102 - our own text; Triton reads the source of functions
    source = form(
        fn=names[job["entry"]],
        signature=dict(job["types"]),
        constexprs={},
        attrs={(place,): [["tt.divisibility", 16]] for place in job["divisible"]},
    )
    metadata: dict[str, Any] = {"target": target, **options.__dict__}
    stages: dict[str, Callable[..., Any]] = {}
    backend.add_stages(stages, options, source.language)
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    made = source.make_ir(
        target, options, backend.get_codegen_implementation(options), backend.get_module_map(), context
    )
    files = {}
    for kind, stage in stages.items():
        made = stage(made, metadata)
        if kind == "ptx" and job["options"].get("ptx_version", _NAMES_OWN_SHARED) < _NAMES_OWN_SHARED:
            made = _OWN_SHARED.sub(".shared", made)
        if kind in _CODE or job.get("stages"):
            files[kind] = base64.b64encode(made).decode() if isinstance(made, bytes) else str(made)
    if "amdgcn" in files:
        files |= _assembled(job | {"assemble": files["amdgcn"], "arch": generic or job["arch"]})["files"]
    return {"files": files, "metadata": {name: metadata.get(name) for name in _KEPT}}


def _assembled(job: dict[str, Any]) -> dict[str, Any]:
    """The object that an assembly text becomes, before it is linked."""
    from triton.backends.amd.compiler import assemble_amdgcn  # noqa: PLC0415

    made = assemble_amdgcn(job["assemble"], job["arch"], job["llvm_features"])
    return {"files": {"object": base64.b64encode(made).decode()}}


def _language(name: str) -> tuple[dict[str, Any], Any]:
    """What a text finds defined, and what Triton makes of its functions."""
    import triton  # noqa: PLC0415
    from triton.language.extra import cuda, libdevice  # noqa: PLC0415

    names: dict[str, Any] = {"libdevice": libdevice, "gdc": cuda, "__name__": "argosy_kernels"}
    if name == "triton":
        from triton.compiler import ASTSource  # noqa: PLC0415

        return names | {"triton": triton, "tl": triton.language}, ASTSource
    from triton.experimental import gluon  # noqa: PLC0415
    from triton.experimental.gluon._runtime import GluonASTSource  # noqa: PLC0415
    from triton.experimental.gluon.language.nvidia import hopper  # noqa: PLC0415

    return names | {"triton": gluon, "tl": gluon.language, "hopper": hopper}, GluonASTSource


def _generic_stages(generic: str) -> Callable[..., Any]:
    """Triton's hook into its stages, so that the last two make a code object for a generic AMD arch.

    Triton knows only single archs; the code generator under it knows the generic ones, from the sixth version of code
    objects on (LLVM AMDGPUUsage, "Generic Processors").
    """
    from triton._C.libtriton import amd  # noqa: PLC0415

    def hook(
        backend: Any = None, stages: dict[str, Any] | None = None, options: Any = None, *_: object
    ) -> tuple[str, str] | None:
        if stages is None:
            return generic, generic  # what makes this Triton's cache key differ
        renamed = copy.copy(options)
        object.__setattr__(renamed, "arch", generic)  # a name that the constructor can't read
        single = f'target triple = "{amd.get_target_triple(options.arch)}"'
        named = f'target triple = "{amd.get_target_triple(generic)}"'

        def assembly(text: str, metadata: dict[str, Any]) -> Any:
            text, versions = _CODE_OBJECT.subn(r"\g<1>600", text)
            if versions != 1 or single not in text:
                raise ValueError("Triton's code has another form than the one that generic archs are made from")
            return backend.make_amdgcn(text.replace(single, named), metadata, renamed)

        stages["amdgcn"] = assembly
        stages["hsaco"] = lambda text, metadata: backend.make_hsaco(text, metadata, renamed)
        return None

    return hook


def _featured_stages(features: str) -> Callable[..., Any]:
    """Triton's hook into its stages, so that LLVM's code generator and assembler use some features, or do without.

    Triton gives them none to use; what is of another mind for one function only, LLVM doesn't inline.
    """
    from triton.backends.amd import compiler  # noqa: PLC0415

    generate, assemble = compiler.compile_amdgpu, compiler.assemble_amdgcn

    def featured(stage: Callable[..., Any]) -> Callable[..., Any]:
        def run(text: Any, metadata: dict[str, Any]) -> Any:
            compiler.compile_amdgpu = lambda source, triple, arch, _, **options: generate(
                source, triple, arch, features, **options
            )
            compiler.assemble_amdgcn = lambda source, arch, _: assemble(source, arch, features)
            try:
                return stage(text, metadata)
            finally:
                compiler.compile_amdgpu, compiler.assemble_amdgcn = generate, assemble

        return run

    def hook(_: Any = None, stages: dict[str, Any] | None = None, *__: object) -> tuple[str, str] | None:
        if stages is None:
            return features, features
        stages.update({kind: featured(stages[kind]) for kind in ("amdgcn", "hsaco")})
        return None

    return hook


if __name__ == "__main__":
    main()
