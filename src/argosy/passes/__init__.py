"""What is done to programs: one pass per file, run by the manager in phases that a target lists.

The normalise phase is the same for every target and stands here.
"""

from typing import Final

from argosy.passes.eliminate_common import EliminateCommon
from argosy.passes.fold_constants import FoldConstants
from argosy.passes.fold_shapes import FoldShapes
from argosy.passes.inline_conditionals import InlineConditionals
from argosy.passes.manager import Phase
from argosy.passes.normalize_attributes import NormalizeAttributes
from argosy.passes.simplify_algebra import SimplifyAlgebra
from argosy.passes.simplify_views import SimplifyViews
from argosy.passes.split_ranks import SplitRanks

__all__ = ["NORMALISE"]

NORMALISE: Final = Phase(
    "normalise",
    (
        FoldShapes(),
        InlineConditionals(),
        SplitRanks(),
        NormalizeAttributes(),
        FoldConstants(),
        SimplifyViews(),
        SimplifyAlgebra(),
        EliminateCommon(),
    ),
    rounds=4,
)
