"""The engine: what is matched, what replacements inherit, that it ends and costs little."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest

from argosy.errors import InternalError, ModelError
from argosy.ir import Builder, Module, Symbol, Value, symbol_dim
from argosy.ir.interpreter import Interpreter
from argosy.ir.op import Env
from argosy.ir.validate import validate
from argosy.ops.control import If
from argosy.ops.dim_values import DimValues, Shape
from argosy.ops.pointwise import Pointwise
from argosy.ops.view import Reshape, Squeeze, Transpose
from argosy.rewrite import Rewritten, Rule, RuleSet, Trace, remove_dead_code, rewrite, rule
from argosy.rewrite.pattern import any_, constant, head, one_of, op, pointwise
from argosy.rewrite.rebuild import Rebuild, namer_of


@rule(pointwise("neg", pointwise("neg", any_("x"))))
def cancel(x: Value) -> Rewritten:
    """--x = x"""
    return x


@rule(pointwise("sqrt", pointwise("exp", any_("x")).used_once()))
def halve(build: Builder, x: Value) -> Rewritten:
    """sqrt(exp(x)) = exp(abs(x))"""
    return build.pointwise("exp", build.pointwise("abs", x))


@rule(pointwise("add", any_("x"), constant("c", uniform=True)))
def decline(c: Value) -> Rewritten:
    """x + c = nothing"""
    return f"{c.constant.item() if c.constant else None} is not it"


def one_input() -> tuple[Builder, Value]:
    build = Builder()
    return build, build.tensor_parameter("x", "float32", ["N", 4])


def ops(module: Module) -> list[str]:
    return [head(instruction).removeprefix("pointwise:") for instruction in module.instructions]


def test_nothing_to_do_gives_the_same_module() -> None:
    build, x = one_input()
    module = build.module({"y": build.pointwise("exp", x)})
    assert rewrite(module, RuleSet((cancel, halve))) is module


def test_a_replacement_takes_over_source_and_names() -> None:
    build, x = one_input()
    inner = build.pointwise("exp", x, names=["e"], source="Exp")
    module = build.module({"y": build.pointwise("sqrt", inner, names=["s"], source="Sqrt")})
    first, second = rewrite(module, RuleSet((halve,))).instructions
    assert (first.source, second.source) == ("Sqrt", "Sqrt")
    assert second.names == ("s",)


def test_uses_are_counted_as_they_fall() -> None:
    build, x = one_input()
    shared = build.pointwise("exp", x)
    other = build.pointwise("neg", build.pointwise("neg", build.pointwise("neg", build.pointwise("neg", shared))))
    module = build.module({"y": build.pointwise("sqrt", shared), "z": other})
    assert rewrite(module, RuleSet((cancel, halve))).results[1].instruction is shared.instruction
    assert ops(rewrite(module, RuleSet((cancel, halve)))) == ["exp", "sqrt"], "exp is a result too"
    module = build.module({"y": build.pointwise("sqrt", shared)})
    assert ops(rewrite(module, RuleSet((cancel, halve)))) == ["abs", "exp"], "the dead chain counts for nothing"


def test_commutative_operands_match_in_either_order() -> None:
    build, x = one_input()
    two = build.constant(np.float32(2))
    module = build.module({"y": build.pointwise("add", two, x), "z": build.pointwise("add", x, two)})
    trace = Trace()
    assert rewrite(module, RuleSet((decline,)), trace=trace) is module
    assert [event.reason for event in trace.declined] == ["2.0 is not it"]
    assert str(trace.declined[0]) == "pointwise: decline declined: 2.0 is not it"


def test_a_name_meets_one_value_only() -> None:
    @rule(pointwise("mul", any_("x"), any_("x")))
    def square(build: Builder, x: Value) -> Rewritten:
        """x * x = abs(x)"""
        return build.pointwise("abs", x)

    build, x = one_input()
    other = build.tensor_parameter("o", "float32", ["N", 4])
    module = build.module({"y": build.pointwise("mul", x, other), "z": build.pointwise("mul", x, x)})
    assert ops(rewrite(module, RuleSet((square,)))) == ["mul", "abs"]


def test_alternatives_match_any_of_theirs() -> None:
    @rule(pointwise("neg", one_of(pointwise("abs", any_("x")), op(Transpose, any_("x")))))
    def strip(build: Builder, x: Value) -> Rewritten:
        """-abs(x) = sign(x), -transpose(x) = sign(x)"""
        return build.pointwise("sign", x)

    build, x = one_input()
    module = build.module({"y": build.pointwise("neg", build.pointwise("abs", x))})
    assert ops(rewrite(module, RuleSet((strip,)))) == ["sign"]


def test_a_rule_that_changes_the_type_declines() -> None:
    @rule(op(Transpose, any_("x")))
    def drop(x: Value) -> Rewritten:
        """transpose(x) = x, wrongly"""
        return x

    build, x = one_input()
    module = build.module({"y": build.add(Transpose((1, 0)), x)})
    trace = Trace()
    assert rewrite(module, RuleSet((drop,)), trace=trace) is module
    assert "type would change from float32[4, N] to float32[N, 4]" in trace.declined[0].reason


def test_rules_without_end_are_named() -> None:
    @rule(pointwise("abs", any_("x")))
    def there(build: Builder, x: Value) -> Rewritten:
        """abs(x) = sign(x)"""
        return build.pointwise("sign", x)

    @rule(pointwise("sign", any_("x")))
    def back(build: Builder, x: Value) -> Rewritten:
        """sign(x) = abs(x)"""
        return build.pointwise("abs", x)

    build, x = one_input()
    module = build.module({"y": build.pointwise("abs", x, source="Abs_1")})
    with pytest.raises(InternalError, match="Abs_1.*without end: (there, back|back, there)"):
        rewrite(module, RuleSet((there, back)))


def test_a_rule_must_not_build_on_what_it_replaces() -> None:
    @rule(pointwise("abs", any_("x")).bind("root"))
    def wrap(build: Builder, root: Value) -> Rewritten:
        """abs(x) = neg(abs(x))"""
        return build.pointwise("neg", root)

    build, x = one_input()
    with pytest.raises(InternalError, match="wrap builds on what it replaces"):
        rewrite(build.module({"y": build.pointwise("abs", x)}), RuleSet((wrap,)))


def test_a_rule_takes_only_what_its_pattern_binds() -> None:
    with pytest.raises(InternalError, match="takes y"):

        @rule(pointwise("abs", any_("x")))
        def wrong(y: Value) -> Rewritten:
            """abs(x) = y"""
            return y


def test_a_condition_declines_before_anything_is_built() -> None:
    def ranked_two(x: Value) -> str | None:
        return None if x.rank == 2 else f"the rank is {x.rank}"

    @rule(pointwise("abs", any_("x")), when=ranked_two)
    def flip(build: Builder, x: Value) -> Rewritten:
        """abs(x) = sign(x)"""
        return build.pointwise("sign", x)

    build, x = one_input()
    deep = build.tensor_parameter("deep", "float32", [1, 2, 3])
    module = build.module({"y": build.pointwise("abs", x), "z": build.pointwise("abs", deep)})
    trace = Trace()
    assert ops(rewrite(module, RuleSet((flip,)), trace=trace)) == ["sign", "abs"]
    assert [event.reason for event in trace.declined] == ["the rank is 3"]


def test_rule_sets_add_and_refuse_twins() -> None:
    assert (RuleSet((cancel,)) + RuleSet((halve,))).rules == (cancel, halve)
    with pytest.raises(InternalError, match="cancel"):
        RuleSet((cancel,)) + RuleSet((cancel,))


def test_bodies_are_rewritten_too() -> None:
    def branch(name: str) -> Module:
        inner = Builder(name)
        x = inner.tensor_parameter("x", "float32", ["N", 4])
        return inner.module({"y": inner.pointwise("neg", inner.pointwise("neg", x))})

    build, x = one_input()
    flag = build.tensor_parameter("flag", "bool", [])
    module = build.module({"y": build.add(If(branch("then"), branch("else")), flag, x, x)})
    after = rewrite(module, RuleSet((cancel,)))
    validate(after)
    assert [len(body.instructions) for body in after.instructions[0].op.modules()] == [0, 0]


def test_dead_code_keeps_what_defines_a_symbol() -> None:
    build, x = one_input()
    shape = build.tensor_parameter("shape", "int64", [2])
    reshaped = build.add(Reshape(), x, shape)
    size = build.add(DimValues((reshaped.shape[0],)))
    build.pointwise("exp", reshaped)
    after = remove_dead_code(build.module({"size": size}))
    assert [instruction.op.name for instruction in after.instructions] == ["reshape", "dims"]
    validate(after)


def test_a_better_known_symbol_is_replaced_where_it_occurs() -> None:
    """The rows of a reshape get a name while they are unknown; once they are known, the name must go."""
    build, x = one_input()
    shape = build.tensor_parameter("shape", "int64", [2])
    reshaped = build.add(Reshape(), x, shape)
    rows = reshaped.shape[0]
    module = build.module({"y": build.pointwise("exp", reshaped), "n": build.add(DimValues((rows * 2,)))})

    class Known(Rebuild):
        def visit(self, instruction: object) -> None:
            kept = self.keep(instruction)  # type: ignore[arg-type]
            if kept is not None and isinstance(kept.op, Reshape):
                n = symbol_dim(Symbol("N"))
                self.replace(kept, self.tape.add_all(Reshape((2 * n, 2)), kept.operands[0]))

    after = remove_dead_code(Known(module, namer_of(module)).run())
    validate(after)
    assert str(after.results[0].type) == "float32[2*N, 2]"
    dims = after.results[1].instruction.op
    assert isinstance(dims, DimValues)
    assert str(dims.values[0]) == "4*N"


def chain(count: int) -> Module:
    build, value = one_input()
    for index in range(count // 4):
        value = build.pointwise("neg", build.pointwise("neg", value))
        value = build.pointwise("sqrt", build.pointwise("exp", value), source=f"node {index}")
    return build.module({"y": value})


def test_cost_is_linear() -> None:
    """Ten times the instructions cost about ten times the CPU time; the bound leaves room for noise."""
    seconds = []
    for count in (4_000, 40_000):
        module = chain(count)
        begin = time.process_time()
        after = rewrite(module, RuleSet((cancel, halve)))
        seconds.append(time.process_time() - begin)
        assert len(after.instructions) == count // 2
    assert seconds[1] < 25 * max(seconds[0], 0.05)


def test_shape_is_no_pointwise_pattern() -> None:
    build, x = one_input()
    sizes = build.add(Shape(), x)
    assert head(sizes.instruction) == "shape"
    assert head(build.pointwise(lambda v: v * 2 + 1, x).instruction) == Pointwise.name


def test_events_compare_by_value() -> None:
    trace = Trace()
    build, x = one_input()
    value = x
    for _ in range(3):
        value = build.pointwise("add", value, build.constant(np.float32(1)), source="Add")
    rewrite(build.module({"y": value}), RuleSet((decline,)), trace=trace)
    assert len(trace.declined) == 1


def test_a_rule_is_shown_with_its_equation() -> None:
    assert isinstance(cancel, Rule)
    assert repr(cancel) == "<rule cancel: --x = x>"


def two_branches(condition: Callable[[Builder, Value], Value]) -> tuple[Module, Value]:
    """if(condition, squeeze(x), x) for an x of N columns; the squeeze needs N = 1."""
    taken, other = Builder("then"), Builder("else")
    inside = taken.tensor_parameter("a", "float32", [4, "N"])
    build = Builder()
    x = build.tensor_parameter("x", "float32", [4, "N"])
    branches = (
        taken.module({"y": taken.add(Squeeze((1,)), inside)}),
        other.module({"y": other.tensor_parameter("a", "float32", [4, "N"])}),
    )
    chosen = build.add(If(*branches), condition(build, x), x, x)
    return build.module({"y": chosen}), chosen


def bound(module: Module, size: int) -> Module:
    after = remove_dead_code(Rebuild(module, namer_of(module), {"N": size}).run())
    validate(after)
    return after


def test_a_known_condition_spares_the_other_branch() -> None:
    module, _ = two_branches(
        lambda build, x: build.pointwise("eq", build.add(DimValues(x.shape[1:], scalar=True)), build.constant(1))
    )
    assert [str(value.type) for value in bound(module, 1).results] == ["float32[4]"]
    assert [str(value.type) for value in bound(module, 3).results] == ["float32[4, 3]"]
    assert ops(bound(module, 1)) == ["squeeze"]


def test_a_branch_that_contradicts_the_sizes_stays_general(caplog: pytest.LogCaptureFixture) -> None:
    module, _ = two_branches(lambda build, _: build.tensor_parameter("flag", "bool", []))
    after = bound(module, 3)
    assert "a branch cannot run with these sizes" in caplog.text
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    (found,) = Interpreter(after).run([x, np.array(False)], Env())
    np.testing.assert_array_equal(found, x)
    with pytest.raises(ModelError):
        Interpreter(after).run([x, np.array(True)], Env())
