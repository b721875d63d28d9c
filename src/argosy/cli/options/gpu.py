"""Options that give the numbers of a GPU in place of those that its arch or product has."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Final

from argosy.cli.relaxed_json import relaxed_object
from argosy.errors import UsageError
from argosy.registry import did_you_mean

if TYPE_CHECKING:
    from argosy.targets.base import Target
    from argosy.targets.gpu.target import GpuTarget

__all__ = ["add_gpu_options", "asked_gpu_options", "with_gpu_options"]

_EVERY: Final = "*"
_FORMS: Final = "forms: {num_cu:304, num_chiplets:8}, or with several archs ARCH={…} for each"


def add_gpu_options(group: argparse._ArgumentGroup) -> None:
    """The options, beside `--arch`."""
    group.add_argument(
        "--gpu-arch",
        action="append",
        default=[],
        metavar="A",
        help="a GPU to compile for with no device: an arch, product or family of `argosy arches`; may be repeated",
    )
    group.add_argument(
        "--gpu-arch-params",
        action="append",
        default=[],
        metavar="J",
        help="numbers of that GPU in place of the table's: {num_cu:304, num_chiplets:8}; with several, ARCH={…}",
    )
    group.add_argument(
        "--gpu-wavefront-size", type=int, metavar="N", help="threads of a wave; what the toolchain can't do is refused"
    )


def asked_gpu_options(arguments: argparse.Namespace) -> list[str]:
    """The names of those that the command line has."""
    return [name for name in ("gpu_arch", "gpu_arch_params", "gpu_wavefront_size") if getattr(arguments, name, None)]


@dataclass(frozen=True, slots=True)
class _Params:
    """One `--gpu-arch-params`: the numbers, by key, for the arch that `name` names, or for the only one."""

    name: str
    numbers: Mapping[str, int]


def with_gpu_options(chosen: Sequence[Target], arguments: argparse.Namespace) -> tuple[Target, ...]:
    """The targets with the numbers that the command line gives.

    Raises UsageError where there is no GPU to give them to, where it is not said which of several, and for numbers
    that are none or that aren't honoured.
    """
    asked = asked_gpu_options(arguments)
    if not asked and arguments.gpu_wavefront_size is None:
        return tuple(dict.fromkeys(chosen))
    from argosy.targets.gpu.target import GpuTarget

    gpus = [target for target in chosen if isinstance(target, GpuTarget)]
    if asked and not gpus:
        option = f"--{asked[-1].replace('_', '-')}"
        raise UsageError(f"{option} is given, and no GPU arch", hint="name one by --gpu-arch; argosy arches lists them")
    params = [_parse(text) for text in arguments.gpu_arch_params]
    _check_names(params, gpus)
    wave = arguments.gpu_wavefront_size
    given = {gpu: {"wavefront_size": wave} if wave is not None else {} for gpu in gpus}
    for gpu, numbers in given.items():
        # What is said of every arch gives way to what is said of this one.
        for param in sorted(params, key=lambda param: param.name != _EVERY):
            if param.name in (_EVERY, "", gpu.gpu_arch, gpu.arch):
                numbers.update(param.numbers)
    found = (
        replace(target, **{f"gpu_{key}": value for key, value in given[target].items()})
        if isinstance(target, GpuTarget)
        else target
        for target in chosen
    )
    return tuple(dict.fromkeys(found))


def _parse(text: str) -> _Params:
    head, brace, rest = text.partition("{")
    name = head.strip().removesuffix("=").strip()
    try:
        numbers = relaxed_object(brace + rest)
    except ValueError:
        raise UsageError(f"--gpu-arch-params is {text!r}", hint=_FORMS) from None
    if head.strip() and not head.strip().endswith("="):
        raise UsageError(f"--gpu-arch-params is {text!r}", hint=_FORMS)
    known = list(_keys())
    for key in numbers:
        if key not in known:
            hint = did_you_mean(key, known) or f"there are: {', '.join(known)}"
            raise UsageError(f"--gpu-arch-params has no {key!r}", hint=hint)
    return _Params(name, numbers)


def _keys() -> Iterator[str]:
    from argosy.targets.gpu.overrides import Overrides

    return (each.name for each in fields(Overrides))


def _check_names(params: Sequence[_Params], gpus: Sequence[GpuTarget]) -> None:
    """Each name is one of the archs', and numbers without a name have one arch to go to."""
    names = [name for gpu in gpus for name in dict.fromkeys((gpu.gpu_arch, gpu.arch))]
    for param in params:
        if not param.name and len(gpus) > 1:
            archs = ", ".join(gpu.gpu_arch for gpu in gpus)
            raise UsageError(f"--gpu-arch-params does not say which of {archs} it is for", hint=_FORMS)
        if param.name not in ("", _EVERY, *names):
            hint = did_you_mean(param.name, names) or f"asked for: {', '.join(names)}"
            raise UsageError(f"--gpu-arch-params names {param.name!r}, which isn't asked for", hint=hint)
