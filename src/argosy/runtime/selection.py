"""Which variant a machine runs, and why: every variant gets an answer and a reason, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from argosy.artifact.manifest import VariantRecord
from argosy.errors import DeviceError
from argosy.runtime.devices.host import HOST_FAMILY

__all__ = ["Choice", "Selection", "judge", "select"]

REF = "ref"


@dataclass(frozen=True, slots=True)
class Choice:
    """A variant (None for `ref`) and why it does or doesn't run here. `answer` is one of the four of `list`."""

    variant: VariantRecord | None
    answer: str
    reason: str

    @property
    def fits(self) -> bool:
        """Whether this machine can run it."""
        return self.answer in ("optimal", "works, recompile preferred")

    @property
    def words(self) -> str:
        """The variant in words."""
        return self.variant.words if self.variant else REF


@dataclass(frozen=True, slots=True)
class Selection:
    """The choices, best first; those that do not fit come last. The first that fits runs."""

    choices: tuple[Choice, ...]

    @property
    def fitting(self) -> tuple[Choice, ...]:
        """What can run, best first."""
        return tuple(choice for choice in self.choices if choice.fits)

    def __str__(self) -> str:
        taken = self.fitting[:1]
        return "\n".join(
            f"{'→' if choice in taken else ' '} {choice.words}: {choice.answer}; {choice.reason}"
            for choice in self.choices
        )


def judge(
    variants: Sequence[VariantRecord], *, device: str | None = None, native_code: bool = True, slim: bool = False
) -> Selection:
    """An answer for each variant and for `ref`, best first, on this machine.

    `device` limits the choice to one device; `native_code=False` to `ref`. Raises DeviceError for an unknown device.
    """
    wanted = (device or "").partition(":")[0]
    if wanted not in ("", REF, "cpu", HOST_FAMILY):
        raise DeviceError(
            f"there is no device {device!r} in this version of Argosy",
            hint="devices: ref, host (leave --device out to choose)",
        )
    choices = [_judge(variant, wanted, native_code=native_code) for variant in variants]
    choices.append(_reference(wanted, slim=slim))
    # Specialised variants before general ones of the same arch: they are faster where they apply.
    order = sorted(range(len(choices)), key=lambda index: (not choices[index].fits, _generality(choices[index]), index))
    return Selection(tuple(choices[index] for index in order))


def select(
    variants: Sequence[VariantRecord], *, device: str | None, native_code: bool, slim: bool, where: str
) -> Selection:
    """Like `judge`, but raises DeviceError where nothing fits, saying why for each variant."""
    selection = judge(variants, device=device, native_code=native_code, slim=slim)
    if not selection.fitting:
        raise DeviceError(
            f"no variant runs here:\n{selection}",
            where=where,
            hint="compile for this machine: argosy doctor says what it is",
        )
    return selection


def _generality(choice: Choice) -> tuple[int, int]:
    if choice.variant is None:
        return (1, 0)
    return (0, 0 if choice.variant.dims else 1)


def _judge(variant: VariantRecord, wanted: str, *, native_code: bool) -> Choice:
    if not native_code:
        return Choice(variant, "not for this machine", "native code is switched off")
    if wanted == REF:
        return Choice(variant, "not for this machine", "the device ref was asked for")
    if variant.family != HOST_FAMILY:
        return Choice(variant, "not for this machine", f"no {variant.family} device is known to this version")
    if variant.requirements.features:
        return Choice(variant, "not for this machine", f"it needs {', '.join(variant.requirements.features)}")
    return Choice(variant, "optimal", "its plan needs nothing but this process")


def _reference(wanted: str, *, slim: bool) -> Choice:
    if slim:
        return Choice(None, "not for this machine", "the artifact is slim: it holds no program")
    if wanted not in ("", REF):
        return Choice(None, "not for this machine", f"the device {wanted} was asked for")
    return Choice(None, "optimal" if wanted == REF else "works, recompile preferred", "numpy runs everywhere")
