"""`__all__` says exactly what a module offers."""

from __future__ import annotations

import ast
import importlib

import pytest

from tests.architecture.sources import Source, sources


def defined(source: Source) -> set[str]:
    """Public classes and functions that a module defines at its top level.

    A function under a decorator with arguments (`@onnx_op("Gemm", since=13)`) is reached through its table.
    """
    names = {node.name for node in source.tree.body if isinstance(node, ast.ClassDef)}
    for node in source.tree.body:
        if isinstance(node, ast.FunctionDef) and not any(isinstance(found, ast.Call) for found in node.decorator_list):
            names.add(node.name)
    return {name for name in names if not name.startswith("_")}


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
