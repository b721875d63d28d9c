"""`argosy read`: a model, artifact or program as text, JSON, a drawing or code; before or after passes."""

from __future__ import annotations

import argparse
import textwrap
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from argosy.cli.console import Console
from argosy.cli.files import emit
from argosy.cli.options.common import add_output_option, add_why_option
from argosy.cli.options.compile import add_compile_options, asked_compile_options, compile_options, targets
from argosy.cli.options.model import add_model_options
from argosy.cli.parser import Parser
from argosy.cli.progress import progress
from argosy.cli.sources import program_of
from argosy.cli.verb import verb
from argosy.errors import UsageError
from argosy.options import Dimensions

if TYPE_CHECKING:
    from argosy.ir.module import Module
    from argosy.ir.program import Program
    from argosy.passes.manager import PassContext, Phase, Stage

__all__ = ["read_model"]

FORMATS: Final = ("text", "json", "graphviz", "onnx", "python")


def configure(parser: Parser) -> None:
    """Options of the verb."""
    parser.add_argument("file", metavar="FILE", help="a model, an artifact, or a program in text form")
    parser.add_argument("--format", choices=FORMATS, help="text (default), json, graphviz, onnx or python")
    add_output_option(parser, "the answer")
    group = parser.add_argument_group("pass options")
    group.add_argument("-O", action="store_true", dest="optimise", help="run the normalise phase")
    group.add_argument(
        "-p", "--apply-pass", action="append", default=[], metavar="PASS", help="run a pass; may be repeated, in order"
    )
    group.add_argument(
        "--after", metavar="PASS", help="stop after the first run of PASS; without -p and --arch, of those of -O"
    )
    group.add_argument("--diff", action="store_true", help="show what each pass changed instead of the result")
    group.add_argument("-t", "--trim", type=int, default=0, metavar="N", help="leave out the last N instructions")
    add_why_option(parser, "the rules that fired, and those that declined with their reason")
    add_model_options(parser, skip_unknown=True)
    add_compile_options(parser, "none; the passes of one that is named run, as these options ask")


@verb(
    "read",
    group="Models",
    summary="show a model, before or after passes",
    configure=configure,
    examples=(
        ("argosy read model.onnx", "the program as imported"),
        ("argosy read model.onnx -O --diff", "what each pass of the normalise phase changes"),
        ("argosy read model.onnx --arch cpu --fp16 --diff", "what each pass for an arch changes"),
        ("argosy read model.onnx --apply-pass fold_constants --why", "one pass, and which rules fired or declined"),
        ("argosy read model.onnx --format python -o build.py", "a script that builds the program"),
    ),
)
def read_model(arguments: argparse.Namespace, console: Console) -> int:
    """Read, apply what is asked, show."""
    from argosy.reproducers import leaving_reproducer, read_case

    form = _format(arguments)
    phases = _phases(arguments)
    program = program_of(arguments.file, arguments, console)
    main = _trim(program.main, arguments.trim) if arguments.trim else program.main
    if not phases:
        if arguments.diff:
            raise UsageError("--diff needs passes", hint="add -O, --arch ARCH or --apply-pass PASS")
        emit(_show(program, main, form), arguments.output, console)
        return 0
    changes: list[str] = []
    case = partial(read_case, replace(program, main=main), _pass_words(arguments))
    with progress(console, f"running passes on {arguments.file}"), leaving_reproducer(case):
        main, context = _run_passes(main, phases, arguments, changes)
    emit("\n".join(changes) if arguments.diff else _show(program, main, form), arguments.output, console)
    if arguments.why:
        events = (*context.trace.fired, *context.trace.declined)
        console.note("\n".join(map(str, events)) or "no rule fired or declined")
    return 0


def _format(arguments: argparse.Namespace) -> str:
    if arguments.json and arguments.format not in (None, "json"):
        raise UsageError(f"--json contradicts --format {arguments.format}")
    form = "json" if arguments.json else arguments.format or "text"
    if form == "onnx":
        raise UsageError(
            "this version does not write ONNX: not every op of ours has an equal there",
            hint="--format text, json or python keeps everything",
        )
    return str(form)


def _phases(arguments: argparse.Namespace) -> tuple[Phase, ...]:
    """What is to run: the passes of an arch, the normalise phase, the named passes, or nothing."""
    from argosy.passes.manager import Phase, make_pass

    phases = _arch_phases(arguments)
    if not phases and (arguments.optimise or (arguments.after and not arguments.apply_pass)):
        from argosy.passes import NORMALISE

        phases = (NORMALISE,)
    if arguments.apply_pass:
        phases += (Phase("asked", tuple(make_pass(name) for name in arguments.apply_pass)),)
    if arguments.after and (name := arguments.after.replace("-", "_")) not in _names(phases):
        make_pass(name)
        more = "" if arguments.arch or arguments.gpu_arch else "; --arch NAME runs those of an arch"
        told = textwrap.fill(f"they are: {', '.join(_names(phases))}{more}", 96)
        raise UsageError(f"the pass {name} is not among those that run", hint=told)
    return phases


def _arch_phases(arguments: argparse.Namespace) -> tuple[Phase, ...]:
    """The pipeline of the arch that is named, if one is. Raises UsageError for several, and for options without one."""
    from argosy.targets.left_out import check_left_out

    asked = asked_compile_options(arguments)
    if not arguments.arch and not arguments.gpu_arch:
        if asked:
            raise UsageError(f"{asked[0]} changes the passes of an arch, and none is named", hint="add --arch A")
        return ()
    if arguments.optimise:
        raise UsageError("-O asks for the normalise phase, which the passes of an arch begin with", hint="leave -O out")
    chosen = targets(arguments)
    if len(chosen) > 1:
        raise UsageError(f"--arch means several: {', '.join(target.arch for target in chosen)}", hint="name one")
    options = compile_options(arguments, chosen)
    check_left_out(chosen, options)
    phases = chosen[0].phases(options)
    if not phases and not arguments.apply_pass:
        raise UsageError(f"{chosen[0].arch} runs no passes", hint="leave --arch out, or name another")
    return phases


def _names(phases: tuple[Phase, ...]) -> list[str]:
    return list(dict.fromkeys(step.name for phase in phases for step in phase.passes))


def _pass_words(arguments: argparse.Namespace) -> list[str]:
    """The words that ask for the same passes."""
    from argosy.reproducers import option_words

    words = [word for name in arguments.apply_pass for word in ("--apply-pass", name)]
    words += ["--after", arguments.after] if arguments.after else []
    if arguments.arch or arguments.gpu_arch:
        chosen = targets(arguments)
        options = replace(compile_options(arguments, chosen), dims=Dimensions())
        return [*words, *chosen[0].command_words(), *option_words(options)]
    return words + ["-O"] * arguments.optimise


def _run_passes(
    module: Module, phases: tuple[Phase, ...], arguments: argparse.Namespace, changes: list[str]
) -> tuple[Module, PassContext]:
    from argosy.passes.manager import PassContext, PassManager, diff_text
    from argosy.rewrite.trace import Trace

    def note(stage: Stage) -> None:
        if arguments.diff and stage.changed:
            told = [f"{when} {stage.name} ({stage.phase}, pass {stage.number})" for when in ("before", "after")]
            changes.append(diff_text(stage.before, stage.after, (told[0], told[1])))

    rules = [part.removeprefix("rule:") for part in arguments.without if part.startswith("rule:")]
    context = PassContext.of(module, Trace(rules))
    stop = (arguments.after or "").replace("-", "_")
    manager = PassManager(phases, stop_after=stop, observers=(note,))
    return manager.run(module, context), context


def _show(program: Program, main: Module, form: str) -> str:
    program = program if main is program.main else replace(program, main=main)
    if form == "text":
        from argosy.ir.printer import print_program

        return print_program(program)
    if form == "json":
        from argosy.artifact.encode import encode_program
        from argosy.artifact.program import PROGRAM

        return PROGRAM.to_json(encode_program(program)[0]).decode()
    if form == "graphviz":
        from argosy.cli.graphviz import graphviz

        return graphviz(program)
    from argosy.cli.python_script import python_script

    return python_script(program)


def _trim(module: Module, count: int) -> Module:
    """The module without its last `count` instructions; what only those read are its new results."""
    from argosy.ir.module import Constant

    if not 0 < count < len(module.instructions):
        raise UsageError(f"--trim is {count}, the program has {len(module.instructions)} instructions")
    kept = module.instructions[: len(module.instructions) - count]
    left = set(kept) | set(module.parameters)
    read = {operand for instruction in kept for operand in instruction.operands if operand is not None}
    names = dict(zip(module.results, module.result_names, strict=False))
    results = {
        value: names.get(value) or value.name
        for instruction in kept
        for value in instruction.results
        if (value in names or value not in read) and not isinstance(instruction.op, Constant)
    }
    results.update({value: name for value, name in names.items() if value.instruction in left})
    taken: set[str] = set()
    for index, (value, name) in enumerate(results.items()):
        unique = name if name and name not in taken else f"result{index}"
        taken.add(unique)
        results[value] = unique
    return replace(module, instructions=kept, results=tuple(results), result_names=tuple(results.values()))
