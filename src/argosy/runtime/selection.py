"""Which variant a machine runs, and why: every variant gets an answer and a reason, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from argosy import host_cpu
from argosy.artifact.manifest import VariantRecord
from argosy.drivers.machine import Machine
from argosy.errors import DeviceError
from argosy.runtime.devices.cpu import cpu_family
from argosy.runtime.devices.host import HOST_FAMILY
from argosy.runtime.gpu.families import EMULATED, GPU_FAMILIES

__all__ = ["Choice", "Selection", "judge", "select"]

REF: Final = "ref"
CPU: Final = "cpu"
OPTIMAL: Final = "optimal"
WORKS: Final = "works, recompile preferred"
REFUSED: Final = "not for this machine"

_NAMED: Final = 4
"""Features that a reason names."""
_SPEED: Final = (
    "avx", "avx2", "fma", "f16c", "avx512f", "avx512vl", "avx512vnni", "avx512bf16", "avx512fp16", "avxvnni",
    "fp16", "dotprod", "bf16", "i8mm", "sve", "sve2",
)  # fmt: skip
"""Features for whose sake a model is better compiled again."""


class Choice(msgspec.Struct, frozen=True):
    """A variant (None for `ref`) and why it does or doesn't run here. `answer` is one of the four of `list`."""

    variant: VariantRecord | None
    answer: str
    reason: str

    @property
    def fits(self) -> bool:
        """Whether this machine can run it."""
        return self.answer in (OPTIMAL, WORKS)

    @property
    def words(self) -> str:
        """The variant in words."""
        return self.variant.words if self.variant else REF

    @property
    def is_general(self) -> bool:
        """Whether it runs every size."""
        return self.variant is None or not self.variant.dims


class Selection(msgspec.Struct, frozen=True):
    """The choices, best first; those that do not fit come last. A run takes the first that fits it and its sizes."""

    choices: tuple[Choice, ...]

    @property
    def fitting(self) -> tuple[Choice, ...]:
        """What can run, best first."""
        return tuple(choice for choice in self.choices if choice.fits)

    @property
    def taken(self) -> tuple[Choice, ...]:
        """What runs take: code for special sizes, then the first that takes every size."""
        fitting = self.fitting
        general = next((place for place, choice in enumerate(fitting) if choice.is_general), len(fitting))
        return fitting[: general + 1]

    def __str__(self) -> str:
        taken = self.taken
        return "\n".join(
            f"{'→' if choice in taken else ' '} {choice.words}: {choice.answer}; {choice.reason}"
            for choice in self.choices
        )


def judge(
    variants: Sequence[VariantRecord],
    *,
    device: str | None = None,
    exact: bool = False,
    native_code: bool = True,
    slim: bool = False,
    machine: Machine | None = None,
) -> Selection:
    """An answer for each variant and for `ref`, best first, on this machine or another one.

    `device` limits the choice to one device, `exact` to code for just this machine, `native_code=False` to `ref`.
    Raises DeviceError for an unknown device.
    """
    wanted = (device or "").partition(":")[0]
    known = (REF, CPU, *GPU_FAMILIES.values(), EMULATED, HOST_FAMILY)
    if wanted not in ("", *known):
        raise DeviceError(
            f"there is no device {device!r} in this version of Argosy",
            hint=f"devices: {', '.join(known)} (leave --device out to choose)",
        )
    choices = [
        _told(_judge(variant, device or "", machine, exact=exact, native_code=native_code)) for variant in variants
    ]
    choices.append(_reference(wanted, slim=slim))
    order = sorted(range(len(choices)), key=lambda index: (not choices[index].fits, _rank(choices[index]), index))
    return Selection(tuple(choices[index] for index in order))


def select(
    variants: Sequence[VariantRecord],
    *,
    device: str | None,
    exact: bool,
    native_code: bool,
    slim: bool,
    where: str,
) -> Selection:
    """Like `judge`, but raises DeviceError where nothing fits, saying why for each variant."""
    selection = judge(variants, device=device, exact=exact, native_code=native_code, slim=slim)
    if not selection.fitting:
        raise DeviceError(
            f"no variant runs here:\n{selection}",
            where=where,
            hint=_hint(device or ""),
        )
    return selection


def _hint(device: str) -> str:
    kind, _, arch = device.partition(":")
    if kind == EMULATED and arch:
        return f"compile for what is emulated: --arch {arch}"
    return "compile for this machine: argosy doctor says what it is"


def _rank(choice: Choice) -> tuple[int, int, int]:
    """What runs rather than what: code, for just this device or of the highest level; then that for special sizes.

    `ref` comes at last.
    """
    variant = choice.variant
    if variant is None:
        return (2, 0, 0)
    if variant.family in GPU_FAMILIES:
        return (-1, int(choice.answer != OPTIMAL) + int(variant.portable), int(not variant.dims))
    # Each level of a CPU family asks for more features than the ones below.
    return (int(variant.family == HOST_FAMILY), -len(variant.requirements.features), int(not variant.dims))


def _told(choice: Choice) -> Choice:
    """The choice, its reason naming the sizes that it is for."""
    if choice.variant is None or choice.is_general or not choice.fits:
        return choice
    sizes = ", ".join(f"{name} = {size}" for name, size in choice.variant.dims.items())
    return msgspec.structs.replace(choice, reason=f"{choice.reason}; for runs with {sizes}")


def _judge(variant: VariantRecord, device: str, machine: Machine | None, *, exact: bool, native_code: bool) -> Choice:
    wanted = device.partition(":")[0]
    if not native_code:
        return Choice(variant, REFUSED, "native code is switched off")
    if wanted and wanted not in _devices(variant):
        return Choice(variant, REFUSED, f"the device {wanted} was asked for")
    if variant.family == HOST_FAMILY:
        return _judge_host(variant)
    if variant.family in GPU_FAMILIES:
        return _judge_gpu(variant, device, machine, exact=exact)
    if variant.family.startswith(cpu_family("")):
        return _judge_cpu(variant, machine, exact=exact)
    return Choice(variant, REFUSED, f"no {variant.family} device is known to this version")


def _devices(variant: VariantRecord) -> tuple[str, ...]:
    """The devices that are asked for by name and run a variant's family."""
    if variant.family == HOST_FAMILY:
        return (HOST_FAMILY, CPU)
    if variant.family in GPU_FAMILIES:
        return (GPU_FAMILIES[variant.family], EMULATED)
    return (CPU,) if variant.family.startswith(cpu_family("")) else ()


def _judge_host(variant: VariantRecord) -> Choice:
    if variant.requirements.features:
        return Choice(variant, REFUSED, f"it needs {', '.join(variant.requirements.features)}")
    return Choice(variant, OPTIMAL, "its plan needs nothing but this process")


def _judge_gpu(variant: VariantRecord, device: str, machine: Machine | None, *, exact: bool) -> Choice:
    from argosy.runtime.gpu.fitting import fit  # noqa: PLC0415 - its imports are felt where there is no GPU code

    found = fit(variant, device, machine)
    if found.device is None:
        return Choice(variant, REFUSED, found.reason)
    if exact and not found.exact:
        return Choice(variant, REFUSED, f"{found.reason}; exact code was asked for")
    return Choice(variant, OPTIMAL if found.exact else WORKS, found.reason)


def _judge_cpu(variant: VariantRecord, machine: Machine | None, *, exact: bool) -> Choice:
    if machine is None:
        isa, system, features = host_cpu.isa(), host_cpu.system(), host_cpu.cpu_features()
    else:
        isa, system, features = machine.isa, machine.system, machine.features
    if variant.family != cpu_family(isa):
        return Choice(variant, REFUSED, f"its instruction set is {variant.family[4:]}, this CPU's {isa}")
    if variant.system and variant.system != system:
        return Choice(variant, REFUSED, f"it is for {variant.system}, this is {system}")
    needed = set(variant.requirements.features)
    if not features and needed:
        return Choice(variant, REFUSED, f"{system} doesn't tell what this CPU can do")
    missing = sorted(needed - features)
    if missing:
        more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
        return Choice(variant, REFUSED, f"this CPU lacks {', '.join(missing[:_NAMED])}{more}")
    unused = [name for name in _SPEED if name in features and name not in needed]
    if not unused:
        return Choice(variant, OPTIMAL, "it uses what this CPU can do")
    reason = f"this CPU can also do {', '.join(unused[-_NAMED:])}"
    return Choice(variant, REFUSED if exact else WORKS, f"{reason}; exact code was asked for" if exact else reason)


def _reference(wanted: str, *, slim: bool) -> Choice:
    if slim:
        return Choice(None, REFUSED, "the artifact is slim: it holds no program")
    if wanted not in ("", REF):
        return Choice(None, REFUSED, f"the device {wanted} was asked for")
    return Choice(None, OPTIMAL if wanted == REF else WORKS, "numpy runs everywhere")
