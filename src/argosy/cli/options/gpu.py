"""Options that give the numbers of a GPU in place of those that its arch or product has."""

from __future__ import annotations

import argparse
import re
import sys
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
_FORMS: Final = "forms: {num_cu:304, num_chiplets:8}; with several archs NAME={…}, NAME={…}, for all *={…}"
_ENTRY: Final = re.compile(r"\s*(?:([\w.*-]+)\s*=\s*)?(\{[^{}]*\})\s*(,|$)")


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
        help="its numbers in place of the table's: {num_cu:304, num_chiplets:8}; with several, NAME={…}, NAME={…}",
    )
    group.add_argument(
        "--gpu-wavefront-size", type=int, metavar="N", help="threads of a wave; what the toolchain can't do is refused"
    )


def asked_gpu_options(arguments: argparse.Namespace) -> list[str]:
    """The names of those that the command line has."""
    names = ("gpu_arch", "gpu_arch_params", "gpu_wavefront_size")
    return [name for name in names if getattr(arguments, name, None) not in (None, [])]


@dataclass(frozen=True, slots=True)
class _Params:
    """Numbers of one `--gpu-arch-params`, by key, for what `name` names; without a name for the only arch."""

    name: str
    numbers: Mapping[str, int]

    def breadth(self, gpu: GpuTarget) -> int:
        """About how many targets its name means, if it means this one: 1 for a product, 2 for an arch; 0 where not."""
        from argosy.targets.gpu.arch import FAMILIES

        if self.name in ("", _EVERY):
            return sys.maxsize - (not self.name)
        members = FAMILIES.get(self.name, ())
        if gpu.arch in members:
            return len(members) + 2
        return next((breadth for breadth, name in ((2, gpu.arch), (1, gpu.gpu_arch)) if self.name == name), 0)


def with_gpu_options(chosen: Sequence[Target], arguments: argparse.Namespace) -> tuple[Target, ...]:
    """The targets with the numbers that the command line gives.

    Raises UsageError where there is no GPU to give them to, where it is not said which of several, and for numbers
    that are none or that aren't honoured.
    """
    asked = asked_gpu_options(arguments)
    if not asked:
        return tuple(dict.fromkeys(chosen))
    from argosy.targets.gpu.target import GpuTarget

    gpus = [target for target in chosen if isinstance(target, GpuTarget)]
    if not gpus:
        option = f"--{asked[-1].replace('_', '-')}"
        raise UsageError(f"{option} is given, and no GPU arch", hint="name one by --gpu-arch; argosy arches lists them")
    params = [each for text in arguments.gpu_arch_params for each in _parse(text)]
    _check_names(params, gpus)
    wave = arguments.gpu_wavefront_size
    given = {gpu: {"wavefront_size": wave} if wave is not None else {} for gpu in gpus}
    for gpu, numbers in given.items():
        # What is said of many gives way to what is said of fewer.
        for param in sorted(params, key=lambda param: -param.breadth(gpu)):
            if param.breadth(gpu):
                numbers.update(param.numbers)
    found = (
        replace(target, **{f"gpu_{key}": value for key, value in given[target].items()})
        if isinstance(target, GpuTarget)
        else target
        for target in chosen
    )
    return tuple(dict.fromkeys(found))


def _parse(text: str) -> list[_Params]:
    """`{…}`, or `NAME={…}, NAME={…}`."""
    found, place, more = [], 0, ","
    while more:
        entry = _ENTRY.match(text, place)
        try:
            numbers = relaxed_object(entry[2]) if entry else None
        except ValueError:
            numbers = None
        if entry is None or numbers is None:
            raise UsageError(f"--gpu-arch-params is {text!r}", hint=_FORMS)
        _check_keys(numbers)
        found.append(_Params(entry[1] or "", numbers))
        place, more = entry.end(), entry[3]
    return found


def _check_keys(numbers: Mapping[str, object]) -> None:
    known = list(_keys())
    for key, number in numbers.items():
        if key not in known:
            hint = did_you_mean(key, known) or f"there are: {', '.join(known)}"
            raise UsageError(f"--gpu-arch-params has no {key!r}", hint=hint)
        if number is None:
            raise UsageError(f"--gpu-arch-params gives no number for {key}", hint="leave it out for the arch's own")


def _keys() -> Iterator[str]:
    from argosy.targets.gpu.overrides import Overrides

    return (each.name for each in fields(Overrides))


def _check_names(params: Sequence[_Params], gpus: Sequence[GpuTarget]) -> None:
    """Each name means one of the archs at least, and numbers without a name have one arch to go to."""
    names = [name for gpu in gpus for name in dict.fromkeys((gpu.gpu_arch, gpu.arch))]
    for param in params:
        if not param.name and len(gpus) > 1:
            archs = ", ".join(gpu.gpu_arch for gpu in gpus)
            raise UsageError(f"--gpu-arch-params does not say which of {archs} it is for", hint=_FORMS)
        if not any(param.breadth(gpu) for gpu in gpus):
            hint = did_you_mean(param.name, names) or f"asked for: {', '.join(names)}"
            raise UsageError(f"--gpu-arch-params names {param.name!r}, which isn't asked for", hint=hint)
