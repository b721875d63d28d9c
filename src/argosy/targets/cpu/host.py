"""The C that every shared object of the CPU target holds beside its kernels, and the header that both include."""

from __future__ import annotations

from functools import lru_cache
from importlib import resources

from argosy.toolchains.zig import Source

__all__ = ["host_abi", "host_runtime"]


@lru_cache(maxsize=1)
def host_abi() -> str:
    """Text of the host ABI, put before the text of every source: the compiler is given no include folder."""
    return resources.files("argosy.targets.cpu").joinpath("host_abi.h").read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def host_runtime() -> Source:
    """The source that runs the steps of a Plan."""
    text = resources.files("argosy.targets.cpu").joinpath("host_runtime.c").read_text(encoding="utf-8")
    # Without `-fno-builtin`, the loop that is `memcpy` would be turned into a call of `memcpy`.
    return Source("host runtime", f"{host_abi()}\n{text}", ("-fno-builtin",))
