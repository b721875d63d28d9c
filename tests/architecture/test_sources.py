"""Rules that every module of the package keeps, read off its syntax tree."""

from __future__ import annotations

import ast
import re
from fnmatch import fnmatch

import pytest

from tests.architecture.sources import Source, sources, strings

MAX_LINES = 400
# Files that may be longer, each with its reason. Splitting is better.
LONGER: dict[str, str] = {}

# Dataclasses that may change after construction, each with its reason. Everything that travels is frozen.
MUTABLE: dict[str, str] = {
    "argosy.ir.builder.Builder": "the one mutable thing, local to the function that builds",
    "argosy.frontends.onnx.importer.Scope": "the names of a graph while it is imported, local to that",
}

ARCH = re.compile(r"\b(gfx\d|sm_\d|compute_\d|x86-64|znver\d|sapphirerapids|neoverse|apple-m\d)")
ARCH_TABLES = ("targets/*/arch*.py", "targets/*/arch*/*.py", "emulation/archs.py")

every_source = pytest.mark.parametrize("source", sources(), ids=lambda source: source.path)


@every_source
def test_files_are_short(source: Source) -> None:
    lines = source.text.count("\n")
    assert lines <= MAX_LINES or source.path in LONGER, f"src/argosy/{source.path} has {lines} lines, over {MAX_LINES}"


def test_files_that_may_be_longer_still_are() -> None:
    longer = {source.path for source in sources() if source.text.count("\n") > MAX_LINES}
    assert set(LONGER) <= longer


@every_source
def test_modules_say_what_they_are(source: Source) -> None:
    assert ast.get_docstring(source.tree), f"src/argosy/{source.path} has no docstring"


def is_dataclass(decorator: ast.expr) -> bool:
    """Whether a decorator is `dataclass`, bare or called."""
    target = decorator.func if isinstance(decorator, ast.Call) else decorator
    return ast.unparse(target).split(".")[-1] == "dataclass"


def is_frozen(decorator: ast.expr) -> bool:
    """Whether a `dataclass` decorator says frozen=True."""
    keywords = decorator.keywords if isinstance(decorator, ast.Call) else []
    return any(keyword.arg == "frozen" and ast.unparse(keyword.value) == "True" for keyword in keywords)


@every_source
def test_structs_are_frozen(source: Source) -> None:
    thawed = [
        source.at(node)
        for node in ast.walk(source.tree)
        if isinstance(node, ast.ClassDef)
        and any(ast.unparse(base) == "msgspec.Struct" for base in node.bases)
        and not any(keyword.arg == "frozen" and ast.unparse(keyword.value) == "True" for keyword in node.keywords)
    ]
    assert not thawed


@every_source
def test_dataclasses_are_frozen(source: Source) -> None:
    thawed = [
        source.at(node)
        for node in ast.walk(source.tree)
        if isinstance(node, ast.ClassDef) and f"{source.name}.{node.name}" not in MUTABLE
        for decorator in node.decorator_list
        if is_dataclass(decorator) and not is_frozen(decorator)
    ]
    assert not thawed


@every_source
def test_archs_are_named_only_in_their_tables(source: Source) -> None:
    if any(fnmatch(source.path, table) for table in ARCH_TABLES):
        return
    named = [f"{source.at(node)}: {node.value!r}" for node in strings(source.tree) if ARCH.search(str(node.value))]
    assert not named


@every_source
def test_only_options_reads_the_environment(source: Source) -> None:
    if source.path == "options.py":
        return
    readers = ("os.environ", "os.getenv", "os.environb")
    reads = [
        source.at(node)
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node) in readers
    ]
    imports = [
        source.at(node)
        for node in ast.walk(source.tree)
        if isinstance(node, ast.ImportFrom) and node.module == "os"
        for alias in node.names
        if f"os.{alias.name}" in readers
    ]
    assert not reads + imports


@every_source
def test_only_the_command_line_prints(source: Source) -> None:
    if source.path.startswith("cli/"):
        return
    prints = [
        source.at(node)
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "print"
    ]
    assert not prints


@every_source
def test_nothing_asserts(source: Source) -> None:
    asserts = [source.at(node) for node in ast.walk(source.tree) if isinstance(node, ast.Assert)]
    assert not asserts, "an assert vanishes under -O: raise an error of argosy.errors"


@every_source
def test_imports_are_absolute_and_named(source: Source) -> None:
    imports = [node for node in ast.walk(source.tree) if isinstance(node, ast.ImportFrom)]
    assert not [source.at(node) for node in imports if node.level]
    assert not [source.at(node) for node in imports if any(alias.name == "*" for alias in node.names)]
