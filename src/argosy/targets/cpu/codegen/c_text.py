"""C text in the making: scopes, loops and constants."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import ClassVar

from argosy.targets.lowering.kernel_text import KernelText

__all__ = ["CText"]


class CText(KernelText):
    """Lines of one C function."""

    indent = "  "
    functions: ClassVar = {
        "floordiv": "floordiv_int64",
        "ceildiv": "ceildiv_int64",
        "mod": "floormod_int64",
        "min": "min_int64",
        "max": "max_int64",
    }
    division: ClassVar = {"floordiv": "/", "mod": "%"}

    def let(self, ctype: str, expression: str) -> str:
        """A new constant; its name."""
        name = self.fresh()
        self.line(f"const {ctype} {name} = {expression};")
        return name

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Lines inside braces."""
        self.line(f"{head} {{" if head else "{")
        self._depth += 1
        yield
        self._depth -= 1
        self.line("}")

    def loop(self, name: str, begin: str, end: str) -> AbstractContextManager[None]:
        """A loop over [begin, end) as a context."""
        return self.block(f"for (int64 {name} = {begin}, {name}_end = {end}; {name} < {name}_end; ++{name})")

    def whole(self, number: int) -> str:
        """An int64."""
        return f"(int64){number}ll" if abs(number) >= 1 << 31 else str(number)

    def product(self, factors: list[str], coefficient: int) -> str:
        """The number first."""
        return "*".join([self.whole(coefficient), *factors] if coefficient != 1 or not factors else factors)
