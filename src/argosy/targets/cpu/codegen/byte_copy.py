"""The kernel that copies bytes: one for all programs, their number is its parameter."""

from __future__ import annotations

from typing import Final

from argosy.ir.dim import DimLike, floordiv
from argosy.targets.cpu.codegen.kernel import CHUNK_WORK, ENTRY, Kernel, chunk_count

__all__ = ["BYTE_COPY", "copy_chunks"]

_LINE: Final = 64
"""Bytes that stay together, so that no two workers write one line of the cache."""

BYTE_COPY: Final = Kernel(
    f"""\
ARGOSY_EXPORT void {ENTRY}(const void *params, int64_t chunk, int64_t chunks, void *scratch) {{
  (void)scratch;
  const uint8 *restrict x0 = ARGOSY_POINTER(params, 0);
  uint8 *restrict y0 = ARGOSY_POINTER(params, 1);
  const int64 bytes = ARGOSY_SYMBOL(params, 2), lines = bytes / {_LINE};
  const int64 end = chunk + 1 == chunks ? bytes : lines * (chunk + 1) / chunks * {_LINE};
  for (int64 i = lines * chunk / chunks * {_LINE}; i < end; ++i) y0[i] = x0[i];
}}
""",
    (),
    1,
    label="copy_bytes",
)
"""Reads the operand, the result, and the number of bytes."""


def copy_chunks(count: DimLike) -> DimLike:
    """Into how many chunks a copy of `count` bytes may be cut."""
    return chunk_count(floordiv(count, 4), floordiv(count, CHUNK_WORK))
