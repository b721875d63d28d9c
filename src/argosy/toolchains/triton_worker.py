"""The process that runs Triton: reads a job a line, writes an answer a line, both JSON. Started by `toolchains.triton`.

A job is {text, entry, types, divisible, options, backend, arch, warp_size}; an answer is {files, metadata}, with
binary files in base64, or {error}. Triton's own output goes to standard error, so that nothing mixes with answers.
"""

from __future__ import annotations

import base64
import json
import linecache
import os
import sys
from typing import Any

_FILE = "<argosy>"
"""The one name under which all sources are known: Triton writes it into what it compiles."""
_KEPT = (
    "name", "shared", "num_warps", "num_ctas", "warp_size", "global_scratch_size", "global_scratch_align",
    "profile_scratch_size", "tensordesc_meta", "launch_cooperative_grid", "launch_pdl",
)  # fmt: skip


def main() -> None:
    """Serve jobs until standard input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        job = json.loads(line)
        try:
            answer = _compiled(job)
        except Exception as error:  # noqa: BLE001 - whatever goes wrong inside the compiler is the answer
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def _compiled(job: dict[str, Any]) -> dict[str, Any]:
    import triton  # noqa: PLC0415 - 0.2 s, in this process only
    import triton.language as tl  # noqa: PLC0415
    from triton.backends.compiler import GPUTarget  # noqa: PLC0415
    from triton.compiler import ASTSource  # noqa: PLC0415
    from triton.language.extra import libdevice  # noqa: PLC0415

    text = job["text"]
    linecache.cache[_FILE] = (len(text), None, text.splitlines(True), _FILE)
    names: dict[str, Any] = {"triton": triton, "tl": tl, "libdevice": libdevice, "__name__": "argosy_kernels"}
    exec(compile(text, _FILE, "exec"), names)  # noqa: S102 - our own text; Triton reads the source of functions
    function = names[job["entry"]]
    source = ASTSource(
        fn=function,
        signature=dict(job["types"]),
        constexprs={},
        attrs={(place,): [["tt.divisibility", 16]] for place in job["divisible"]},
    )
    target = GPUTarget(job["backend"], job["arch"], job["warp_size"])
    made = triton.compile(source, target=target, options=job["options"])
    files = {
        kind: content if isinstance(content, str) else base64.b64encode(content).decode()
        for kind, content in made.asm.items()
        if kind in ("ptx", "cubin", "amdgcn", "hsaco") or (job.get("stages") and kind != "source")
    }
    metadata = made.metadata._asdict()
    return {"files": {k: str(v) for k, v in files.items()}, "metadata": {k: metadata.get(k) for k in _KEPT}}


if __name__ == "__main__":
    main()
