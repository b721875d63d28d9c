"""Group instructions into kernels: what can be computed element by element goes where it is read.

Walks from the results back. An instruction joins the group of its readers when all of them are in one
group and the group can take it:

- *elementwise* ops (pointwise, gathers and the like) are computed where they are read, if they are read
  once for each element;
- *views* are index arithmetic wherever they are read, so they join every group that reads them; so do
  dequantisations, for it is less to widen a code again than to store and load what it stands for;
- an *anchor* (reduction, product, window) joins the group of what takes its result element by element;
- *attention* is an anchor of several instructions: two products and the softmax between them. What it reads is read
  many times over, so no more than views joins it, but for what changes the scores;
- a *transform* computes what it reads in passing; what takes its result is apart;
- with `rows`, what works on whole rows (norms, softmaxes) is one group, for a target that holds a row at once.

Everything else stays as it is, and work on constants alone stays apart: it can be done once. Constants of one
element move into the kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from argosy.ir.builder import Builder
from argosy.ir.dim import equal
from argosy.ir.module import Constant, Instruction, Module, Value
from argosy.ir.types import TensorType, Type, type_symbols
from argosy.ops.dim_values import DimValues
from argosy.ops.fused import Fused
from argosy.ops.index import Range
from argosy.ops.matmul import Dot
from argosy.ops.shapes import product
from argosy.ops.slicing import Pad
from argosy.passes.manager import PassContext, register_pass
from argosy.rewrite.attention import find_attentions, is_scaled, placed_values
from argosy.rewrite.codes import dequantized_matrix
from argosy.rewrite.product_ends import product_ends
from argosy.rewrite.rebuild import map_bodies
from argosy.rewrite.rows import find_rows

__all__ = ["FuseLoops"]

VIEWS: Final = frozenset({"reshape", "transpose", "broadcast", "slice", "squeeze", "unsqueeze", "split"})
ELEMENTWISE: Final = frozenset(
    {"pointwise", "pad", "tile", "gather", "gather_elements", "gather_nd", "one_hot", "range", "triangle", "dims",
     "quantize", "dequantize", "reverse_sequence"}
)  # fmt: skip
ONE_PASS: Final = frozenset({"reduce", "arg_reduce"})
"""Anchors that read each element of their first operand once, so that what makes it may be computed in passing."""
TRANSFORMS: Final = frozenset({"dft"})
"""Anchors, where a target asks for them, that read each element about once; they write their results themselves."""
WIDENING: Final = frozenset({"dequantize"})
WINDOWS: Final = frozenset({"conv", "conv_transpose", "pool"})
POINTWISE: Final = frozenset({"pointwise", "quantize", "dequantize"})
"""Ops whose elements depend on the elements of their operands at the same place."""
ANCHORS: Final = frozenset({*ONE_PASS, "dot", "conv", "conv_transpose", "pool", "softmax"})


class _Group:
    """A kernel in the making: members in reverse order of the module, the first is the root."""

    def __init__(self, root: Instruction, anchor: Instruction | None) -> None:
        self.members = [root]
        self.anchor = anchor
        self.inner: frozenset[Instruction] = frozenset()
        self.rows = False


@register_pass
@dataclass(frozen=True, slots=True)
class FuseLoops:
    """Replace groups of instructions by `fused` ops, each of which becomes one kernel.

    Weights of products stay in codes where those stand for float32; with `short_codes`, for short floats as well.
    With `places`, masks that places say, or that are said for rows and keys apart, are computed in attention.
    """

    name = "fuse_loops"
    elementwise: frozenset[str] = ELEMENTWISE
    views: frozenset[str] = VIEWS
    anchors: frozenset[str] = ANCHORS
    transforms: frozenset[str] = frozenset()
    rows: bool = False
    short_codes: bool = False
    places: bool = False

    def run(self, module: Module, context: PassContext) -> Module:
        """The module with its kernels fused; bodies of control ops too."""
        groups = self._groups(module)
        if not groups and not any(instruction.op.modules() for instruction in module.instructions):
            return module
        return _Emit(module, groups, lambda body: self.run(body, context)).run()

    def _groups(self, module: Module) -> dict[Instruction, _Group]:
        """The group of every root."""
        results = {value.instruction for value in module.results}
        apart = _defining(module)
        steady = _steady(module, short=self.short_codes)
        attentions = {attention.product: attention.inner for attention in find_attentions(module)}
        placed = placed_values(module) if self.places and attentions else frozenset()
        rows = find_rows(module) if self.rows else {}
        ends = product_ends(module, self.views) if self.rows else frozenset()
        inner = {root: own for root, own in rows.items() if not own & set().union(*attentions.values())}
        homes: dict[Instruction, _Group] = {}
        readers: dict[Instruction, list[_Group | None]] = {}
        roots: dict[Instruction, _Group] = {}
        for instruction in reversed(module.instructions):
            if isinstance(instruction.op, Constant):
                continue
            joined: list[_Group | None] = [None]
            if instruction in homes:
                homes[instruction].members.append(instruction)
                joined = [homes[instruction]]
            elif instruction not in apart:
                taken = readers.get(instruction, [])
                of_rows = instruction in inner and not inner[instruction] & (apart | steady)
                alone = (
                    instruction in results
                    or instruction in ends
                    or of_rows  # what takes it goes over other rows, else it would be one of them
                    or (instruction in steady and any(group and group.members[0] not in steady for group in taken))
                )
                again = instruction in placed and self._is_again(taken, instruction)
                alone = alone and (not again or instruction in results)
                everywhere = again or instruction.op.name in self.views | WIDENING
                joined = self._place(instruction, taken, roots, alone=alone, everywhere=everywhere)
                group = joined[0]
                if instruction in attentions and group is not None and not attentions[instruction] & (apart | steady):
                    group.inner = attentions[instruction]
                    homes |= dict.fromkeys(group.inner, group)
                if of_rows and group is not None:
                    group.rows = True
                    homes |= dict.fromkeys(inner[instruction], group)
            for operand in instruction.operands:
                if operand is not None:
                    readers.setdefault(operand.instruction, []).extend(joined)
        return {root: group for root, group in roots.items() if group.members}

    def _place(
        self, instruction: Instruction, readers: list[_Group | None], roots: dict[Instruction, _Group], *, alone: bool,
        everywhere: bool,
    ) -> list[_Group | None]:  # fmt: skip
        """Put an instruction into the groups that take it, or make it a root; the groups that now read its operands.

        One that is to stay `alone` becomes a root, for its result is needed as such.
        """
        distinct = list({id(group): group for group in readers}.values())
        name = instruction.op.name
        joins: list[_Group] = []
        if not alone and distinct and all(group is not None for group in distinct):
            takers = [group for group in distinct if group is not None]
            inside = everywhere and _ranked(instruction) and not _is_slid_over(takers, instruction)
            if inside or (len(takers) == 1 and self._takes(takers[0], instruction)):
                joins = takers
        if joins:
            for group in joins:
                group.members.append(instruction)
                if name in self.anchors:
                    group.anchor = instruction
            return list(joins)
        anchors = self.anchors | self.transforms
        fits = name in anchors or name in self.elementwise or name in self.views
        if fits and len(instruction.types) == 1 and _ranked(instruction):
            group = _Group(instruction, instruction if name in anchors else None)
            roots[instruction] = group
            return [group]
        return [None]

    def _is_again(self, takers: Sequence[_Group | None], instruction: Instruction) -> bool:
        """Whether some taker is attention, and all others can compute what they take as well."""
        groups = [group for group in takers if group and (group.inner or self._takes(group, instruction))]
        return len(groups) == len(takers) and any(group.inner for group in groups)

    def _takes(self, group: _Group, instruction: Instruction) -> bool:
        name = instruction.op.name
        if not _ranked(instruction) or len(instruction.types) != 1 or group.rows:
            return False
        if name in self.elementwise:
            if group.inner and is_scaled(instruction):
                return True
            if any(_reads(member, instruction) and not _changes_scores(member, group) for member in group.members):
                return False
            once = all(self._reads_once(group, member, instruction) for member in group.members)
            return once or _is_halo(group, instruction)
        if name in self.anchors and group.anchor is None:
            return _takes_element_by_element(group, instruction)
        return False

    def _reads_once(self, group: _Group, member: Instruction, source: Instruction) -> bool:
        """Whether a member that reads `source` does so at most once for each of the member's elements."""
        if not _reads(member, source):
            return True
        if member.op.name in ONE_PASS | self.transforms:
            return True
        if member.op.name == "pad" and _is_halo(group, member):
            return False  # what is padded is read many times
        if member.op.name not in self.elementwise and member.op.name not in self.views:
            return False
        # Broadcast values would be computed again for every repetition.
        return not _repeats(member, source)


def _reads(member: Instruction, source: Instruction) -> bool:
    return any(operand is not None and operand.instruction is source for operand in member.operands)


def _changes_scores(member: Instruction, group: _Group) -> bool:
    """Whether a member of a group may read what is computed there: of attention, those that only compute themselves."""
    return not group.inner or member.op.name == "pointwise"


def _defining(module: Module) -> set[Instruction]:
    """The instructions that give a symbol its value: sizes must be known before a kernel can loop over them."""
    known = {symbol.name for parameter in module.parameters for symbol in type_symbols(parameter.types[0])}
    found: set[Instruction] = set()
    for instruction in module.instructions:
        symbols = {symbol.name for kind in instruction.types for symbol in type_symbols(kind)}
        if not symbols <= known:
            found.add(instruction)
            known |= symbols
    return found


def _steady(module: Module, *, short: bool) -> set[Instruction]:
    """Element-wise work on constants alone that does not make them much larger.

    It is the same in every run. Apart from what changes, it can be done once; within a kernel it would be done
    for every element of every run. The dequantisation of the weights of a product is not of it: they may stay in codes.
    """
    products = [i.operands[1] for i in module.instructions if isinstance(i.op, Dot) and i.operands[1] is not None]
    weights = {coded.instruction for each in products if (coded := dequantized_matrix(each, short=short)) is not None}
    constant: set[Instruction] = set()
    found: set[Instruction] = set()
    for instruction in module.instructions:
        operands = [operand for operand in instruction.operands if operand is not None]
        if isinstance(instruction.op, Constant):
            constant.add(instruction)
        elif operands and instruction.op.pure and all(operand.instruction in constant for operand in operands):
            constant.add(instruction)
            sizes = [_elements(kind) for kind in instruction.types]
            given = max(_elements(operand.type) or 0 for operand in operands)
            if (
                instruction.op.name in ELEMENTWISE
                and instruction not in weights
                and all(size and 1 < size <= 4 * given for size in sizes)
            ):
                found.add(instruction)
    return found


def _elements(kind: Type) -> int | None:
    """How many elements a tensor has; None where only a run can tell."""
    elements = product(kind.dims) if isinstance(kind, TensorType) and kind.dims is not None else None
    return elements if isinstance(elements, int) else None


def _ranked(instruction: Instruction) -> bool:
    kinds = [*instruction.types, *(operand.type for operand in instruction.operands if operand is not None)]
    return all(isinstance(kind, TensorType) and kind.dims is not None and kind.dtype.kind != "string" for kind in kinds)


def _repeats(member: Instruction, source: Instruction) -> bool:
    """Whether `member` may read an element of `source` many times over."""
    name = member.op.name
    own, its = member.types[0], source.types[0]
    if not isinstance(own, TensorType) or not isinstance(its, TensorType) or own.dims is None or its.dims is None:
        return True
    if name in ("tile", "broadcast", "gather", "gather_elements", "gather_nd", "frames"):
        return True
    if name == "pointwise":
        if len(own.dims) != len(its.dims):
            return bool(its.dims) and not all(isinstance(dim, int) and dim == 1 for dim in its.dims)
        return not all(equal(a, b) for a, b in zip(own.dims, its.dims, strict=True))
    return False


def _is_slid_over(takers: Sequence[_Group], instruction: Instruction) -> bool:
    """Whether a window slides over the very result of a dequantisation, made once, as the window likes."""
    return instruction.op.name == "dequantize" and any(
        member.op.name in WINDOWS and member.operands[0] is not None and member.operands[0].instruction is instruction
        for group in takers
        for member in group.members
    )


def _is_halo(group: _Group, pad: Instruction) -> bool:
    """Whether an instruction pads what the anchor of a group, a convolution, slides over: its halo is that padding."""
    anchor, op = group.anchor, pad.op
    if anchor is None or anchor.op.name != "conv" or not isinstance(op, Pad) or op.mode != "constant":
        return False
    uses = [
        (member, place)
        for member in group.members
        for place, operand in enumerate(member.operands)
        if operand is not None and operand.instruction is pad
    ]
    fixed = op.pads is not None and all(isinstance(amount, int) and amount >= 0 for amount in op.pads)
    fill = pad.operands[2] if len(pad.operands) > 2 else None
    if op.axes is not None or not fixed or uses != [(anchor, 0)]:
        return False
    whole = isinstance(pad.types[0], TensorType) and not pad.types[0].dtype.is_float
    return fill is None or (fill.constant is not None and (whole or fill.constant.item() == 0))


def _takes_element_by_element(group: _Group, anchor: Instruction) -> bool:
    """Whether every way from the anchor to the root is pointwise over the anchor's own dims."""
    target = anchor.types[0]
    root = group.members[0].types[0]
    if not isinstance(target, TensorType) or not isinstance(root, TensorType):
        return False
    inside = {id(member) for member in group.members}
    reached = {id(anchor)}
    for member in reversed(group.members):
        reads = any(o is not None and id(o.instruction) in reached for o in member.operands)
        if reads:
            kind = member.types[0]
            if member.op.name not in POINTWISE or not isinstance(kind, TensorType) or not _same(kind, target):
                return False
            reached.add(id(member))
    return bool(inside) and id(group.members[0]) in reached


def _same(left: TensorType, right: TensorType) -> bool:
    if left.dims is None or right.dims is None or len(left.dims) != len(right.dims):
        return False
    return all(bool(equal(a, b)) for a, b in zip(left.dims, right.dims, strict=True))


class _Emit:
    """Writes the module with its groups as `fused` ops."""

    def __init__(self, module: Module, groups: dict[Instruction, _Group], body: Callable[[Module], Module]) -> None:
        self._module = module
        self._groups = groups
        self._body = body
        self._builder = Builder(module.name)
        self._places = {instruction: place for place, instruction in enumerate(module.instructions)}
        self._values: dict[Value, Value] = {}

    def run(self) -> Module:
        absorbed = {m for root, group in self._groups.items() for m in group.members if m is not root}
        for parameter in self._module.parameters:
            self._values[parameter.result()] = self._builder.adopt(parameter)
        for instruction in self._module.instructions:
            if instruction in self._groups:
                self._fused(instruction, self._groups[instruction])
            elif instruction not in absorbed:
                self._keep(instruction)
        results = [self._values[value] for value in self._module.results]
        return self._builder.module(list(zip(self._module.result_names, results, strict=True)))

    def _keep(self, instruction: Instruction) -> None:
        operands = [None if operand is None else self._values[operand] for operand in instruction.operands]
        op = map_bodies(instruction.op, self._body)
        kept = (
            Instruction(
                op, tuple(operands), instruction.types, instruction.known, instruction.names, instruction.source
            )
            if op is not instruction.op
            else instruction
        )
        for old, new in zip(instruction.results, self._builder.keep(kept, operands), strict=True):
            self._values[old] = new

    def _fused(self, root: Instruction, group: _Group) -> None:
        inner = Builder(f"{root.op.name}")
        values: dict[Value, Value] = {}
        outer: list[Value] = []
        members = set(group.members)
        for member in self._ordered(members):
            operands: list[Value | None] = []
            for operand in member.operands:
                if operand is not None and operand not in values:
                    sizes = isinstance(member.op, Range) and isinstance(operand.instruction.op, DimValues)
                    # The size of a range is known by what gives it.
                    values[operand] = (
                        inner.keep(operand.instruction, ())[0] if sizes else self._enter(operand, inner, outer)
                    )
                operands.append(None if operand is None else values[operand])
            values.update(zip(member.results, inner.keep(member, operands), strict=True))
        module = inner.module([("y", values[root.result()])])
        fused = self._builder.add(
            Fused(module), *(self._values[value] for value in outer), names=root.names, source=root.source
        )
        self._values[root.result()] = fused

    def _ordered(self, members: set[Instruction]) -> list[Instruction]:
        return sorted(members, key=self._places.__getitem__)

    @staticmethod
    def _enter(operand: Value, inner: Builder, outer: list[Value]) -> Value:
        literal = operand.constant
        if literal is not None and literal.size == 1:
            return inner.constant(literal)
        outer.append(operand)
        return inner.parameter(f"x{len(outer) - 1}", operand.type)
