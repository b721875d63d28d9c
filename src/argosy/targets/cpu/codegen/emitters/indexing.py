"""Emitters of the gathers."""

from __future__ import annotations

from argosy.targets.cpu.codegen.element import element
from argosy.targets.lowering.gathers import gather, gather_elements, gather_nd

element("gather")(gather)
element("gather_elements")(gather_elements)
element("gather_nd")(gather_nd)
