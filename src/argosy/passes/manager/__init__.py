"""The pass manager: what passes and phases are, how they run, and what one changed."""

from argosy.passes.manager.differences import diff_text
from argosy.passes.manager.observers import PassTime, Timings, dump_into
from argosy.passes.manager.passes import Pass, PassContext, Phase, make_pass, pass_names, register_pass
from argosy.passes.manager.pipeline import Observer, PassManager, Stage

__all__ = [
    "Observer",
    "Pass",
    "PassContext",
    "PassManager",
    "PassTime",
    "Phase",
    "Stage",
    "Timings",
    "diff_text",
    "dump_into",
    "make_pass",
    "pass_names",
    "register_pass",
]
