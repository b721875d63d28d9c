"""Templates of the numeric ops of ai.onnx.ml; not drawn is what ONNX Runtime has no code for or does in its own way."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.properties.onnx_graphs.graph import Graph, Template, Value

__all__ = ["TEMPLATES"]

_DOMAIN = "ai.onnx.ml"
_ALL = ("float32", "float64", "int64", "int32")


def _rows(graph: Graph, *kinds: str) -> Value:
    return graph.pick(*kinds, ranks=(1, 2), where=lambda value: value.array.size > 0 and value.finite)


def _floats(graph: Graph, count: int) -> list[float]:
    """Numbers of float32, as attributes hold them."""
    return [float(number) for number in graph.numbers.uniform(-1, 1, count).astype(np.float32)]


def scaler(graph: Graph, op: str) -> None:
    x = _rows(graph, *_ALL)
    count = graph.one(1, x.shape[-1])
    graph.node(op, x, domain=_DOMAIN, offset=_floats(graph, count), scale=_floats(graph, count))


def normalizer(graph: Graph, op: str) -> None:
    graph.node(op, _rows(graph, *_ALL), domain=_DOMAIN, norm=graph.one("MAX", "L1", "L2"))


def imputer(graph: Graph, op: str) -> None:
    x = _rows(graph, "float32", "int64")
    count = graph.one(1, x.shape[-1])
    if x.dtype == "int64":
        given: dict[str, Any] = {"imputed_value_int64s": list(range(count)), "replaced_value_int64": graph.one(0, 1)}
    else:
        given = {"imputed_value_floats": _floats(graph, count), "replaced_value_float": graph.one(0.0, 1.0)}
    graph.node(op, x, domain=_DOMAIN, **given)


def vectorizer(graph: Graph, op: str) -> None:
    x = _rows(graph, *_ALL)
    y = graph.tensor(x.dtype, x.shape)
    sizes = [graph.one(x.shape[-1], 1, x.shape[-1] + 1) for _ in range(2)]
    graph.node(op, x, y, domain=_DOMAIN, inputdimensions=sizes)


def linear(graph: Graph, op: str) -> None:
    classifier = op == "LinearClassifier"
    x = _rows(graph, *(_ALL if classifier else ("float32",)))
    rows = graph.one(2, 3)
    given: dict[str, Any] = {
        "coefficients": _floats(graph, rows * x.shape[-1]),
        "intercepts": _floats(graph, rows),
        "post_transform": graph.one(None, "SOFTMAX", "LOGISTIC"),
    }
    if classifier:
        labels = graph.one({"classlabels_ints": [4, -2, 9][:rows]}, {"classlabels_strings": ["a", "b", "c"][:rows]})
        graph.node(op, x, outputs=2, domain=_DOMAIN, **given, **labels)
    else:
        graph.node(op, x, domain=_DOMAIN, targets=rows, **given)


def machine(graph: Graph, op: str) -> None:
    classifier = op == "SVMClassifier"
    x = _rows(graph, *(_ALL if classifier else ("float32",)))
    counts = [graph.one(1, 2) for _ in range(graph.one(2, 3) if classifier else 1)]
    vectors, pairs = sum(counts), len(counts) * (len(counts) - 1) // 2
    given: dict[str, Any] = {
        "kernel_type": graph.one("LINEAR", "POLY", "RBF", "SIGMOID"),
        "kernel_params": [0.25, 0.5, 2.0],
        "support_vectors": _floats(graph, vectors * x.shape[-1]),
    }
    if not classifier:
        given |= {"n_supports": vectors, "coefficients": _floats(graph, vectors), "rho": [0.5]}
        graph.node(op, x, domain=_DOMAIN, one_class=graph.one(None, 1), **given)
        return
    given |= {
        "coefficients": _floats(graph, (len(counts) - 1) * vectors),
        "rho": _floats(graph, pairs),
        "vectors_per_class": counts,
        "classlabels_ints": [4, -2, 9][: len(counts)],
    }
    if graph.flag():
        given |= {"prob_a": [-abs(number) for number in _floats(graph, pairs)], "prob_b": _floats(graph, pairs)}
    graph.node(op, x, outputs=2, domain=_DOMAIN, **given)


def categories(graph: Graph, op: str) -> None:
    x = graph.pick("int64", "object", ranks=(1, 2))
    graph.node(op, x, domain=_DOMAIN, cats_int64s=[0, 1, 2], cats_strings=["a", "b", "Bc"])


TEMPLATES: dict[str, Template] = {
    f"{_DOMAIN}::{op}": template
    for op, template in {
        "Scaler": scaler,
        "Normalizer": normalizer,
        "Imputer": imputer,
        "FeatureVectorizer": vectorizer,
        "LinearClassifier": linear,
        "LinearRegressor": linear,
        "SVMClassifier": machine,
        "SVMRegressor": machine,
        "CategoryMapper": categories,
    }.items()
}
