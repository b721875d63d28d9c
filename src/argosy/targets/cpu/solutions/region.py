"""Pooling over regions of interest."""

from __future__ import annotations

from typing import Any

from argosy.ir.dtype import FLOAT64
from argosy.ir.module import Module
from argosy.ops.region import MaxRegionPool, RegionAlign
from argosy.ops.shapes import product
from argosy.targets.cpu.codegen import scalar
from argosy.targets.cpu.codegen.kernel import Kernel, chunk_count
from argosy.targets.cpu.codegen.op_kernel import OpKernel
from argosy.targets.cpu.lone_op import LoneOp
from argosy.targets.cpu.solution import Problem, Steps, register_solution
from argosy.targets.lowering.accesses import op_of

__all__ = ["MaxRegions", "RegionSamples"]


@register_solution
class RegionSamples(LoneOp):
    """For each bin a loop over channels, and over the samples in it."""

    name = "region samples"
    anchors = frozenset({"roi_align"})

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        self.call(problem, steps, _align(problem.module))


@register_solution
class MaxRegions(LoneOp):
    """The greatest element of each bin."""

    name = "max regions"
    anchors = frozenset({"max_roi_pool"})

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        self.call(problem, steps, _max_pool(problem.module))


def _align(module: Module) -> Kernel:
    kernel = OpKernel(module, [module.results[0].dtype])
    text, op = kernel.text, op_of(kernel.instruction, RegionAlign)
    x, regions = kernel.operand(0), kernel.operand(1)
    kind = scalar.compute_type(x.dtype)
    rows, columns = op.output
    shift = "0.5" if op.half_pixel else "0.0"
    scale = scalar.constant(op.scale, FLOAT64)
    text.line(f"const int64 channels = {kernel.dim(0, 1)}, height = {kernel.dim(0, 2)}, width = {kernel.dim(0, 3)};")
    with kernel.share("at", f"{kernel.dim(1, 0)} * {rows * columns}"):
        text.line(f"const int64 region = at / {rows * columns}, bin = at % {rows * columns};")
        text.line(f"const int64 image = (int64){kernel.load(2, 'region')};")
        text.line(
            f"if (image < 0 || image >= {kernel.dim(0, 0)}) {{ argosy_fail(scratch, ARGOSY_INDEX, image); return; }}"
        )
        for place, name in enumerate(("x1", "y1", "x2", "y2")):
            value = scalar.apply("convert", [kernel.load(1, f"region * 4 + {place}")], [regions.dtype], FLOAT64)
            text.line(f"const float64 {name}_ = {value} * {scale} - {shift};")
        text.line("if (!(x1_ - x1_ + (y1_ - y1_) + (x2_ - x2_) + (y2_ - y2_) == 0)) {")
        text.line("  argosy_fail(scratch, ARGOSY_VALUE, region); return;")
        text.line("}")
        for first, last, bins, name in (("y1_", "y2_", rows, "row"), ("x1_", "x2_", columns, "column")):
            length = f"{last} - {first}" if op.half_pixel else f"({last} - {first} > 1.0 ? {last} - {first} : 1.0)"
            text.line(f"const float64 {name}_size = ({length}) / {bins};")
            count = str(op.samples) if op.samples else f"max_int64((int64)__builtin_elementwise_ceil({name}_size), 0)"
            text.line(f"const int64 {name}_count = {count};")
            index = f"bin / {columns}" if name == "row" else f"bin % {columns}"
            text.line(f"const float64 {name}_start = {first} + (float64)({index}) * {name}_size;")
        with text.loop("channel", "0", "channels"):
            kernel.code(_samples(kernel, op.kind, kind))
            at = f"(region * channels + channel) * {rows * columns} + bin"
            text.line(kernel.store(0, x.dtype, at, f"({kind})result"))
    work = product(module.results[0].shape) * 16
    return kernel.kernel(chunk_count(work, regions.shape[0] * (rows * columns)))


def _samples(kernel: OpKernel, pooling: str, kind: str) -> str:
    """The loops over the samples of one bin in one plane: `result`."""
    corners = []
    for row in ("lower", "upper"):
        for column in ("lower", "upper"):
            value = kernel.load(0, f"plane + r.{row} * width + c.{column}")
            if pooling == "average":
                corners.append(f"result += {value} * (r.{row}_weight * c.{column}_weight);")
            else:
                weighted = f"{value} * ({kind})(r.{row}_weight * c.{column}_weight)"
                corners.append(
                    f"{{ const {kind} v = {weighted}; result = met && !(v > result) ? result : v; met = true; }}"
                )
    average = "result /= (float64)max_int64(row_count * column_count, 1);" if pooling == "average" else ""
    lines = "\n    ".join(corners)
    return f"""
const int64 plane = (image * channels + channel) * height * width;
{"float64" if pooling == "average" else kind} result = 0;
bool met = false;
(void)met;
if (height * width != 0)
  for (int64 i = 0; i < row_count; ++i) for (int64 j = 0; j < column_count; ++j) {{
    const float64 y = row_start + ((float64)i + 0.5) * row_size / (float64)row_count;
    const float64 x = column_start + ((float64)j + 0.5) * column_size / (float64)column_count;
    const struct region_sample r = sample_region(y, height), c = sample_region(x, width);
    {lines}
  }}
{average}"""


def _max_pool(module: Module) -> Kernel:
    kernel = OpKernel(module, [module.results[0].dtype])
    text, op = kernel.text, op_of(kernel.instruction, MaxRegionPool)
    x, regions = kernel.operand(0), kernel.operand(1)
    kind = scalar.compute_type(x.dtype)
    rows, columns = op.output
    scale = scalar.constant(op.scale, FLOAT64)
    text.line(f"const int64 channels = {kernel.dim(0, 1)}, height = {kernel.dim(0, 2)}, width = {kernel.dim(0, 3)};")
    with kernel.share("at", f"{kernel.dim(1, 0)} * {rows * columns}"):
        text.line(
            f"const int64 region = at / {rows * columns}, row = at / {columns} % {rows}, column = at % {columns};"
        )
        names = ("image", "x1_", "y1_", "x2_", "y2_")
        for number, name in enumerate(names):
            value = scalar.apply("convert", [kernel.load(1, f"region * 5 + {number}")], [regions.dtype], FLOAT64)
            text.line(f"const int64 {name} = (int64){f'round_away({value} * {scale})' if number else value};")
        text.line(
            f"if (image < 0 || image >= {kernel.dim(0, 0)}) {{ argosy_fail(scratch, ARGOSY_INDEX, image); return; }}"
        )
        for first, last, count, place, size in (
            ("y1_", "y2_", rows, "row", "height"),
            ("x1_", "x2_", columns, "column", "width"),
        ):
            text.line(f"const float64 {place}_size = (float64)max_int64({last} - {first} + 1, 1) / {count};")
            for edge, index, rounding in (("begin", place, "floor"), ("end", f"({place} + 1)", "ceil")):
                inner = f"(int64)__builtin_elementwise_{rounding}((float64){index} * {place}_size)"
                text.line(f"const int64 {place}_{edge} = clamp_int64({inner} + {first}, 0, {size});")
        with text.loop("channel", "0", "channels"):
            text.line(f"{kind} best = 0; bool met = false;")
            with text.loop("y", "row_begin", "row_end"), text.loop("x", "column_begin", "column_end"):
                value = kernel.load(0, "((image * channels + channel) * height + y) * width + x")
                text.line(f"const {kind} v = {value};")
                text.line("best = !met || v > best || v != v ? v : best; met = true;")
            at = f"((region * channels + channel) * {rows} + row) * {columns} + column"
            text.line(kernel.store(0, x.dtype, at, "best"))
    work = product(module.results[0].shape) * 16
    return kernel.kernel(chunk_count(work, regions.shape[0] * (rows * columns)))
