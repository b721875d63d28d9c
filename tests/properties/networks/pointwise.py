"""Templates of what goes element by element: functions, arithmetic, what leaves its operand as it is, decisions, casts.

What decides (rounding, comparing) is drawn where no number is near the threshold: a difference of rounding must not
become one of whole units.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from argosy.ir.dtype import Array
from tests.properties.networks.network import Network, Template, Value
from tests.properties.onnx_graphs.graph import ELEMENTS, NotDrawn

__all__ = ["MARGIN", "TEMPLATES", "clear", "partner"]

MARGIN: Final = 1e-3
"""How far from a threshold numbers are."""
_FUNCTIONS: Final = (
    *("Relu", "Relu", "Sigmoid", "Tanh", "Erf", "Softplus", "Softsign", "Abs", "Neg", "Sin", "Cos", "Atan", "Exp"),
    *("HardSwish", "Mish", "Gelu", "Elu", "Selu", "Celu", "LeakyRelu", "HardSigmoid", "Swish"),
)


def clear(values: Array, *, of: float = 0.0, step: float | None = None) -> bool:
    """Whether all values are apart from a threshold, or from all its multiples `step` apart."""
    distance = values.astype(np.float64) - of
    if step is not None:
        distance = (distance + step / 2) % step - step / 2
    return bool((np.abs(distance) > MARGIN * (step or 1)).all())


def reals(network: Network, ranks: Sequence[int] = (0, 1, 2, 3, 4, 5)) -> Value:
    return network.pick(network.real, network.real, "float32", ranks=ranks)


def function(network: Network) -> None:
    op = network.one(*_FUNCTIONS)
    network.since(op)
    options: dict[str, Any] = {}
    if op in ("Elu", "Celu", "LeakyRelu"):
        options["alpha"] = network.one(None, 0.3)
    if op == "Gelu":
        options["approximate"] = network.one(None, "tanh")
    network.node(op, reals(network), **options)


def guarded(network: Network) -> None:
    """A function with a domain, behind what makes its operand fit."""
    x = reals(network)
    kind = network.one("Sqrt", "Log", "Reciprocal", "Pow", "Asin")
    if kind == "Asin":
        within = network.node("Mul", network.node("Tanh", x), number(network, x, 0.8))
        network.node(network.one("Asin", "Acos", "Atanh"), within)
        return
    positive = network.node("Add", network.node(network.one("Abs", "Relu", "Sigmoid"), x), number(network, x, 0.5))
    if kind == "Pow":
        network.node("Pow", positive, number(network, x, network.one(0.5, -1.0, 2.0, 1.5, 3.0)))
    else:
        network.node(kind, positive)


def number(network: Network, x: Value, value: float) -> Value:
    """A constant of the type of `x`: a scalar, or one element."""
    return network.constant(np.full(network.one((), (1,), (1, 1)) if x.rank > 1 else (), value, x.dtype))


def partner(network: Network, x: Value) -> Value:
    """A value that broadcasts with `x`: one that is there, or a constant."""
    there = [
        value for value in network.values
        if value.dtype == x.dtype and value.name != x.name and _fits(value, x)
    ]  # fmt: skip
    if there and network.flag(0.6):
        return network.one(*there)
    kept = x.dims[network.rng.randrange(x.rank + 1) :]
    return network.weight(x.dtype, [dim[0] if len(set(dim)) == 1 and network.flag(0.75) else 1 for dim in kept])


def _fits(left: Value, right: Value) -> bool:
    """Whether they broadcast at every batch size, and not by chance of one."""
    return all(a == b or {1} in (set(a), set(b)) for a, b in zip(left.dims[::-1], right.dims[::-1], strict=False))


def arithmetic(network: Network) -> None:
    x = reals(network)
    op = network.one("Add", "Add", "Sub", "Mul", "Mul", "Div", "Max", "Min", "Mean", "Sum", "PRelu")
    y = partner(network, x)
    if op == "Div":
        y = network.node("Add", network.node("Abs", y), number(network, y, 0.7))
    if op == "PRelu":
        y = network.weight(x.dtype, () if x.varies() else x.arrays[0].shape[-1:])
    operands = [x, y] if network.flag() or op in ("PRelu", "Div") else [y, x]
    if op in ("Mean", "Sum", "Max", "Min") and network.flag(0.4):
        operands.append(partner(network, x))
    network.node(op, *operands)


def whole(network: Network) -> None:
    """Arithmetic of integers."""
    x = network.pick("int64", "int32", "int64", "uint8", "int8")
    op = network.one("Add", "Sub", "Mul", "Div", "Mod", "Min", "Max", "Abs", "Neg", "BitwiseAnd", "BitwiseXor", "Clip")
    network.since(op)
    if op in ("Abs", "Neg"):
        network.node(op, x)
    elif op == "Clip":
        network.node(op, x, network.constant(np.array(0, x.dtype)), network.constant(np.array(3, x.dtype)))
    elif op in ("Div", "Mod"):
        network.node(op, x, network.constant(np.array(network.one(2, 3, 5), x.dtype)))
    else:
        network.node(op, x, partner(network, x))


def bounded(network: Network) -> None:
    x = reals(network)
    low, high = number(network, x, -0.5), number(network, x, 0.75)
    if network.flag():
        scalars = [network.constant(np.array(bound, x.dtype)) for bound in (-0.5, 0.75)]
        network.node("Clip", x, *network.one(scalars, scalars[:1], [None, scalars[1]]))
    else:
        network.node("Min", network.node("Max", x, low), high)


def unchanged(network: Network) -> None:
    """What compilers leave out, or do at once."""
    x = reals(network)
    zero, one, two, half = (number(network, x, value) for value in (0.0, 1.0, 2.0, 0.5))
    way = network.rng.randrange(12)
    if way < 6:
        op, constant = [("Add", zero), ("Mul", one), ("Sub", zero), ("Div", one), ("Pow", one), ("Mul", zero)][way]
        network.node(op, x, constant)
    elif way == 6:
        network.node("Mul", network.node("Mul", x, two), half)
    elif way == 7:
        network.node("Neg", network.node("Neg", x))
    elif way == 8:
        network.node(network.one("Identity", "Dropout"), x)
    elif way == 9:
        network.node("Cast", x, to=ELEMENTS[x.dtype])
    elif way == 10:
        wide = "float64" if x.dtype == "float32" else "float32"
        network.node("Cast", network.node("Cast", x, to=ELEMENTS[wide]), to=ELEMENTS[x.dtype])
    else:
        y = partner(network, x)
        network.node("Add", network.node("Mul", x, y), network.node("Mul", y, x))


def chain(network: Network) -> None:
    """Some functions in a row, with arithmetic between, that read each other only."""
    x = reals(network)
    for _ in range(network.one(2, 3, 5)):
        if network.flag():
            x = network.node(network.one("Relu", "Sigmoid", "Tanh", "Neg", "Abs", "Softsign"), x)
        else:
            x = network.node(network.one("Add", "Mul", "Sub"), x, partner(network, x))


def rounding(network: Network) -> None:
    op = network.one("Floor", "Ceil", "Round", "Sign")
    of = {"Round": 0.5, "Sign": 0.0}.get(op, 0.0)
    x = network.pick(network.real, "float32", where=lambda value: value.all(
        lambda array: clear(array, of=of, step=None if op == "Sign" else 1.0)))  # fmt: skip
    network.node(op, x)


def decision(network: Network) -> None:
    """A comparison, and what follows it: a choice, logic, or a number."""
    op = network.one("Less", "Greater", "LessOrEqual", "GreaterOrEqual", "Equal")
    x = network.pick(network.real, "float32", "int64", "int64")
    y = partner(network, x)
    for left, right in zip(x.arrays, y.arrays, strict=True):
        if x.dtype != "int64" and not clear(left.astype(np.float64) - right):
            raise NotDrawn
    condition = network.node(op, x, y)
    if network.flag(0.6):
        choices = [value for value in network.values if value.dtype == x.dtype and _fits(value, condition)]
        network.node("Where", condition, network.one(x, *choices), partner(network, x))


def logic(network: Network) -> None:
    x = network.pick("bool")
    if network.flag(0.3):
        network.node("Not", x)
    elif network.flag(0.7):
        network.node(network.one("And", "Or", "Xor"), x, partner(network, x))
    else:
        y = network.pick(network.real, "int64", where=lambda value: _fits(value, x))
        network.node("Where", x, y, partner(network, y))


def cast(network: Network) -> None:
    target = network.one("float32", "float16", "float64", "int64", "int32", "bool", "uint8", "int8", network.real)
    x = network.pick("float32", "float16", "float64", "int64", "int32", "bool", "uint8", "int8")
    if np.dtype(x.dtype).kind == "f" and np.dtype(target).kind in "biu":
        # What becomes of a float that an integer type does not hold, the standard leaves open.
        low = 0 if np.dtype(target).kind == "u" else -100
        if not x.all(lambda array: (array > low) & (array < 100)) or not x.all(lambda array: clear(array, step=1.0)):
            raise NotDrawn
    elif np.dtype(target).itemsize == 1 and target != "bool" and not x.all(lambda array: np.abs(array) < 100):
        raise NotDrawn  # wrapping is defined, but then nothing is left to compare in what follows
    network.node("Cast", x, to=ELEMENTS[target])


TEMPLATES: Final[dict[Template, int]] = {
    function: 8,
    guarded: 3,
    arithmetic: 10,
    whole: 3,
    bounded: 2,
    unchanged: 4,
    chain: 4,
    rounding: 1,
    decision: 3,
    logic: 2,
    cast: 3,
}
"""Templates, and how often each is drawn."""
