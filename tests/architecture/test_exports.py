"""`__all__` says exactly what a module offers."""

from __future__ import annotations

import ast
import importlib

import pytest

from tests.architecture.sources import Source, sources


def registered(function: ast.FunctionDef) -> set[str]:
    """What a decorator with arguments puts into its table: the function, and the functions that it is given."""
    calls = [decorator for decorator in function.decorator_list if isinstance(decorator, ast.Call)]
    given = [argument for call in calls for argument in [*call.args, *(keyword.value for keyword in call.keywords)]]
    return {function.name, *(node.id for node in given if isinstance(node, ast.Name))} if calls else set()


def defined(source: Source) -> set[str]:
    """Public classes and functions that a module defines at its top level, but for those reached through a table."""
    kinds = (ast.ClassDef, ast.FunctionDef)
    names = {node.name for node in source.tree.body if isinstance(node, kinds) and not node.name.startswith("_")}
    functions = [node for node in source.tree.body if isinstance(node, ast.FunctionDef)]
    return names.difference(*map(registered, functions))


def declared(source: Source) -> list[str] | None:
    """The module's `__all__` as written, or None."""
    for node in source.tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            names: list[str] = ast.literal_eval(node.value)
            return names
    return None


WITH_ALL = [source for source in sources() if declared(source) is not None]


@pytest.mark.parametrize("source", WITH_ALL, ids=lambda source: source.path)
def test_all_is_what_can_be_imported(source: Source) -> None:
    names = declared(source) or []
    module = importlib.import_module(source.name)
    assert len(set(names)) == len(names)
    assert not [name for name in names if not hasattr(module, name)], "in __all__ but not there"
    assert not defined(source) - set(names), "public, but not in __all__"


def test_the_package_lists_its_public_names() -> None:
    package = importlib.import_module("argosy")
    public = {name for name in dir(package) if not name.startswith("_")}
    assert set(package.__all__) <= public
    for name in package.__all__:
        assert getattr(package, name) is not None
