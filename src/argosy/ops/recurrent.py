"""Recurrent layers: ONNX RNN, GRU and LSTM. One matrix product for the inputs of all steps, then a loop over steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from argosy.errors import ModelError
from argosy.ir.dim import DimLike
from argosy.ir.dtype import Array, dtype_of
from argosy.ir.module import Value
from argosy.ir.op import Op, register
from argosy.ir.types import TensorType, Type
from argosy.ops.demands import differ
from argosy.ops.numpy_scalar import convert
from argosy.ops.operands import present

__all__ = ["ACTIVATIONS", "GATES", "Activation", "Recurrent"]

GATES: Final = {"rnn": 1, "gru": 3, "lstm": 4}
"""How many gates each kind has: the rows of its weights in multiples of the hidden size."""


@dataclass(frozen=True, slots=True)
class Activation:
    """An activation of x, alpha and beta; the defaults of these two, None where it does not take them."""

    function: Callable[[Array, Any, Any], Array]
    alpha: float | None = None
    beta: float | None = None


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


ACTIVATIONS: Final[dict[str, Activation]] = {
    "relu": Activation(lambda x, _a, _b: np.maximum(x, 0)),
    "tanh": Activation(lambda x, _a, _b: np.tanh(x)),
    "sigmoid": Activation(lambda x, _a, _b: _sigmoid(x)),
    "softsign": Activation(lambda x, _a, _b: x / (1 + np.abs(x))),
    "softplus": Activation(lambda x, _a, _b: np.logaddexp(x, x.dtype.type(0))),
    "affine": Activation(lambda x, a, b: a * x + b, 1.0, 0.0),
    "leakyrelu": Activation(lambda x, a, _b: np.where(x < 0, a * x, x), 0.01),
    "thresholdedrelu": Activation(lambda x, a, _b: np.where(x > a, x, x * 0), 1.0),
    "scaledtanh": Activation(lambda x, a, b: a * np.tanh(b * x), 1.0, 1.0),
    "hardsigmoid": Activation(lambda x, a, b: np.clip(a * x + b, 0, 1), 0.2, 0.5),
    "elu": Activation(lambda x, a, _b: np.where(x < 0, a * np.expm1(x), x), 1.0),
}
"""ONNX's activations for recurrent layers, by lower-case name."""


@register
@dataclass(frozen=True, slots=True)
class Recurrent(Op):
    """A recurrent layer of `kind` rnn, gru or lstm over `x [steps, batch, input]`.

    Operands: x, w [directions, gates*hidden, input], r [directions, gates*hidden, hidden],
    [b [directions, 2*gates*hidden]], [sequence_lens [batch]], [h0 [directions, batch, hidden]], [c0],
    [peepholes [directions, 3*hidden]], [r_scale [directions, gates*hidden]], [w_scale, likewise]; the gates are
    ordered as in ONNX: lstm i o f c, gru z r h. With a scale r or w may be int8: each row is multiplied by its scale.
    Results: y [steps, directions, batch, hidden], the last h [directions, batch, hidden], for lstm the last c.
    Steps from a sequence's length on give 0 in y and leave h and c alone; a backward direction starts at the
    sequence's last step.

    `activations` (f, or f g, or f g h, for each direction in turn) have an entry in `alphas` and `betas`
    each. `clip` bounds the sums that go into the gates' activations. `input_forget` (lstm) makes the forget
    gate 1 - i; `linear_before_reset` (gru) applies the reset gate after the matrix product.
    """

    name = "rnn"
    kind: str
    direction: str
    activations: tuple[str, ...]
    alphas: tuple[float, ...]
    betas: tuple[float, ...]
    clip: float | None = None
    input_forget: bool = False
    linear_before_reset: bool = False

    @property
    def directions(self) -> int:
        """1, or 2 where the layer runs both ways."""
        return 2 if self.direction == "bidirectional" else 1

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        x, w, r = (present(operand) for operand in operands[:3])
        self._check()
        if not x.rank == w.rank == r.rank == 3:
            raise ModelError(f"X, W and R must have rank 3, found {x.type}, {w.type}, {r.type}")
        hidden = r.shape[2]
        rows = hidden * GATES[self.kind]
        names = ("X", "W", "R", "B", "sequence_lens", "initial_h", "initial_c", "P", "the scale of R", "the scale of W")
        state = (self.directions, x.shape[1], hidden)
        expected: tuple[tuple[DimLike, ...], ...] = (
            (x.shape[0], x.shape[1], w.shape[2]),
            (self.directions, rows, w.shape[2]),
            (self.directions, rows, hidden),
            (self.directions, rows * 2),
            (x.shape[1],),
            state,
            state,
            (self.directions, hidden * 3),
            (self.directions, rows),
            (self.directions, rows),
        )
        for name, operand, dims in zip(names, operands, expected, strict=False):
            if operand is None or operand.tensor.dims is None:
                continue
            pairs = zip(operand.shape, dims, strict=False)
            if operand.rank != len(dims) or any(differ(found, wanted) for found, wanted in pairs):
                raise ModelError(f"{name} is {operand.type}, expected the shape [{', '.join(map(str, dims))}]")
        sequence = TensorType(x.dtype, (x.shape[0], *state))
        last = TensorType(x.dtype, state)
        return (sequence, last, last) if self.kind == "lstm" else (sequence, last)

    def infer_unranked(self, *operands: Value | None) -> tuple[Type, ...]:
        unknown = TensorType(present(operands[0]).dtype, None)
        return (unknown,) * (3 if self.kind == "lstm" else 2)

    def _check(self) -> None:
        count = {"rnn": 1, "gru": 2, "lstm": 3}.get(self.kind)
        if count is None or self.direction not in ("forward", "reverse", "bidirectional"):
            raise ModelError(f"there is no recurrent layer {self.kind!r} with direction {self.direction!r}")
        if len(self.activations) != count * self.directions:
            raise ModelError(f"{len(self.activations)} activations are given, expected {count * self.directions}")
        for activation in self.activations:
            if activation not in ACTIVATIONS:
                raise ModelError(f"unknown activation {activation!r}, expected one of {', '.join(ACTIVATIONS)}")

    def evaluate(self, *values: Any) -> tuple[Any, ...]:
        dtype = dtype_of(values[0].dtype)
        padded = (*values, *[None] * (10 - len(values)))
        x, w, r = (value.astype(dtype.compute.numpy, copy=False) for value in values[:3])
        w, r = (
            matrix if scale is None else matrix * scale.astype(x.dtype)[:, :, None]
            for matrix, scale in ((w, padded[9]), (r, padded[8]))
        )
        b, h0, c0, peepholes = (
            None if padded[index] is None else padded[index].astype(x.dtype, copy=False) for index in (3, 5, 6, 7)
        )
        steps, batch = x.shape[:2]
        hidden = r.shape[2]
        lengths = None if padded[4] is None else np.clip(padded[4].astype(np.int64), 0, steps)
        y = np.zeros((steps, self.directions, batch, hidden), x.dtype)
        ends = []
        for direction in range(self.directions):
            backward = self.direction == "reverse" or direction == 1
            order = _order(steps, batch, lengths) if backward else None
            cell = _Cell(
                self,
                direction,
                r[direction].T.copy(),
                None if b is None else b[direction],
                None if peepholes is None else peepholes[direction],
            )
            given = x if order is None else np.take_along_axis(x, order[:, :, None], axis=0)
            sums = np.matmul(given, w[direction].T)
            zeros = np.zeros((batch, hidden), x.dtype)
            states = [zeros if state is None else state[direction] for state in (h0, c0)]
            outputs = np.zeros((steps, batch, hidden), x.dtype)
            h, c = cell.run(sums, states[0], states[1], lengths, outputs)
            y[:, direction] = outputs if order is None else np.take_along_axis(outputs, order[:, :, None], axis=0)
            ends.append((h, c))
        results = [y, np.stack([h for h, _ in ends])]
        if self.kind == "lstm":
            results.append(np.stack([c for _, c in ends]))
        return tuple(convert(result, dtype) for result in results)


def _with_parameters(name: str, alpha: Any, beta: Any) -> Callable[[Array], Array]:
    function = ACTIVATIONS[name].function
    return lambda x: function(x, alpha, beta)


def _order(steps: int, batch: int, lengths: Array | None) -> Array:
    """Which step `[step, batch]` comes at each place when every sequence is read from its end; its own inverse."""
    forward = np.arange(steps)[:, None] + np.zeros(batch, np.int64)
    if lengths is None:
        return forward[::-1]
    return np.where(forward < lengths, lengths - 1 - forward, forward)


class _Cell:
    """One direction of a layer with its weights, ready to run."""

    def __init__(
        self, op: Recurrent, direction: int, recurrent: Array, bias: Array | None, peepholes: Array | None
    ) -> None:
        self._op = op
        self._recurrent = recurrent
        hidden = recurrent.shape[0]
        rows = hidden * GATES[op.kind]
        count = len(op.activations) // op.directions
        chosen = range(direction * count, (direction + 1) * count)
        kind = recurrent.dtype.type
        self._functions = [
            _with_parameters(op.activations[index], kind(op.alphas[index]), kind(op.betas[index])) for index in chosen
        ]
        self._bias = np.zeros(2 * rows, recurrent.dtype) if bias is None else bias
        self._peepholes = None if peepholes is None else np.split(peepholes, 3)
        self._step = {"rnn": self._rnn, "gru": self._gru, "lstm": self._lstm}[op.kind]

    def run(self, sums: Array, h: Array, c: Array, lengths: Array | None, outputs: Array) -> tuple[Array, Array]:
        """Fill `outputs` step by step from the inputs' share of the gates, `sums`; the last h and c."""
        half = self._bias.size // 2
        if self._op.kind == "gru":
            # The bias of R stays apart for the hidden gate: the reset gate may scale it.
            whole = self._bias[:half].copy()
            hidden = half // 3
            whole[: 2 * hidden] += self._bias[half : half + 2 * hidden]
            sums = sums + whole
        else:
            sums = sums + (self._bias[:half] + self._bias[half:])
        for step in range(sums.shape[0]):
            new_h, new_c = self._step(sums[step], h, c)
            if lengths is None:
                h, c, outputs[step] = new_h, new_c, new_h
                continue
            running = (step < lengths)[:, None]
            h, c = np.where(running, new_h, h), np.where(running, new_c, c)
            outputs[step] = np.where(running, new_h, 0)
        return h, c

    def _clipped(self, gates: Array) -> Array:
        return gates if self._op.clip is None else np.clip(gates, -self._op.clip, self._op.clip)

    def _rnn(self, inputs: Array, h: Array, c: Array) -> tuple[Array, Array]:
        return self._functions[0](self._clipped(inputs + h @ self._recurrent)), c

    def _gru(self, inputs: Array, h: Array, c: Array) -> tuple[Array, Array]:
        f, g = self._functions
        hidden = h.shape[1]
        bias = self._bias[-hidden:]
        gates = f(self._clipped(inputs[:, : 2 * hidden] + h @ self._recurrent[:, : 2 * hidden]))
        update, reset = gates[:, :hidden], gates[:, hidden:]
        matrix = self._recurrent[:, 2 * hidden :]
        share = reset * (h @ matrix + bias) if self._op.linear_before_reset else (reset * h) @ matrix + bias
        candidate = g(self._clipped(inputs[:, 2 * hidden :] + share))
        return (1 - update) * candidate + update * h, c

    def _lstm(self, inputs: Array, h: Array, c: Array) -> tuple[Array, Array]:
        f, g, last = self._functions
        hidden = h.shape[1]
        gates = inputs + h @ self._recurrent
        i, o, forget, cell = (gates[:, part * hidden : (part + 1) * hidden] for part in range(4))
        if self._peepholes is not None:
            i, forget = i + self._peepholes[0] * c, forget + self._peepholes[2] * c
        opened = f(self._clipped(i))
        kept = 1 - opened if self._op.input_forget else f(self._clipped(forget))
        new_c = kept * c + opened * g(self._clipped(cell))
        if self._peepholes is not None:
            o = o + self._peepholes[1] * new_c
        return f(self._clipped(o)) * last(new_c), new_c
