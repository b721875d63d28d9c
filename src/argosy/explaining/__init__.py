"""What became of the nodes of a model: through the passes of each arch, to the kernels that do their work."""

from argosy.explaining.explain import explain, why
from argosy.explaining.report import ArchReport, Change, Explanation, NodeReport, Way

__all__ = ["ArchReport", "Change", "Explanation", "NodeReport", "Way", "explain", "why"]
