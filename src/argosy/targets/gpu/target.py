"""`gpu`: generated Triton, compiled for an AMD or NVIDIA arch on any machine."""

from __future__ import annotations

import importlib.util
import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Final

import msgspec

from argosy.artifact.artifact import CompiledVariant
from argosy.artifact.manifest import Requirements, VariantRecord, variant_key
from argosy.drivers.discovery import DeviceInfo
from argosy.drivers.machine import Machine
from argosy.errors import DeviceError, UsageError
from argosy.ir.module import Module
from argosy.options import CompileOptions
from argosy.passes.manager import Phase
from argosy.registry import did_you_mean
from argosy.targets.base import NOT_BUILT, TARGETS, ArchInfo, Lowered, Number, Outline, Target, Workshop
from argosy.targets.gpu.arch import ARCHS, FAMILIES, PRODUCTS, REFUSED, GpuArch, archs_of, find_gpu
from argosy.targets.gpu.context import CrossCompileContext
from argosy.targets.gpu.lower import lower_module
from argosy.targets.gpu.memory import check_memory, device_memory
from argosy.targets.gpu.overrides import Overrides
from argosy.targets.gpu.pipeline import pipeline
from argosy.targets.gpu.solution import SOLUTIONS
from argosy.targets.gpu.variant import compiled_variant
from argosy.toolchains.triton import triton_version
from argosy.toolchains.triton_crew import TritonCrew

__all__ = ["GpuTarget"]

log = logging.getLogger("argosy.compile")

_PRODUCT: Final = "product"
_UNCOMPILED: Final = (
    "before Triton has its say: where it refuses a kernel, or one spills, the next config or way is taken"
)


@dataclass(frozen=True, slots=True)
class GpuTarget(Target):
    """One GPU arch with the numbers of a device: those of `gpu_arch`, an arch or a product, but for what is given.

    Two targets are equal where their rows are, whatever names led to them.
    """

    name: ClassVar[str] = "gpu"
    gpu_arch: str = field(default="", compare=False)
    gpu_num_cu: int | None = field(default=None, compare=False)
    gpu_num_chiplets: int | None = field(default=None, compare=False)
    gpu_max_threads_per_cu: int | None = field(default=None, compare=False)
    gpu_max_threads_per_block: int | None = field(default=None, compare=False)
    gpu_wavefront_size: int | None = field(default=None, compare=False)
    gpu_max_shared_memory_per_block: int | None = field(default=None, compare=False)
    row: GpuArch = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "row", self._overrides().apply(self._plain_row()))

    @classmethod
    def archs(cls) -> Sequence[ArchInfo]:
        built = [ArchInfo(row.name, row.family, row.words, row.tier, _other_names(row)) for row in ARCHS.values()]
        return (*built, *(ArchInfo(name, "", refusal.reason, NOT_BUILT) for name, refusal in REFUSED.items()))

    @classmethod
    def for_arch(cls, arch: str) -> Target | None:
        _check_refused(arch)
        return cls(arch) if find_gpu(arch) is not None else None

    @classmethod
    def for_variant(cls, record: VariantRecord) -> Target | None:
        return None if cls.for_arch(record.arch) is None else cls.of(record.arch, record.products)

    @classmethod
    def for_name(cls, name: str) -> Sequence[Target]:
        if name in FAMILIES:
            return tuple(cls(row.name) for row in archs_of(name))
        target = cls.for_arch(name)
        return () if target is None else (target,)

    @classmethod
    def for_machine(cls, machine: Machine) -> Iterator[Target]:
        for info in machine.gpus:
            if info.problem:
                log.warning("%s gets no code: %s", info.name, info.problem)
            elif importlib.util.find_spec("triton") is None:
                log.warning("the package triton (extra gpu) is not installed: %s gets no code", info.name)
            else:
                try:
                    yield cls._for_device(info)
                except UsageError as error:
                    log.warning("%s gets no code: %s", info.name, error.what)

    @classmethod
    def _for_device(cls, info: DeviceInfo) -> GpuTarget:
        """The product that a device's name tells, else its arch, with as many units as it has. Raises UsageError.

        A part of a device, as AMD's partition modes make them, has its share of the chiplets.
        """
        words = re.findall(r"[a-z0-9]+", info.name.lower())
        runs = {"".join(words[first:last]) for last in range(len(words) + 1) for first in range(last)}
        products = [name for name, each in PRODUCTS.items() if each.arch == info.arch and name.replace("-", "") in runs]
        plain = cls(max(products, key=len, default=info.arch))
        usual = {number.name: number.value for number in plain.numbers()}
        if usual["num_cu"] == info.units:
            return plain
        share = min(usual["num_chiplets"], max(1, usual["num_chiplets"] * info.units // usual["num_cu"]))
        return cls(plain.gpu_arch, gpu_num_cu=info.units, gpu_num_chiplets=share)

    @property
    def arch(self) -> str:
        return self.row.name

    @property
    def is_cross_compile(self) -> bool:
        return bool(self.gpu_arch)

    def command_words(self) -> Sequence[str]:
        given = {key: value for key, value in asdict(self._overrides()).items() if value is not None}
        numbers = ", ".join(f"{key}:{value}" for key, value in given.items())
        params = ("--gpu-arch-params", f"{{{numbers}}}") if given else ()
        return ("--gpu-arch", self.gpu_arch or self.arch, *params)

    def numbers(self) -> Sequence[Number]:
        return self._overrides().numbers(self._plain_row())

    def context(self) -> CrossCompileContext:
        return CrossCompileContext(self.arch)

    def pipeline(self, options: CompileOptions) -> Sequence[Phase]:
        return pipeline(options)

    @property
    def has_tf32(self) -> bool:
        return self.row.has("matrix_tf32")

    @property
    def shares_tools(self) -> bool:
        return True

    def lower(self, module: Module, options: CompileOptions, workshop: Workshop) -> Lowered:
        row = self.row
        made = compiled_variant(module, row, options, workshop.tool(TritonCrew))
        memory = device_memory(made.plan)
        check_memory(memory, row, strict=options.strict)
        record = VariantRecord(
            "",
            row.vendor,
            row.name,
            words=f"{self._words()}, {options.precision}",
            products=self.products,
            numeric=options.numeric(),
            toolchain={"triton": triton_version()},
            portable=row.portable,
            requirements=Requirements(_runs_on(row), made.minimum_driver, memory),
        )
        record = msgspec.structs.replace(record, key=variant_key(record))
        lowered = made.lowered
        variant = CompiledVariant(record, made.plan, made.entries)
        return Lowered(variant, lowered.weights, lowered.host_steps, lowered.choices)

    def outline(self, module: Module, options: CompileOptions) -> Outline:
        lowered = lower_module(module, self.row, options, {}, {})
        return Outline(lowered.plan, lowered.choices, _UNCOMPILED)

    def solution_names(self) -> Sequence[str]:
        return [name for name, _ in SOLUTIONS.items()]

    @property
    def products(self) -> tuple[str, ...]:
        """What a variant records of the hardware beside its arch; `of` makes the target again.

        The product, whose bandwidth and peaks rank kernels, and each number.
        """
        name = self.row.product.name
        told = tuple(f"{number.name}={number.value}" for number in self.numbers())
        return (f"{_PRODUCT}={name}", *told) if name else told

    @classmethod
    def of(cls, arch: str, products: Sequence[str]) -> GpuTarget:
        """The target for an arch that has these `products`. Raises UsageError for what this version does not know."""
        told = dict(text.split("=", 1) for text in products)
        given: dict[str, Any] = {f"gpu_{name}": int(text) for name, text in told.items() if name != _PRODUCT}
        return cls(told.get(_PRODUCT, arch), **given)

    def _words(self) -> str:
        """The arch, and what is not as it is where an arch is named alone."""
        plain = self._plain_row()
        extras = [plain.product.name] if plain.product.name != ARCHS[plain.name].product.name else []
        own = Overrides().numbers(plain)
        pairs = zip(self.numbers(), own, strict=True)
        extras += [f"{number.name}={number.value}" for number, usual in pairs if number.value != usual.value]
        return f"{plain.name} ({', '.join(extras)})" if extras else plain.name

    def _plain_row(self) -> GpuArch:
        """The row as the tables have it. Raises UsageError for a name that isn't one arch."""
        if not isinstance(self.gpu_arch, str):
            raise UsageError(f"gpu_arch is {self.gpu_arch!r}, expected a name", hint="argosy arches lists them")
        if not self.gpu_arch:
            if self._overrides() != Overrides():
                raise UsageError("numbers of a GPU are given, and no GPU arch", hint="give gpu_arch too")
            raise DeviceError("this version asks no driver which GPU there is", hint="name it, by gpu_arch")
        row = find_gpu(self.gpu_arch)
        if row is not None:
            return row
        if self.gpu_arch in FAMILIES:
            members = ", ".join(FAMILIES[self.gpu_arch])
            raise UsageError(f"{self.gpu_arch} is several archs: {members}", hint="make a target for each")
        _check_refused(self.gpu_arch)
        raise UsageError(
            f"there is no GPU arch {self.gpu_arch!r}",
            hint=did_you_mean(self.gpu_arch, [*ARCHS, *PRODUCTS]) or "argosy arches lists them",
        )

    def _overrides(self) -> Overrides:
        return Overrides(
            self.gpu_num_cu,
            self.gpu_num_chiplets,
            self.gpu_max_threads_per_cu,
            self.gpu_max_threads_per_block,
            self.gpu_wavefront_size,
            self.gpu_max_shared_memory_per_block,
        )


def _check_refused(arch: str) -> None:
    """Raise UsageError, with the reason and what to do instead, for an arch that is known and not compiled for."""
    refusal = REFUSED.get(arch)
    if refusal is not None:
        raise UsageError(f"{arch} can't be compiled for: {refusal.reason}", hint=refusal.instead)


def _runs_on(row: GpuArch) -> tuple[str, ...]:
    """For an AMD arch that stands for several: all those that run its code."""
    members = tuple(other.name for other in ARCHS.values() if other.generic == row.name)
    return members if row.portable and row.vendor == "amd" else ()


def _other_names(row: GpuArch) -> tuple[str, ...]:
    """The families and products that a row is named by, too."""
    families = (name for name, members in FAMILIES.items() if row.name in members)
    return (*families, *(product.name for product in PRODUCTS.values() if product.arch == row.name))


TARGETS.add("gpu", GpuTarget)
