"""The pass manager: what passes and phases are, how they run, and what is left behind when one fails."""

from argosy.passes.manager.observers import PassTime, Timings, dump_into
from argosy.passes.manager.passes import Pass, PassContext, Phase, make_pass, pass_names, register_pass
from argosy.passes.manager.pipeline import Observer, PassManager, Stage
from argosy.passes.manager.reproducer import diff_text, read_reproducer, write_reproducer

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
    "read_reproducer",
    "register_pass",
    "write_reproducer",
]
