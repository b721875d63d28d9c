"""The CPU levels: one row each. All that the compiler knows of a CPU is read from here, by feature or number.

A row's features are those of its parent and its own: all that the C compiler may use of itself for this CPU, so that
a machine that has them runs the code. (What it never uses unasked, such as AMX or cache hints, is left out:
hypervisors often hide it.) Their names are those of `argosy.host_cpu`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from argosy import host_cpu
from argosy.artifact.manifest import Requirements
from argosy.errors import DeviceError
from argosy.toolchains.zig import CodeTarget

__all__ = ["ARCHS", "CpuArch", "best_level", "find_cpu", "native"]


@dataclass(frozen=True, slots=True)
class CpuArch:
    """A CPU level for one operating system.

    `cpu` is the compiler's name of it; `vector_bits` and `vector_registers` say what its vector unit holds; `rank`
    orders the levels of a family, the higher the better; `second_cache` is what the second cache of a core holds on
    most CPUs of the level, in bytes: blocks of work are sized by it; `parent` is the level that it extends.
    """

    name: str
    family: str
    isa: str
    cpu: str
    vector_bits: int
    vector_registers: int
    rank: int
    second_cache: int
    words: str
    parent: str = ""
    features: frozenset[str] = field(default_factory=frozenset)
    system: str = "linux"
    flags: tuple[str, ...] = ()
    multiply_adds: int = 2
    """Multiplications with addition of vectors of floats that a core begins in a cycle."""
    third_cache_rate: int = 10
    """Bytes that a core reads of the third cache in a cycle: as measured, or what slow ones give."""
    idle: frozenset[str] = field(default_factory=frozenset)
    """Features that are there and gain nothing: their instructions take as long as what they would replace."""

    def gains(self, feature: str) -> bool:
        """Whether every CPU of this level has a feature and is the faster for it."""
        return feature in self.features - self.idle

    def has(self, feature: str) -> bool:
        """Whether every CPU of this level has a feature."""
        return feature in self.features

    def lanes(self, bits: int) -> int:
        """Elements of `bits` bits in a vector register."""
        return self.vector_bits // bits

    @property
    def portable(self) -> bool:
        """Whether it is the lowest level of its family."""
        return not self.parent

    @property
    def code(self) -> CodeTarget:
        """What the toolchain compiles for. Linux code uses no C library, so it serves all of them."""
        abi = {"linux": "none", "macos": "none", "windows": "gnu"}[self.system]
        return CodeTarget(f"{self.isa}-{self.system}-{abi}", self.cpu, self.flags)

    def requirements(self) -> Requirements:
        """What a machine must have to run the code, for the manifest."""
        return Requirements(features=tuple(sorted(self.features)))


_KIB: Final = 1024
_MIB: Final = 1024 * _KIB


def _row(
    name: str, cpu: str, bits: int, registers: int, cache: int, words: str, parent: CpuArch | None = None, *,
    more: str = "", family: str = "", isa: str = "", flags: tuple[str, ...] = (), idle: str = "",
) -> CpuArch:  # fmt: skip
    """A row: `more` are the features beyond the parent's, which also gives what is left out."""
    features = frozenset(more.split())
    if parent is None:
        return CpuArch(name, family, isa, cpu, bits, registers, len(features), cache, words, "", features, flags=flags)
    features |= parent.features
    return CpuArch(
        name,
        parent.family,
        parent.isa,
        cpu,
        bits,
        registers,
        len(features),
        cache,
        words,
        parent.name,
        features,
        flags=flags,
        idle=frozenset(idle.split()),
    )


# 512-bit vectors as such: by default the compiler splits them on CPUs that once clocked down for them.
_WIDE: Final = ("-mprefer-vector-width=512",)

_V2: Final = _row(
    "x86-64-v2", "x86_64_v2", 128, 16, 256 * _KIB, "any x86-64 CPU since about 2009",
    family="cpu-x86-64", isa="x86_64", more="sse3 ssse3 sse41 sse42 popcnt cx16 sahf",
)  # fmt: skip
_V3: Final = _row(
    "x86-64-v3", "x86_64_v3", 256, 16, 512 * _KIB, "AVX2: Haswell, Zen and later", _V2,
    more="avx avx2 fma f16c bmi bmi2 lzcnt movbe xsave",
)  # fmt: skip
_V4: Final = _row(
    "x86-64-v4", "x86_64_v4", 512, 32, _MIB, "AVX-512: Skylake-SP, Zen 4 and later", _V3,
    more="avx512f avx512bw avx512cd avx512dq avx512vl", flags=_WIDE,
)  # fmt: skip
_SERVER: Final = (
    "avx512ifma avx512vbmi avx512vbmi2 avx512vnni avx512bitalg avx512vpopcntdq avx512bf16 gfni vaes vpclmulqdq"
)
_ZEN4: Final = replace(
    _row("znver4", "znver4", 512, 32, _MIB, "AMD Zen 4 and later", _V4, more=f"{_SERVER} sse4a", flags=_WIDE),
    multiply_adds=1,
    third_cache_rate=20,
)
_SAPPHIRE_RAPIDS: Final = _row(
    "sapphirerapids", "sapphirerapids", 512, 32, 2 * _MIB, "Intel Sapphire Rapids and later", _V4,
    more=f"{_SERVER} avx512fp16 avxvnni",
    flags=_WIDE, idle="avx512bf16",
)  # fmt: skip
_N1: Final = _row(
    "neoverse-n1", "neoverse_n1", 128, 32, _MIB, "Armv8.2 servers: Graviton 2, Ampere Altra",
    family="cpu-aarch64", isa="aarch64", more="neon fp16 dotprod lse rdm rcpc crc",
)  # fmt: skip
_M1: Final = _row(
    "apple-m1", "apple_m1", 128, 32, 3 * _MIB, "Apple M1 and later", _N1,
    more="fp16fml complxnum jsconv rcpcimmo lse2",
)  # fmt: skip
_V1: Final = _row(
    "neoverse-v1", "neoverse_v1", 128, 32, _MIB, "Armv8.4 servers with SVE: Graviton 3", _N1,
    more="fp16fml complxnum jsconv rcpcimmo lse2 bf16 i8mm sve",
)  # fmt: skip
_V2_ARM: Final = _row(
    "neoverse-v2", "neoverse_v2", 128, 32, _MIB, "Armv9 servers: Graviton 4, Grace", _V1, more="sve2 svebitperm"
)

_LEVELS: Final = (_V2, _V3, _V4, _ZEN4, _SAPPHIRE_RAPIDS, _N1, _M1, _V1, _V2_ARM)
_OTHER_SYSTEMS: Final = {"macos": (_V2, _V3, _M1), "windows": (_V2, _V3, _V4, _ZEN4, _SAPPHIRE_RAPIDS)}


def _on(system: str, levels: Sequence[CpuArch]) -> Iterator[CpuArch]:
    """The levels under another operating system; the parent of the lowest stays behind."""
    names = {level.name for level in levels}
    for level in levels:
        parent = f"{level.parent}-{system}" if level.parent in names else ""
        yield replace(level, name=f"{level.name}-{system}", system=system, parent=parent)


ARCHS: Final[dict[str, CpuArch]] = {
    arch.name: arch
    for arch in (*_LEVELS, *(arch for system, levels in _OTHER_SYSTEMS.items() for arch in _on(system, levels)))
}
"""Every row by name."""


def find_cpu(name: str) -> CpuArch | None:
    """The row called `name`, or None."""
    return ARCHS.get(name)


def native() -> CpuArch:
    """The best level that this machine has. Raises DeviceError where it has none."""
    system, isa = host_cpu.system(), host_cpu.isa()
    best = best_level(system, isa, host_cpu.cpu_features())
    if best is None:
        raise DeviceError(
            f"this machine's CPU ({isa}, {system}) has no level of ours", hint="argosy arches lists what there is"
        )
    return best


def best_level(system: str, isa: str, features: frozenset[str]) -> CpuArch | None:
    """The best level of a CPU that can do so much."""
    fitting = [
        arch for arch in ARCHS.values() if arch.system == system and arch.isa == isa and arch.features <= features
    ]
    return max(fitting, key=lambda arch: arch.rank, default=None)
