"""Which operator set a node belongs to: opset imports, and what we accept beyond the letter of the standard.

Three leniencies, each with a warning and an error under `strict`: a domain that is used but not imported
counts as version 1; an op of the default domain that ai.onnx does not have is looked up in com.microsoft,
because exporters write contrib ops there; and a node in the form of another version of its op is read as that.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from argosy.errors import ModelError, UnsupportedError
from argosy.frontends.onnx.registry import CONTRIB, ML, ONNX, has_handler
from argosy.frontends.onnx.versions import written_for

if TYPE_CHECKING:
    import onnx

__all__ = ["Opsets", "canonical_domain"]

log = logging.getLogger("argosy.onnx")


def canonical_domain(domain: str) -> str:
    """The domain as the registry spells it: "ai.onnx" is the empty string."""
    return ONNX if domain == "ai.onnx" else domain


@dataclass(frozen=True, slots=True)
class Opsets:
    """Version of each imported domain."""

    versions: tuple[tuple[str, int], ...]
    strict: bool
    quiet: bool = False
    """Whether warnings are left out."""

    @staticmethod
    def of(imports: Iterable[onnx.OperatorSetIdProto], *, strict: bool, needed: bool = True) -> Opsets:
        """The opsets that a model imports; raises ModelError for a domain with two versions.

        Without `needed` (IR versions before 3 had none: ONNX IR spec, "Operator Sets") none count as version 1.
        """
        versions: dict[str, int] = {}
        for entry in imports:
            domain = canonical_domain(entry.domain)
            _check_version(domain, entry.version)
            other = versions.setdefault(domain, entry.version)
            if other != entry.version:
                raise ModelError(
                    f"opset_import lists the versions {other} and {entry.version} of {domain or 'ai.onnx'}",
                    hint="leave one of them",
                )
        if not needed:
            versions.setdefault(ONNX, 1)
        return Opsets(tuple(versions.items()), strict)

    def for_function(self, imports: Iterable[onnx.OperatorSetIdProto]) -> Opsets:
        """The opsets inside a function: its own imports, else those of the model."""
        own = Opsets.of(imports, strict=self.strict)
        return dataclasses.replace(self, versions=tuple({**dict(self.versions), **dict(own.versions)}.items()))

    def quietly(self) -> Opsets:
        """The same without warnings, for a first look at nodes that are imported later."""
        return dataclasses.replace(self, quiet=True)

    def version(self, node: onnx.NodeProto) -> int:
        """The version that is imported of a node's domain, 1 where none is."""
        return dict(self.versions).get(canonical_domain(node.domain), 1)

    def resolve(self, node: onnx.NodeProto, label: str) -> tuple[str, int]:
        """Domain and version of a node's operator set."""
        versions = dict(self.versions)
        domain = canonical_domain(node.domain)
        if domain not in versions:
            self._lenient(f"the domain {domain or 'ai.onnx'!r} is used but not imported; taken as version 1", label)
            return domain, 1
        version = versions[domain]
        if domain == ONNX and has_handler(CONTRIB, node.op_type) and not _is_standard(node.op_type, version):
            self._lenient(f"{node.op_type} is no ai.onnx op of opset {version}; taken from {CONTRIB}", label)
            return CONTRIB, versions.get(CONTRIB, 1)
        return domain, self._written_for(node, domain, version, label)

    def _written_for(self, node: onnx.NodeProto, domain: str, version: int, label: str) -> int:
        found = written_for(node, domain, version)
        if found != version:
            self._lenient(
                f"{node.op_type} has the form of opset {found}, the model imports {version}; read as of {found}", label
            )
        return found

    def _lenient(self, what: str, label: str) -> None:
        if self.strict:
            raise ModelError(what, where=label, hint="fix the model, or leave out --strict-onnx")
        if not self.quiet:
            log.warning("%s: %s", label, what)


def _check_version(domain: str, version: int) -> None:
    """Refuse versions that no operator set has, and newer ones than we know: ops may mean something else there."""
    import onnx  # noqa: PLC0415 - an optional extra

    name = domain or "ai.onnx"
    if not 1 <= version < 1 << 31:
        hint = "set the version that the exporter wrote the model for"
        raise ModelError(f"opset_import lists version {version} of {name}, expected 1 or later", hint=hint)
    newest = {ONNX: onnx.defs.onnx_opset_version(), ML: onnx.defs.onnx_ml_opset_version()}.get(domain)
    if newest is not None and version > newest:
        raise UnsupportedError(
            f"opset_import lists version {version} of {name}; the newest that is known here is {newest}",
            (),
            hint="export the model with an earlier opset, or upgrade argosy and the onnx package",
        )


def _is_standard(name: str, version: int) -> bool:
    """Whether ai.onnx has an op of that name at an opset version."""
    import onnx  # noqa: PLC0415 - an optional extra

    try:
        onnx.defs.get_schema(name, version)
    except onnx.defs.SchemaError:
        return False
    return True
