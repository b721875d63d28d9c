"""String ops: StringConcat, StringSplit, StringNormalizer, RegexFullMatch, TfIdfVectorizer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from argosy.frontends.onnx.node import Node
from argosy.frontends.onnx.registry import onnx_op
from argosy.ir.dtype import FLOAT32, INT64
from argosy.ir.module import Value
from argosy.ops.ngrams import CountNGrams
from argosy.ops.strings import RegexMatch, StringConcat, StringNormalize, StringSplit

__all__: list[str] = []


@onnx_op("StringConcat", since=20)
def string_concat(node: Node) -> Value:
    """Element by element, broadcast."""
    return node.add(StringConcat(), node.input(0), node.input(1))


@onnx_op("StringSplit", since=20)
def string_split(node: Node) -> Sequence[Value]:
    """The parts and their number."""
    most = node.attr_int("maxsplit") if node.has("maxsplit") else None
    return node.add_all(StringSplit(node.attr_string("delimiter", ""), most), node.input(0))


@onnx_op("StringNormalizer", since=10)
def string_normalizer(node: Node) -> Value:
    """Letters change their case as Unicode says, whatever the `locale`."""
    node.ignore("locale")
    op = StringNormalize(
        node.attr_strings("stopwords", ()),
        node.attr_choice("case_change_action", "NONE", ("NONE", "LOWER", "UPPER")),
        node.attr_flag("is_case_sensitive"),
    )
    return node.add(op, node.input(0))


@onnx_op("RegexFullMatch", since=20)
def regex_full_match(node: Node) -> Value:
    """RE2's syntax, as far as Python's `re` shares it."""
    return node.add(RegexMatch(node.attr_string("pattern")), node.input(0))


@onnx_op("TfIdfVectorizer", since=9)
def tf_idf_vectorizer(node: Node) -> Value:
    """The pool of n-grams is of strings or of integers."""
    if node.has("pool_strings") == node.has("pool_int64s"):
        node.fail("has both or neither of the attributes 'pool_strings' and 'pool_int64s', expected one")
    if node.has("pool_strings"):
        pool = node.constant(np.array(node.attr_strings("pool_strings"), object))
    else:
        pool = node.constant(np.array(node.attr_ints("pool_int64s"), np.int64))
    weights = node.constant(np.array(node.attr_floats("weights")), FLOAT32) if node.has("weights") else None
    op = CountNGrams(
        node.attr_choice("mode", "TF", ("TF", "IDF", "TFIDF")),
        node.attr_ints("ngram_counts"),
        node.attr_int("min_gram_length"),
        node.attr_int("max_gram_length"),
        node.attr_int("max_skip_count"),
    )
    columns = node.constant(np.array(node.attr_ints("ngram_indexes"), np.int64), INT64)
    return node.add(op, node.input(0), pool, columns, weights)
