"""What a tile of a convolution along lines reads: the image itself, or a copy of a patch of it.

A patch is `[channels][lines][pixels]` in scratch memory, zeros where it reaches over the edge of the image. With a
stride a line is cut into phases, so that the pixels under neighbouring ones of the result lie side by side.
"""

from __future__ import annotations

from argosy.ir import access as maps
from argosy.ir.dtype import FLOAT32
from argosy.ir.module import Parameter, Value
from argosy.targets.cpu.codegen.copying import lies_along
from argosy.targets.cpu.codegen.kernel import KernelWriter
from argosy.targets.cpu.codegen.line_tiles import Lines
from argosy.targets.cpu.codegen.tile import BLOCK
from argosy.targets.cpu.codegen.vector_elements import VectorElements
from argosy.targets.lowering.kernel_text import axis_name, strides_of

__all__ = ["declare_patch"]


def declare_patch(writer: KernelWriter, x: Value, lines: Lines) -> None:
    """Declare `patch`, the pixel under the first of a tile, and steps in it.

    They are `plane` from channel to channel, `step…` from line to line and `move…` from tap to tap for each axis but
    the last, and `below` from line to line of a tile. The tile is known by `i0`, `group`, the places of its outer axes,
    its lines `top` to `bottom`, its first pixel `begin`, its vectors `count` and the place of the `last`.
    """
    text, window = writer.text, lines.window
    outer = range(len(window.kernel) - 1)
    for axis in outer:
        place = "top" if axis == len(outer) - 1 else axis_name(axis + 2)
        text.line(f"const int64 origin{axis} = {place} * {window.strides[axis]} - {window.begins[axis]};")
    text.line(f"const int64 origin = begin * {window.strides[-1]} - {window.begins[-1]};")
    text.line(f"int64 plane = {lines.plane};")
    pitch = lines.pitch
    for axis in reversed(outer):
        count, _, taps = lines.patch[axis]
        text.line(f"int64 step{axis} = {pitch}, move{axis} = {pitch * taps};")
        pitch *= count
    text.line("const float32 *patch = (const float32 *)scratch;")
    if window.strides[-1] == 1 and x.dtype is FLOAT32 and isinstance(x.instruction.op, Parameter):
        with text.block(f"if ({_inside(writer, x, lines)})"):
            own = strides_of(x.shape)
            place = f"(i0 * {text.dim(x.shape[1])} + group * {lines.channels}) * plane + origin"
            text.line(f"plane = {text.dim(own[1])};")
            for axis in outer:
                text.line(
                    f"step{axis} = {text.dim(own[axis + 2])}, move{axis} = step{axis} * {window.dilations[axis]};"
                )
                place += f" + origin{axis} * step{axis}"
            text.line(f"patch = {writer.pointers[x.instruction]} + {place};")
        with text.block("else"):
            _copy(writer, x, lines)
    else:
        _copy(writer, x, lines)
    if lines.rows > 1:
        text.line(f"const int64 below = step{len(outer) - 1} * {window.strides[-2]};")


def _inside(writer: KernelWriter, x: Value, lines: Lines) -> str:
    """Whether all that a tile reads lies in the image, as C."""
    text, window = writer.text, lines.window
    reach = [(taps - 1) * dilation for taps, dilation in zip(window.kernel, window.dilations, strict=True)]
    tests = [f"origin >= 0 && origin + last + {BLOCK + reach[-1]} <= {text.dim(x.shape[-1])}"]
    for axis, far in enumerate(reach[:-1]):
        more = ""
        if axis == len(reach) - 2:
            more = f" + (max_int64(bottom - top, {lines.rows}) - 1) * {window.strides[axis]}"
        tests.append(f"origin{axis} >= 0 && origin{axis}{more} + {far} < {text.dim(x.shape[axis + 2])}")
    return " && ".join(tests)


def _copy(writer: KernelWriter, x: Value, lines: Lines) -> None:
    """Copy a patch, line by line."""
    text = writer.text
    text.line("float32 *to = (float32 *)scratch;")
    with text.loop("channel", "0", str(lines.channels)):
        text.line(f"const int64 i1 = group * {lines.channels} + channel;")
        heads = [
            f"for (int64 p{axis} = 0; p{axis} < {count}; ++p{axis})" for axis, (count, _, _) in enumerate(lines.patch)
        ]
        for head in heads[:-1]:
            text.line(head)
        with text.block(heads[-1] if heads else ""):
            inside = []
            for axis, (_, apart, _) in enumerate(lines.patch):
                name = axis_name(axis + 2)
                text.line(f"const int64 {name} = origin{axis} + p{axis} * {apart};")
                inside.append(f"{name} >= 0 && {name} < {text.dim(x.shape[axis + 2])}")
            text.line("float32 *restrict line = to;")
            text.line(f"to += {lines.pitch};")
            if inside:
                with text.block(f"if (!({' && '.join(inside)}))"):
                    text.line(f"for (int64 i = 0; i < {lines.pitch}; ++i) line[i] = 0;")
                    text.line("continue;")
            (_copy_line if lines.window.strides[-1] == 1 else _copy_phases)(writer, x, lines)


def _copy_line(writer: KernelWriter, x: Value, lines: Lines) -> None:
    """The pixels of a line of the image from place `origin` on."""
    text, name = writer.text, axis_name(x.rank - 1)
    size = text.dim(x.shape[-1])
    text.line(f"const int64 low = max_int64(0, min_int64(-origin, {lines.pitch}));")
    text.line(f"const int64 high = max_int64(low, min_int64({size} - origin, {lines.pitch}));")
    text.line("for (int64 i = 0; i < low; ++i) line[i] = 0;")
    text.line(f"for (int64 i = high; i < {lines.pitch}; ++i) line[i] = 0;")
    if lies_along(writer.module, x, x.rank - 1):
        with text.block(f"if (high - low >= {BLOCK})"):
            with text.block(f"for (int64 done = low; done < high; done += {BLOCK})"):
                text.line(f"const int64 pixel = min_int64(done, high - {BLOCK}), {name} = origin + pixel;")
                text.line(f"store_float32x16(line + pixel, {_vector(writer, x)});")
            text.line("continue;")
    with text.loop("pixel", "low", "high"), writer.elements.scope():
        text.line(f"const int64 {name} = origin + pixel;")
        text.line(f"line[pixel] = (float32){writer.elements.of(x, maps.identity(x.shape))};")


def _copy_phases(writer: KernelWriter, x: Value, lines: Lines) -> None:
    """The pixels of a line phase by phase; of two phases thirty-two at a time."""
    text, name, stride = writer.text, axis_name(x.rank - 1), lines.window.strides[-1]
    size = text.dim(x.shape[-1])
    with text.block(f"for (int64 done = 0; done < {lines.phase}; done += {BLOCK})"):
        if stride == 2 and lies_along(writer.module, x, x.rank - 1):
            with text.block(f"if (origin + 2 * done >= 0 && origin + 2 * done + {2 * BLOCK} <= {size})"):
                text.line("float32x16 v[2];")
                for half in range(2):
                    with text.block(""):
                        text.line(f"const int64 {name} = origin + 2 * done + {half * BLOCK};")
                        text.line(f"v[{half}] = {_vector(writer, x)};")
                for phase in range(2):
                    picked = ", ".join(str(2 * lane + phase) for lane in range(BLOCK))
                    value = f"__builtin_shufflevector(v[0], v[1], {picked})"
                    text.line(f"store_float32x16(line + {phase * lines.phase} + done, {value});")
                text.line("continue;")
        with text.loop("phase", "0", str(stride)), text.loop("pixel", "done", f"done + {BLOCK}"):
            text.line(f"const int64 {name} = origin + pixel * {stride} + phase;")
            text.line(f"float32 *restrict at = line + phase * {lines.phase} + pixel;")
            text.line(f"if ({name} < 0 || {name} >= {size}) {{ *at = 0; continue; }}")
            with writer.elements.scope():
                text.line(f"*at = (float32){writer.elements.of(x, maps.identity(x.shape))};")


def _vector(writer: KernelWriter, x: Value) -> str:
    """Sixteen pixels of a line."""
    return VectorElements(writer.text, writer.pointers, x.rank - 1).of(x, maps.identity(x.shape))
