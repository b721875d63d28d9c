"""String ops: edge cases that ONNX's suite lacks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from argosy.errors import ModelError
from argosy.ir.dtype import dtype
from argosy.ops.ngrams import CountNGrams
from argosy.ops.strings import (
    FormatNumbers,
    MapLabels,
    ParseNumbers,
    RegexMatch,
    StringConcat,
    StringNormalize,
    StringSplit,
)
from tests.ops.agreement import apply, infer, tensor

TEXT = tensor("string", "n")


def words(*entries: str) -> NDArray[Any]:
    return np.array(entries, object)


@pytest.mark.parametrize(
    ("element", "texts", "expected"),
    [
        ("float32", ["1e-5", "-INF", "nan", "+inf", "3.25"], [1e-5, -np.inf, np.nan, np.inf, 3.25]),
        ("int64", ["9223372036854775807", "-3", "100.5"], [2**63 - 1, -3, 100]),
        ("bool", ["1", "0", "0.5"], [True, False, True]),
        ("bfloat16", ["1.0"], [1.0]),
    ],
)
def test_strings_to_numbers(element: str, texts: list[str], expected: list[Any]) -> None:
    (found,) = apply(ParseNumbers(dtype(element)), TEXT, feeds=[words(*texts)])
    np.testing.assert_array_equal(found, np.array(expected).astype(dtype(element).numpy))


@pytest.mark.parametrize(
    ("element", "text"),
    [
        ("float32", "Hello"),
        ("int8", ""),
        ("int64", "inf"),
        ("int8", "128"),
        ("uint2", "4"),
        ("uint64", "-1"),
        ("int4", "-9"),
        ("int64", "1e19"),
    ],
)
def test_strings_that_are_no_numbers(element: str, text: str) -> None:
    with pytest.raises(ModelError, match=f"the string '{text}' is no number that fits {element}"):
        ParseNumbers(dtype(element)).evaluate(words(text))


def test_numbers_to_strings_read_back_as_the_same() -> None:
    x = np.array([0.1, 1e20, -np.inf, np.nan, 16777216], np.float32)
    (found,) = apply(FormatNumbers(), tensor("float32", "n"), feeds=[x])
    np.testing.assert_array_equal(found.astype(np.float32), x)
    assert FormatNumbers().evaluate(np.array([True, False]))[0].tolist() == ["1", "0"]
    assert FormatNumbers().evaluate(np.array(7))[0].shape == ()


def test_concat_broadcasts() -> None:
    (found,) = apply(StringConcat(), tensor("string", 2, 1), words("x", ""), feeds=[words("a", "b").reshape(2, 1)])
    assert found.tolist() == [["ax", "a"], ["bx", "b"]]
    with pytest.raises(ModelError, match=r"found int8\[2\], expected strings"):
        infer(StringConcat(), tensor("int8", 2), TEXT)


@pytest.mark.parametrize(
    ("op", "parts", "counts"),
    [
        (StringSplit(","), [["a", "", "b"], ["", "", ""]], [3, 1]),
        (StringSplit(",", 1), [["a", ",b"], ["", ""]], [2, 1]),
        (StringSplit(), [["a,,b"], [""]], [1, 0]),
    ],
)
def test_split(op: StringSplit, parts: list[list[str]], counts: list[int]) -> None:
    found, number = apply(op, TEXT, feeds=[words("a,,b", "")])
    assert (found.tolist(), number.tolist()) == (parts, counts)
    assert op.evaluate(np.empty((0,), object))[0].shape == (0, 0)


def test_normalize() -> None:
    texts = words("Monday", "monday", "Ünder")
    assert StringNormalize(("MONDAY",), "UPPER").evaluate(texts)[0].tolist() == ["ÜNDER"]
    assert StringNormalize(("monday",), "LOWER", case_sensitive=True).evaluate(texts)[0].tolist() == ["monday", "ünder"]
    (nothing,) = StringNormalize(("monday", "ünder")).evaluate(texts[None])
    assert nothing.tolist() == [[""]]
    with pytest.raises(ModelError, match=r"found the shape \[2, 1\], expected"):
        StringNormalize().evaluate(words("a", "b").reshape(2, 1))


def test_regex_matches_the_whole_string() -> None:
    (found,) = apply(RegexMatch(r"a+\d?"), TEXT, feeds=[words("aa1", "aa1b", "", "a\n")])
    assert found.tolist() == [True, False, False, False]
    with pytest.raises(ModelError, match="is not understood"):
        infer(RegexMatch("("), TEXT)
    with pytest.raises(ModelError, match="POSIX character class"):
        infer(RegexMatch("[[:alpha:]]"), TEXT)


def test_labels() -> None:
    keys, values = np.array([1.0, np.nan, 1.0], np.float32), np.array([10, 20, 30])
    x = np.array([[1, np.nan], [7, 1]], np.float32)
    (found,) = apply(MapLabels(), tensor("float32", "n", 2), keys, values, np.array(-1), feeds=[x])
    assert found.tolist() == [[30, 20], [-1, 30]]  # the last of equal keys counts
    (empty,) = apply(MapLabels(), TEXT, words(), np.array([], np.int64), np.array(5), feeds=[words("a")])
    assert empty.tolist() == [5]
    with pytest.raises(ModelError, match="the keys are float32, expected string"):
        infer(MapLabels(), TEXT, keys, values, np.array(-1))


def count_by_hand(tokens: list[Any], grams: list[list[Any]], skips: int) -> list[int]:
    counts = []
    for gram in grams:
        total = 0
        for stride in range(1, (skips if len(gram) > 1 else 0) + 2):
            for start in range(len(tokens)):
                window = tokens[start : start + stride * (len(gram) - 1) + 1 : stride]
                total += window == gram
        counts.append(total)
    return counts


@pytest.mark.parametrize("skips", [0, 1, 3])
@pytest.mark.parametrize("element", ["int64", "string"])
def test_ngrams(skips: int, element: str) -> None:
    rng = np.random.default_rng(skips)
    tokens = rng.integers(0, 4, (3, 12))
    grams = [[0], [5], [1, 2], [3, 3], [0, 1, 2]]
    pool, rows = np.array([token for gram in grams for token in gram]), tokens
    if element == "string":
        pool, rows = pool.astype(str).astype(object), tokens.astype(str).astype(object)
    columns = np.array([4, 3, 2, 1, 0])
    op = CountNGrams("TF", (0, 2, 6), 1, 3, skips)
    (found,) = apply(op, tensor(element, "n", "t"), pool, columns, feeds=[rows])
    expected = [count_by_hand(row, grams, skips)[::-1] for row in tokens.tolist()]
    np.testing.assert_array_equal(found, np.array(expected, np.float32))
    weights = np.array([0.5, 1, 2, 3, 4], np.float32)
    scaled = CountNGrams("TFIDF", (0, 2, 6), 1, 3, skips).evaluate(rows, pool, columns, weights)[0]
    np.testing.assert_array_equal(scaled, found * weights[::-1])
    once = CountNGrams("IDF", (0, 2, 6), 1, 3, skips).evaluate(rows[0], pool, columns, weights)[0]
    np.testing.assert_array_equal(once, np.minimum(found[0], 1) * weights[::-1])


@pytest.mark.parametrize(
    ("starts", "columns", "weights", "message"),
    [
        ((0, 2), [0, 1, 2], None, r"tokens 2 to 7 of 7 are no list of n-grams of 2"),
        ((0, 9), [0, 1, 2, 3, 4], None, r"tokens 9 to 7 of 7 are no list of n-grams of 2"),
        ((3, 1), [0, 1, 2, 3, 4], None, r"tokens 3 to 1 of 7 are no list of n-grams of 1"),
        ((-1, 3), [0, 1, 2, 3, 4], None, r"tokens -1 to 3 of 7"),
        ((0, 3), [0, 1, 2, 3], None, "4 columns are given for 5 n-grams"),
        ((0, 3), [0, 1, 2, 3, -1], None, "an n-gram has the column -1, expected 0 or more"),
        ((0, 3), [0, 1, 2, 3, 4], [1.0], r"the weights have the shape \[1\]"),
        ((0, 3), [0, 1, 2, 3, 4], [1.0] * 6, r"the weights have the shape \[6\]"),
    ],
)
def test_pools_that_are_no_lists_of_n_grams(
    starts: tuple[int, ...], columns: list[int], weights: list[float] | None, message: str
) -> None:
    pool = np.array([1, 2, 3, 1, 2, 2, 3])
    operands = [pool, np.array(columns), *([] if weights is None else [np.array(weights, np.float32)])]
    with pytest.raises(ModelError, match=message):
        infer(CountNGrams("TFIDF", starts, 1, 2, 0), tensor("int64", "n", "t"), *operands)


def test_more_skips_than_tokens() -> None:
    pool, columns, rows = np.array([1, 2]), np.array([0]), np.array([[1, 3, 2, 1, 1, 2, 2]])
    (found,) = apply(CountNGrams("TF", (0, 0), 2, 2, 2**62), tensor("int64", "n", "t"), pool, columns, feeds=[rows])
    pairs = [(first, second) for at, first in enumerate(rows[0]) for second in rows[0, at + 1 :]]
    np.testing.assert_array_equal(found, [[pairs.count((1, 2))]])
