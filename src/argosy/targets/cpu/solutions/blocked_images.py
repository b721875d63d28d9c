"""What is done to images between convolutions, where they lie blocked."""

from __future__ import annotations

from typing import Any

from argosy.ir.dim import equal
from argosy.ir.dtype import FLOAT32
from argosy.ir.module import Parameter, Value
from argosy.ops.joining import Concat
from argosy.ops.pooling import Pool
from argosy.ops.shapes import normalize_axis
from argosy.targets.cpu.codegen.blocked_elements import Image, images_of
from argosy.targets.cpu.codegen.blocked_kernels import (
    blocked_concat,
    blocked_elementwise,
    blocked_pool,
    blocked_reduction,
    whole_planes,
)
from argosy.targets.cpu.codegen.channel_gather import first_of_blocks, gather_channels, gathers_channels
from argosy.targets.cpu.codegen.copying import is_view
from argosy.targets.cpu.codegen.part import Part, part_of
from argosy.targets.cpu.codegen.vector_elements import KINDS
from argosy.targets.cpu.layout import LANES, Blocked
from argosy.targets.cpu.solution import Problem, Solution, Steps, register_solution
from argosy.targets.cpu.solutions.blocked_steps import (
    BYTES,
    blocked_images,
    finish,
    image,
    preferred_image,
    preferred_source,
    read_images,
)
from argosy.targets.lowering.accesses import DeclinedError, op_of, present

__all__ = ["BlockedChannels", "BlockedConcat", "BlockedElementwise", "BlockedPool", "BlockedReduction"]

_PLAIN = "no operand lies blocked"


def _whole(problem: Problem) -> Part:
    return Part(problem.module, tuple(range(len(problem.module.parameters))))


def _rest(problem: Problem) -> Part:
    """What follows the anchor."""
    return part_of(problem.module, [problem.module.results[0]], {problem.anchor_instruction})


class _BlockedStep(Solution):
    """What is taken where an operand lies blocked already."""

    rank = 1

    def applies(self, problem: Problem) -> str:
        return self.why(problem) if any(problem.layouts) else _PLAIN

    def why(self, problem: Problem) -> str:
        """Why it can't be done to blocked images; empty where it can."""
        try:
            return self.declines(problem)
        except DeclinedError as declined:
            return str(declined)

    def declines(self, problem: Problem) -> str:
        """The same, of each solution; may raise DeclinedError too."""
        raise NotImplementedError


@register_solution
class BlockedElementwise(_BlockedStep):
    """Pixel by pixel."""

    name = "blocked elementwise"
    anchors = frozenset({""})

    def declines(self, problem: Problem) -> str:
        return "" if any(problem.layouts[index] for index in images_of(problem.module, None)) else _PLAIN

    def prefers(self, problem: Problem, index: int) -> Blocked | None:
        if problem.module.results[0].rank < 3:
            return None
        try:
            return preferred_image(_whole(problem), None, index)
        except DeclinedError:
            return None

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        del config
        reads, images = blocked_images(steps, _whole(problem), None)
        result = problem.module.results[0]
        layout = steps.wanted() or Blocked.bare(result.rank - 2, result.dtype)
        finish(steps, problem.module, blocked_elementwise(problem.module, images, layout), reads, layout)


@register_solution
class BlockedPool(_BlockedStep):
    """A loop over each window, sixteen channels at a time."""

    name = "blocked pool"
    anchors = frozenset({"pool"})

    def declines(self, problem: Problem) -> str:
        anchor = problem.anchor_instruction
        op = op_of(anchor, Pool)
        if op.kind == "lp" or op.with_indices:
            return "it is a norm, or gives positions too"
        kind = present(anchor, 0).dtype
        if kind is not FLOAT32 and not (kind in BYTES and op.kind == "max"):
            return f"there are no vectors of {kind} for it"
        images_of(_rest(problem).module, anchor.result())
        return ""

    def prefers(self, problem: Problem, index: int) -> Blocked | None:
        if self.why(problem):
            return None
        anchor = problem.anchor_instruction
        bare = Blocked.bare(anchor.result().rank - 2, present(anchor, 0).dtype)
        liked = preferred_source(problem.module, present(anchor, 0), index, bare)
        if isinstance(liked, Blocked):
            return liked
        return preferred_image(_rest(problem), anchor.result(), index)

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        del config
        anchor = problem.anchor_instruction
        rank, root = anchor.result().rank, problem.module.results[0]
        bare = Blocked.bare(rank - 2, present(anchor, 0).dtype)
        buffer, source = image(steps, problem.module, present(anchor, 0), bare, problem.layouts)
        rest = _rest(problem)
        reads, images = blocked_images(steps, rest, anchor.result())
        layout = steps.wanted() or Blocked.bare(rank - 2, root.dtype)
        kernel = blocked_pool(rest.module, anchor, source, images, layout)
        finish(steps, problem.module, kernel, [*reads, buffer], layout)


@register_solution
class BlockedReduction(_BlockedStep):
    """Whole planes to one number for each channel."""

    name = "blocked reduction"
    anchors = frozenset({"reduce"})

    def declines(self, problem: Problem) -> str:
        return "" if any(problem.layouts[index] for index in self._images(problem)) else _PLAIN

    def _images(self, problem: Problem) -> dict[int, tuple[int | None, ...]]:
        """How what is reduced reads parameters of the op. Raises DeclinedError where it is no planes of images."""
        anchor = problem.anchor_instruction
        source = present(anchor, 0)
        if source.dtype is not FLOAT32 or not whole_planes(anchor):
            raise DeclinedError("it does not reduce planes of float32")
        part = part_of(problem.module, [source])
        return {part.parameters[number]: axes for number, axes in images_of(part.module, None).items()}

    def prefers(self, problem: Problem, index: int) -> Blocked | None:
        try:
            wanted = self._images(problem)
        except DeclinedError:
            return None
        if index not in wanted:
            return None
        rank, kind = present(problem.anchor_instruction, 0).rank, problem.module.parameters[index].result().dtype
        return Blocked.bare(rank - 2, kind) if wanted[index] == tuple(range(rank)) else None

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        del config
        reads, images = read_images(steps, _whole(problem), self._images(problem))
        steps.call(blocked_reduction(problem.module, problem.anchor_instruction, images), reads, [steps.result()])


@register_solution
class BlockedConcat(_BlockedStep):
    """Images joined along their channels, block by block."""

    name = "blocked concat"
    anchors = frozenset({"concat"})

    def declines(self, problem: Problem) -> str:
        anchor = problem.anchor_instruction
        result = anchor.result()
        if result.rank < 3 or normalize_axis(op_of(anchor, Concat).axis, result.rank) != 1:
            return "it does not join channels"
        operands = [operand for operand in anchor.operands if operand is not None]
        if result.dtype not in KINDS:
            return f"there are no vectors of {result.dtype}"
        if any(not isinstance(operand.instruction.op, Parameter) for operand in operands):
            return "its operands are made in place"
        counts = [operand.shape[1] for operand in operands]
        if any(not isinstance(count, int) or count % LANES for count in counts[:-1]):
            return "channels of its operands are no whole blocks"
        return ""

    def prefers(self, problem: Problem, index: int) -> Blocked | None:
        if self.why(problem):
            return None
        result = problem.anchor_instruction.result()
        return Blocked.bare(result.rank - 2, result.dtype)

    def keeps_layout(self, problem: Problem) -> bool:
        return not self.why(problem)

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        del config
        anchor = problem.anchor_instruction
        result = anchor.result()
        axes = tuple(range(result.rank))
        layout = _common(problem, steps.wanted() or _bare(result))
        operands = [present(anchor, index) for index in range(len(anchor.operands))]
        reads, images = [], {}
        for index, operand in enumerate(operands):
            at_hand = problem.layouts[index] is not None
            buffer, source = steps.blocked(index, _bare(result) if at_hand else layout)
            if source != layout and equal(result.shape[0], 1):
                # By itself it is made as the result needs it: it may then be written right into it.
                part = part_of(problem.module, [operand])
                kernel = blocked_elementwise(part.module, {"x0": Image(axes, source)}, layout)
                made = steps.temporary(layout.kind(operand.shape))
                steps.call(kernel.labelled("change_halo"), [buffer], [made])
                buffer, source = made, layout
            images[f"x{index}"] = Image(axes, source)
            reads.append(buffer)
        finish(steps, problem.module, blocked_concat(problem.module, operands, images, layout), reads, layout)


def _bare(value: Value) -> Blocked:
    return Blocked.bare(value.rank - 2, value.dtype)


def _common(problem: Problem, wanted: Blocked) -> Blocked:
    """The layout for what is joined in which most channels lie already, of those that cover what is wanted."""
    anchor = problem.anchor_instruction
    counts = [present(anchor, index).shape[1] for index in range(len(anchor.operands))]

    def channels(layout: Blocked) -> int:
        pairs = zip(problem.layouts, counts, strict=True)
        return sum(count for its, count in pairs if its == layout and isinstance(count, int))

    return max([wanted, *(its for its in problem.layouts if its is not None and its.covers(wanted))], key=channels)


@register_solution
class BlockedChannels(_BlockedStep):
    """Images of channels that lie blocked already, in another order or cut into pieces."""

    name = "blocked channels"
    anchors = frozenset({"", "split"})
    rank = 2

    def declines(self, problem: Problem) -> str:
        module = problem.module
        if any(value.rank < 3 for value in module.results):
            return "it makes no images"
        parts = [part for part in _parts(problem) if len(part.parameters) == 1 and is_view(part.module)]
        if len(parts) == len(problem.module.results) and all(gathers_channels(part.module) for part in parts):
            return ""
        return "it does more than order channels"

    def prefers(self, problem: Problem, index: int) -> Blocked | None:
        if self.why(problem):
            return None
        value = problem.module.parameters[index].result()
        return Blocked.bare(value.rank - 2, value.dtype)

    def keeps_layout(self, problem: Problem) -> bool:
        if self.why(problem):
            return False
        return all(first_of_blocks(part.module) is not None for part in _parts(problem))

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        del config
        for number, part in enumerate(_parts(problem)):
            bare = _bare(part.module.results[0])
            buffer, source = steps.blocked(part.parameters[0], bare)
            layout = steps.wanted(number) or bare
            if first_of_blocks(part.module) is not None and source.covers(layout):
                layout = source  # so that it is a piece of the operand
            kernel = gather_channels(part.module, {"x0": source}, layout)
            steps.call(kernel, [buffer], [steps.blocked_result(layout, number)])


def _parts(problem: Problem) -> list[Part]:
    """What each result is made of."""
    return [part_of(problem.module, [value]) for value in problem.module.results]
