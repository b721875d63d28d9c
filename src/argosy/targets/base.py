"""What a target is: a name, a literal list of passes, and a way to make a variant of the result."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from threading import Lock
from types import TracebackType
from typing import Any, ClassVar, Final, Self, TypeVar

from argosy.artifact.artifact import CompiledVariant
from argosy.artifact.manifest import VariantRecord
from argosy.artifact.plan import PlanRecord
from argosy.drivers.machine import Machine
from argosy.errors import ArtifactError, DeviceError, UsageError
from argosy.ir.literal import Literal
from argosy.ir.module import Module
from argosy.options import CompileOptions
from argosy.passes.bind_dims import BindDims
from argosy.passes.manager import Phase
from argosy.registry import Registry, did_you_mean
from argosy.targets.lowering.choices import Choice

__all__ = [
    "NOT_BUILT",
    "TARGETS",
    "ArchInfo",
    "Lowered",
    "Number",
    "Outline",
    "Target",
    "Workshop",
    "find_arch",
    "find_archs",
    "find_maker",
    "known_archs",
    "make_target",
    "precision_of",
    "target_kind",
]

T = TypeVar("T")

TARGETS: Registry[str, type[Target]] = Registry("target", "argosy.targets")

NOT_BUILT: Final = "not built by the toolchain"
"""The support tier of an arch that is known, and refused."""


@dataclass(frozen=True, slots=True)
class ArchInfo:
    """A line of `argosy arches`: a name that `--arch` takes, what it is, and how far it has been tried.

    `tier` is one of: run on hardware, emulated, compiled and checked in structure only, not built by the toolchain.
    `names` are the families and products that mean it too; where the toolchain doesn't build it, `words` say why.
    """

    name: str
    family: str
    words: str
    tier: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Number:
    """A number of the hardware that a target compiles for, and where it is from: a product, an arch, or the user."""

    name: str
    value: int
    source: str


@dataclass(frozen=True, slots=True)
class Lowered:
    """What a target makes of one module: the variant, and the weights that its plan refers to, by hash.

    `host_steps` has a line, with the reasons, for each node that no kernel of the target can do; `choices` say how each
    instruction is done, in order.
    """

    variant: CompiledVariant
    weights: Mapping[str, Literal]
    host_steps: Sequence[str] = ()
    choices: Sequence[Choice] = ()


@dataclass(frozen=True, slots=True)
class Outline:
    """What a target would make of a module, as far as it is told before the toolchain has its say."""

    plan: PlanRecord
    choices: Sequence[Choice]
    note: str = ""


class Workshop:
    """What the variants of one compile share: tools that start when one first needs them, and end with this context.

    Safe to share between threads. `jobs` bounds the processes of each tool.
    """

    def __init__(self, jobs: int | None = None) -> None:
        self.jobs = jobs
        self._tools: dict[Any, Any] = {}
        self._stack = ExitStack()
        self._lock = Lock()

    def tool(self, make: Callable[[int | None], AbstractContextManager[T]]) -> T:
        """The tool that `make` makes of `jobs`: the same one each time."""
        with self._lock:
            if make not in self._tools:
                self._tools[make] = self._stack.enter_context(make(self.jobs))
            found: T = self._tools[make]
            return found

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)


class Target(ABC):
    """Base of the targets. An instance is one arch with its options: frozen, and comparable by value."""

    name: ClassVar[str]

    @classmethod
    @abstractmethod
    def archs(cls) -> Sequence[ArchInfo]:
        """What the target compiles for."""

    @classmethod
    @abstractmethod
    def for_arch(cls, arch: str) -> Target | None:
        """The target for an arch by the name that `--arch` takes, None where the name is not one of its own.

        Raises UsageError, with the reason, for an arch that it knows and has no code for.
        """

    @classmethod
    def for_name(cls, name: str) -> Sequence[Target]:
        """The targets that a name means: several for a family, none where the name is not one of its own."""
        target = cls.for_arch(name)
        return () if target is None else (target,)

    @classmethod
    def for_variant(cls, record: VariantRecord) -> Target | None:
        """The target that made a variant, None where another one did."""
        return cls.for_arch(record.arch)

    @classmethod
    def for_machine(cls, machine: Machine) -> Iterator[Target]:
        """What a machine runs best of this target, one for each device; what it has no code for is said in the log."""
        del machine
        yield from ()

    @property
    @abstractmethod
    def arch(self) -> str:
        """The arch, as the manifest names it."""

    @property
    def is_cross_compile(self) -> bool:
        """True where the arch was named rather than read from a device: then no device is ever asked."""
        return False

    @property
    def needs_variant(self) -> bool:
        """False where an artifact runs on it without any code of its own."""
        return True

    def command_words(self) -> Sequence[str]:
        """What a command line says to have this target."""
        return ("--arch", self.arch)

    def numbers(self) -> Sequence[Number]:
        """The numbers of the hardware that the code is made for, where they are more than the arch's name says."""
        return ()

    def context(self) -> Any:
        """A device to run on. Raises DeviceError for a target that only compiles."""
        raise DeviceError(f"the target {self.arch} has no device here", hint="run the artifact with argosy.Session")

    @abstractmethod
    def pipeline(self, options: CompileOptions) -> Sequence[Phase]:
        """The passes, in named phases, in the order in which they run."""

    def phases(self, options: CompileOptions, dims: Mapping[str, int] | None = None) -> tuple[Phase, ...]:
        """The pipeline, without the passes that the options leave out, behind the binding of `dims` by symbol."""
        left_out = options.leaves_out("pass")
        kept = (
            replace(phase, passes=tuple(step for step in phase.passes if step.name not in left_out))
            for phase in self.pipeline(options)
        )
        return (*((Phase("bind", (BindDims.of(dims),)),) if dims else ()), *kept)

    def solution_names(self) -> Sequence[str]:
        """The names of its ways to do ops."""
        return ()

    @property
    def has_tf32(self) -> bool:
        """Whether products round float32 to tf32 where that is allowed."""
        return False

    @property
    def shares_tools(self) -> bool:
        """Whether variants are lowered side by side: what takes long is done by tools of the workshop."""
        return False

    @abstractmethod
    def lower(self, module: Module, options: CompileOptions, workshop: Workshop) -> Lowered:
        """The variant that runs `module`, which has gone through the pipeline."""

    def outline(self, module: Module, options: CompileOptions) -> Outline:
        """What `lower` would make, without the toolchain. Raises UsageError for a target that can't tell."""
        del module, options
        raise UsageError(f"{self.arch} does not tell how it does things without doing them")


def find_arch(name: str) -> Target:
    """The target for an arch; raises UsageError for a family, and with a suggestion for an unknown name."""
    found = find_archs(name)
    if len(found) > 1:
        archs = ", ".join(target.arch for target in found)
        raise UsageError(f"{name!r} is several archs: {archs}", hint="name one of them")
    return found[0]


def find_archs(name: str) -> tuple[Target, ...]:
    """The targets for an arch, a product or a family; raises UsageError with a suggestion for an unknown name."""
    for _, kind in TARGETS.walk():
        targets = kind.for_name(name)
        if targets:
            return tuple(targets)
    known = [known for info in known_archs() for known in (info.name, *info.names)]
    raise UsageError(
        f"there is no arch {name!r} in this version of Argosy",
        hint=did_you_mean(name, known) or "argosy arches lists them",
    )


def find_maker(record: VariantRecord, where: str = "") -> Target:
    """The target, with the numbers of its device, that makes a variant again; errors name its artifact by `where`.

    Raises UsageError where this version compiles for no such arch, ArtifactError where it can't read the numbers.
    """
    for _, kind in TARGETS.walk():
        try:
            target = kind.for_variant(record)
        except (TypeError, ValueError) as error:
            raise ArtifactError(
                f"this version can't read what {record.words!r} says of its device: {', '.join(record.products)}",
                where=where,
                hint="name archs, on the command line by --arch",
            ) from error
        if target is not None:
            return target
    raise UsageError(f"this version compiles for no arch {record.arch!r}", hint="argosy arches lists them")


def precision_of(record: VariantRecord | None) -> str:
    """What the code of a variant computes in, whatever others of its file do: fp32, tf32, fp16 or bf16.

    Without a variant it is `ref`, which knows no options.
    """
    if record is None:
        return "fp32"
    precision = str(record.numeric.get("precision", "fp32"))
    if precision != "fp32" or not record.numeric.get("allow_tf32"):
        return precision
    try:
        return "tf32" if find_maker(record).has_tf32 else precision
    except UsageError:  # an arch or a product that another version knows
        return precision


def known_archs() -> Iterator[ArchInfo]:
    """Every arch of every target, which is imported only when its turn comes."""
    return (info for _, kind in TARGETS.walk() for info in kind.archs())


def target_kind(name: str) -> type[Target]:
    """The class of a target. Raises UsageError for an unknown one."""
    kind = TARGETS.get(name)
    if kind is None:
        known = [key for key, _ in TARGETS.items()]
        raise UsageError(f"there is no target {name!r}", hint=did_you_mean(name, known) or f"known: {', '.join(known)}")
    return kind


def make_target(name: str, **fields: Any) -> Target:
    """The target `name` with the given fields, frozen; goes into `targets=[...]` of `argosy.compile`.

    Raises UsageError for an unknown target or field.
    """
    kind = target_kind(name)
    known = list(inspect.signature(kind).parameters)
    for given in fields:
        if given not in known:
            hint = did_you_mean(given, known) or (f"there are: {', '.join(known)}" if known else "it has none")
            raise UsageError(f"the target {name} has no field {given!r}", hint=hint)
    try:
        return kind(**fields)
    except TypeError as error:
        raise UsageError(f"the target {name} does not take these fields: {error}") from None
