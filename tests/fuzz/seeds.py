"""The models that are damaged: small ones, of every family of ops and every structure that ONNX has.

Written ones hold several nodes each, so that names can be crossed; the others are ONNX's own files, the
smallest of its suite and two networks whose weights are made by ops. Nothing here is fetched.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

import onnx
import onnx.parser
from onnx import helper

__all__ = ["SEEDS", "seed"]

_DATA = Path(onnx.__file__).parent / "backend" / "test" / "data"

# Name -> opset imports, further functions, graph. The text form is that of onnx.parser.
_WRITTEN: Final[dict[str, tuple[str, str]]] = {
    "mlp": ('"" : 17', """
        mlp (float[N, 4] x) => (float[N, 2] y)
        <float[4, 3] w = {1,2,3,4,5,6,7,8,9,10,11,12}, float[3] b = {1,2,3}, float[3, 2] v = {1,2,3,4,5,6}>
        { h = MatMul(x, w) i = Add(h, b) j = Relu(i) k = MatMul(j, v) y = Softmax<axis = -1>(k) }"""),
    "shapes": ('"" : 18', """
        shapes (float[B, T, 12] x, int64[2] p) => (float[B, 3, T, 4] y, int64[K] z, float[M, L] w)
        <int64[3] perm = {0, 2, 1}, int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}, int64[2] tail = {3, 4}>
        { s = Shape(x) b = Slice(s, zero, one) t = Slice(s, one, two) d = Concat<axis = 0>(b, t, tail)
          r = Reshape(x, d) y = Transpose<perm = [0, 2, 1, 3]>(r) f = Reshape(x, p) c = Cast<to = 9>(f)
          n = NonZero(c) g = Gather<axis = 0>(n, zero) z = Squeeze(g, zero) q = Expand(f, p) w = Tile(q, p) }"""),
    "convolutions": ('"" : 13', """
        convolutions (float[1, 2, H, 6] x, float[4, 2, 3, 3] w, float[4, 2, 2, 2] v)
            => (float[1, 2, A, B] y, float[1, 2, 1, 1] g)
        <float[2] s = {1, 2}, float[2] z = {0, 0}>
        { c = Conv<pads = [1, 1, 1, 1], strides = [2, 1], dilations = [1, 1]>(x, w)
          p = MaxPool<kernel_shape = [2, 2], ceil_mode = 1>(c)
          a = AveragePool<kernel_shape = [2, 2], auto_pad = "SAME_UPPER">(p) d = ConvTranspose<strides = [2, 2]>(a, v)
          n = BatchNormalization<epsilon = 0.01>(d, s, z, z, s) i = InstanceNormalization(n, s, z)
          y = LRN<size = 3>(i) g = GlobalAveragePool(y) }"""),
    "loop": ('"" : 19', """
        loop (int64 m, bool go, float[2] x) => (float[2] y, float[S, 2] all)
        { y, all = Loop(m, go, x) <body = step (int64 i, bool on, float[2] a) => (bool next, float[2] b, float[2] each)
            { next = Identity(on) b = Add(a, x) each = Mul(b, a) }> }"""),
    "scan": ('"" : 11', """
        scan (float[2] start, float[T, 2] xs) => (float[2] y, float[T, 2] ys)
        { y, ys = Scan<num_scan_inputs = 1, body = step (float[2] a, float[2] b) => (float[2] c, float[2] d)
            { c = Add(a, b) d = Identity(c) }>(start, xs) }"""),
    "conditional": ('"" : 16', """
        conditional (bool c, float[N] x) => (float[M] y)
        { y = If(c) <then_branch = a () => (float[M] p) { q = Neg(x) p = If(c) <
              then_branch = aa () => (float[M] s) { s = Abs(q) }, else_branch = ab () => (float[M] t) { t = Exp(x) }> },
            else_branch = b () => (float[K] r) { r = Concat<axis = 0>(x, x) }> }"""),
    "sequences": ('"" : 17', """
        sequences (float[N, 3] x, float[2, 3] z, int64 i) => (float[P, Q] y, int64 n, seq(float[A, 3]) rest)
        { e = SequenceEmpty<dtype = 1>() a = SequenceInsert(e, x) b = SequenceInsert(a, z) f = SequenceAt(b, i)
          s = SplitToSequence<axis = 0>(x) y = ConcatFromSequence<axis = 0>(b) n = SequenceLength(s)
          rest = SequenceErase(b, i) }"""),
    "optionals": ('"" : 18', """
        optionals (optional(float[N]) x, float[3] z) => (float[M] y, bool h)
        { h = OptionalHasElement(x) o = Optional(z) g = OptionalGetElement(o)
          k = If(h) <then_branch = a () => (float[M] p) { p = OptionalGetElement(x) },
                     else_branch = b () => (float[3] q) { q = Identity(g) }>
          y = Neg(k) }"""),
    "quantised": ('"" : 13, "com.microsoft" : 1', """
        quantised (float[2, 4] x) => (float[2, 3] y, uint8[2, 3] z)
        <float s = {0.1}, uint8 p = {3}, int8[4, 3] w = {1,2,3,4,5,6,7,8,9,10,11,12}, int8 q = {0}>
        { a = QuantizeLinear(x, s, p) b = DequantizeLinear(a, s, p) c, d, e = DynamicQuantizeLinear(x)
          m = MatMulInteger(c, w, e) f = Cast<to = 1>(m) y = Mul(f, d)
          z = QLinearMatMul(a, s, p, w, s, q, s, p) u = com.microsoft.QLinearAdd(a, s, p, a, s, p, s, p) }"""),
    "blocks": ('"" : 21', """
        blocks (float[8, 4] x) => (float[8, 4] y)
        <float[2, 4] s = {1,2,3,4,5,6,7,8}>
        { a = QuantizeLinear<axis = 0, block_size = 4, output_dtype = 22>(x, s)
          y = DequantizeLinear<axis = 0, block_size = 4>(a, s) }"""),
    "attention": ('"" : 24', """
        attention (float[B, 2, T, 4] q, float[B, 2, S, 4] k, float[B, 2, S, 4] v, bool[T, S] m) => (float[B, 2, T, 4] y)
        { y = Attention<is_causal = 1, scale = 0.5>(q, k, v, m) }"""),
    "transformer": ('"" : 17, "com.microsoft" : 1', """
        transformer (float[B, T, 8] x, float[B, T, 8] r, float[8, 24] w, float[24] c)
            => (float[B, T, 8] y, float[B, T, 8] z)
        <float[8] g = {1,1,1,1,1,1,1,1}, float[8] b = {0,0,0,0,0,0,0,0}>
        { n, _a, _b, s = com.microsoft.SkipLayerNormalization(x, r, g, b)
          a = com.microsoft.Attention<num_heads = 2>(n, w, c) f = com.microsoft.FastGelu(a)
          y = LayerNormalization<axis = -1>(f, g, b) z = com.microsoft.BiasGelu(y, b) }"""),
    "lstm": ('"" : 14', """
        lstm (float[T, B, 3] x, int32[B] lens, float[1, 8, 3] w, float[1, 8, 2] r, float[1, 16] b, float[1, 6, 2] gw,
            float[1, 6, 2] gr) => (float[T, D, B, 2] y, float[D, B, 2] h)
        { y, hh, c = LSTM<hidden_size = 2>(x, w, r, b, lens) one = Constant<value = int64[1] {1}>()
          s = Squeeze(y, one) g, h = GRU<hidden_size = 2, linear_before_reset = 1>(s, gw, gr) }"""),
    "indices": ('"" : 18', """
        indices (float[4, N] x, int64[2, N] i, int64[3, 1] d, float[3, N] u)
            => (float[A, N] y, float[4, N] z, int64[J] k)
        <int64[1] two = {2}>
        { y = GatherElements<axis = 0>(x, i) z = ScatterND<reduction = "add">(x, d, u)
          g = GatherND(z, d) v, w = TopK<axis = 0>(x, two) e = ScatterElements<axis = 0>(x, i, y)
          uniq, first, inverse, k = Unique<axis = 1>(g) t = Trilu<upper = 0>(e) }"""),
    "reductions": ('"" : 18', """
        reductions (float[A, B, 3] x, int64[K] axes) => (float[A, 3] y, float z, int64[A, 1, 3] i)
        <int64[1] one = {1}>
        { y = ReduceSum<keepdims = 0>(x, one) m = ReduceMax(x, axes) l = ReduceLogSumExp<keepdims = 1>(x, one)
          z = ReduceMean<keepdims = 0>(l) i = ArgMax<axis = 1>(x) c = CumSum(x, one) n = LpNormalization(c) }"""),
    "resizing": ('"" : 18', """
        resizing (float[1, 1, H, W] x, float[1, P, Q, 2] grid) => (float[A, B, C, D] y, float[E, F, G, I] z)
        <float[4] s = {1, 1, 2, 1.5}, int64[4] n = {1, 1, 5, 7}, int64[8] p = {0,0,1,1,0,0,1,2}>
        { a = Resize<mode = "linear", coordinate_transformation_mode = "half_pixel">(x, , s)
          b = Resize<mode = "cubic">(x, , , n) c = Pad<mode = "reflect">(b, p) y = DepthToSpace<blocksize = 1>(c)
          z = GridSample<mode = "bilinear">(x, grid) }"""),
    "strings": ('"" : 20, "ai.onnx.ml" : 3', """
        strings (string[N] x) => (int64[N] y, string[N, M] parts, bool[N] ok)
        { a = StringNormalizer<case_change_action = "LOWER">(x) parts, counts = StringSplit<delimiter = " ">(a)
          ok = RegexFullMatch<pattern = "[a-z]+">(a) b = StringConcat(a, x)
          y = ai.onnx.ml.LabelEncoder<keys_strings = ["a", "b"], values_int64s = [1, 2]>(b) }"""),
    "trees": ('"" : 14, "ai.onnx.ml" : 3', """
        trees (float[N, 2] x) => (float[N, 1] y, float[N, 2] z)
        { y = ai.onnx.ml.TreeEnsembleRegressor<n_targets = 1, nodes_falsenodeids = [2, 0, 0],
            nodes_featureids = [0, 0, 0], nodes_modes = ["BRANCH_LEQ", "LEAF", "LEAF"], nodes_nodeids = [0, 1, 2],
            nodes_treeids = [0, 0, 0], nodes_truenodeids = [1, 0, 0], nodes_values = [0.5, 0.0, 0.0],
            target_ids = [0, 0], target_nodeids = [1, 2], target_treeids = [0, 0], target_weights = [1.0, 2.0]>(x)
          z = ai.onnx.ml.Binarizer<threshold = 0.5>(x) s = ai.onnx.ml.ArrayFeatureExtractor(z, i)
          i = Constant<value_ints = [1, 0]>() }"""),
    "classical": ('"" : 18, "ai.onnx.ml" : 3', """
        classical (float[N, 2] x, float[N, 1] w, map(int64, float) m)
            => (int64[N] label, seq(map(int64, float)) maps, float[N, 2] chances, float[A, B] row)
        { f = ai.onnx.ml.FeatureVectorizer<inputdimensions = [2, 1]>(x, w)
          i = ai.onnx.ml.Imputer<imputed_value_floats = [1.0, 2.0, 3.0], replaced_value_float = 0.0>(f)
          s = ai.onnx.ml.Scaler<offset = [1.0, 0.0, 2.0], scale = [2.0]>(i) n = ai.onnx.ml.Normalizer<norm = "L2">(s)
          label, scores = ai.onnx.ml.LinearClassifier<classlabels_ints = [3, 5], coefficients = [1.0, 2.0, 3.0],
            intercepts = [0.5], post_transform = "LOGISTIC">(n)
          maps = ai.onnx.ml.ZipMap<classlabels_int64s = [3, 5]>(scores)
          other, chances = ai.onnx.ml.SVMClassifier<classlabels_ints = [1, 2], vectors_per_class = [1, 1],
            support_vectors = [1.0, 0.0, 2.0, 0.0, 1.0, 0.0], coefficients = [1.0, -1.0], rho = [0.1], prob_a = [-1.0],
            prob_b = [0.2], kernel_type = "RBF", kernel_params = [0.5, 0.0, 3.0]>(n)
          r = ai.onnx.ml.SVMRegressor<coefficients = [1.0, 2.0, 3.0], rho = [0.1], n_supports = 0>(n)
          row = ai.onnx.ml.CastMap<map_form = "SPARSE", max_map = 4>(m)
          d = ai.onnx.ml.DictVectorizer<int64_vocabulary = [1, 2]>(m) }"""),
    "signals": ('"" : 17', """
        signals (float[1, 16, 1] x, int64 n) => (float[1, A, 2] y, float[1, B, C, 2] z)
        <int64 step = {4}, int64 size = {8}>
        { y = DFT<axis = 1>(x) h = HannWindow(size) z = STFT(x, step, h, size) b = BlackmanWindow(n) }"""),
    "generators": ('"" : 17', """
        generators (int64[2] s, int64 a, int64 b) => (float[A, B] y, int64[R] r, float[3, 3] e)
        { c = ConstantOfShape<value = float[1] {2}>(s) u = RandomUniformLike(c) y = Bernoulli(u)
          one = Constant<value_int = 1>()
          r = Range(a, b, one) e = EyeLike<dtype = 1>(q) q = RandomNormal<shape = [3, 3], seed = 1.0>() }"""),
    "detection": ('"" : 16', """
        detection (float[1, N, 4] boxes, float[1, C, N] scores, float[1, 2, 8, 8] x, float[R, 4] rois, int64[R] of)
            => (int64[S, 3] y, float[R, 2, 2, 2] z)
        <int64 most = {3}, float iou = {0.5}, float least = {0.1}>
        { y = NonMaxSuppression(boxes, scores, most, iou, least)
          z = RoiAlign<output_height = 2, output_width = 2, sampling_ratio = 2>(x, rois, of) }"""),
    "legacy": ('"" : 1', """
        legacy (float[2, 3, 4] x, float[3] b) => (float[A, B, C] y, float[D, E] z)
        { a = Add<broadcast = 1, axis = 1>(x, b) c = Clip<min = 0.0, max = 2.0>(a) d = Dropout<is_test = 1>(c)
          e = Reshape<shape = [6, 4]>(d) z = Softmax<axis = 1>(e) f = Squeeze<axes = [0]>(g)
          g = Slice<starts = [0], ends = [1], axes = [0]>(d) h = Unsqueeze<axes = [0]>(f)
          y = Pad<mode = "edge", paddings = [0, 0, 0, 1, 1, 1]>(h) t = Cast<to = "DOUBLE">(y)
          u, v = Split<axis = 2, split = [2, 3]>(y) }"""),
    "mixture": ('"" : 15', """
        mixture (float16[N] a, double[N, 1] b, uint8[N] c, int8[1] d) => (float[A, B] y, bool[N] z)
        { e = Cast<to = 1>(a) f = Cast<to = 1>(b) g = PRelu(e, f) h = Where(m, g, f) m = GreaterOrEqual(e, f)
          i = BitShift<direction = "LEFT">(c, c) j = Mod<fmod = 0>(d, d) k = Pow(e, d) l = Clip(k, , lim)
          lim = Constant<value_float = 3.0>() y = Sum(h, l, g) n = CastLike(c, d) z = Not(o) o = Equal(c, i)
          p = HardSigmoid(e) q = Einsum<equation = "i,ij->j">(e, f) }"""),
    "heads": ('"" : 17, "com.microsoft" : 1', """
        heads (float[B, T, 8] q, float[B, S, 8] k, float[B, S, 8] v, int64[B, T] at, float[9, 2] cos, float[9, 2] sin,
            float[1, 2, 8] x, float[1, 2, 4] y, float[1, 1, P, 4] past, int32[1] lens, int32 total)
            => (float[B, T, 8] a, float[1, 2, 8] b, float[1, 1, R, 4] present)
        { r = com.microsoft.RotaryEmbedding<num_heads = 2>(q, at, cos, sin)
          a = com.microsoft.MultiHeadAttention<num_heads = 2, scale = 0.5>(r, k, v)
          b, present, other = com.microsoft.GroupQueryAttention<num_heads = 2, kv_num_heads = 1>(
              x, y, y, past, past, lens, total) }"""),
    "bits": ('"" : 17, "com.microsoft" : 1', """
        bits (float[M, 32] a, uint8[4, 1, 16] w, float[4] s, float[M, 4] c, int8[4, 3] d, uint8[M, 4] e,
            float t, uint8 z) => (float[M, 4] y, float[M, 3] f, uint8[M, 4] g)
        <float[1] ds = {0.5}, int8[1] dz = {1}>
        { y = com.microsoft.MatMulNBits<K = 32, N = 4, bits = 4, block_size = 32>(a, w, s)
          f = com.microsoft.DynamicQuantizeMatMul(c, d, ds, dz)
          g = com.microsoft.QLinearAdd(e, t, z, e, t, z, t, z) h = com.microsoft.QLinearSigmoid(e, t, z, t, z)
          i = com.microsoft.QLinearConcat<axis = 1>(t, z, e, t, z, g, t, z)
          j = com.microsoft.MatMulIntegerToFloat(e, d, t, t, z)
          k = com.microsoft.QLinearLeakyRelu<alpha = 0.5>(e, t, z, t, z) }"""),
    "embedding": ('"" : 17, "com.microsoft" : 1', """
        embedding (int32[B, T] ids, int32[B, T] parts, float[9, 4] words, float[9, 4] places, float[2, 4] segments,
            float[4] g, float[4] b, int32[B, T] mask, float[1, 2, 3, 4] x, float[2, 4, 3, 3] w)
            => (float[B, T, 4] y, float[1, 2, 3, 4] n, float[1, P, Q, 2] c)
        { y, m = com.microsoft.EmbedLayerNormalization(ids, parts, words, places, segments, g, b, mask)
          n = com.microsoft.GroupNorm<groups = 2, channels_last = 1, activation = 1>(x, g, b)
          c = com.microsoft.NhwcConv<pads = [1, 1, 1, 1]>(x, w) f = com.microsoft.FastGelu(y, b)
          p = com.microsoft.FusedMatMul<transB = 1, alpha = 0.5>(y, f) s = com.microsoft.BiasSplitGelu(y, b)
          k = com.microsoft.SimplifiedLayerNormalization<axis = -1>(y, g) q = com.microsoft.QuickGelu(k) }"""),
    "losses": ('"" : 13', """
        losses (float[N, 3] x, int64[N] t, float[3] w) => (float l, float[N] m)
        { p = LogSoftmax<axis = 1>(x) l = NegativeLogLikelihoodLoss<ignore_index = 1>(p, t, w)
          m, q = SoftmaxCrossEntropyLoss<reduction = "none">(x, t) o = OneHot<axis = 0>(t, depth, values)
          depth = Constant<value_int = 3>() values = Constant<value_floats = [0.0, 1.0]>() h = Hardmax(x) }"""),
    "linear": ('"" : 13', """
        linear (float[M, K] a, float[N, K] b, float[2, 2] s) => (float[M, N] y, float d)
        { g = Gemm<transB = 1, alpha = 0.5, beta = 2.0>(a, b) y = Relu(g) d = Det(s) f = Flatten<axis = 0>(y)
          sp0, sp1 = Split<axis = 1>(s) c = Compress<axis = 0>(s, k) k = Constant<value = bool[2] {1, 0}>() }"""),
}  # fmt: skip

_FUNCTIONS = """
    <ir_version: 9, opset_import: ["" : 18, "local" : 1]>
    calls (float[N, 3] x) => (float[N, 3] y, float[N, 3] z)
    { a = local.outer<slope = 0.5>(x, x) y = local.inner(a) z = HardSwish(y) b = Mish(z) c = Celu(b) }
    <domain: "local", opset_import: ["" : 18, "local" : 1]>
    outer <slope> (p, q) => (r)
    { s = LeakyRelu<alpha: float = @slope>(p) t = local.inner(q) r = Add(s, t) }
    <domain: "local", opset_import: ["" : 18]>
    inner (p) => (q)
    { o = Shape(p) s = Reshape(p, o) q = Softplus(s) }
"""

_FILES = (
    *(f"simple/test_{name}/model.onnx" for name in (
        "expand_shape_model1", "expand_shape_model4", "single_relu_model", "sequence_model1", "sequence_model4",
        "sequence_model7", "shrink", "sign_model", "strnorm_model_monday_casesensintive_lower",
    )),
    *(f"pytorch-converted/test_{name}/model.onnx" for name in (
        "AvgPool2d_stride", "BatchNorm1d_3d_input_eval", "ConstantPad2d", "Conv1d_groups", "Conv2d_depthwise_strided",
        "ConvTranspose2d", "Embedding", "GLU_dim", "Linear", "MaxPool2d_stride_padding_dilation", "PReLU_2d_multiparam",
        "PixelShuffle", "PoissonNLLLLoss_no_reduce", "Softmin",
    )),
    *(f"pytorch-operator/test_operator_{name}/model.onnx" for name in (
        "addmm", "chunk", "concat2", "index", "maxpool", "non_float_params", "pad", "params", "permute2", "pow",
        "reduced_mean_keepdim", "repeat", "symbolic_override_nested", "view",
    )),
    "light/light_bvlc_alexnet.onnx",
    "light/light_squeezenet.onnx",
)  # fmt: skip


def _written(name: str) -> onnx.ModelProto:
    opsets, graph = _WRITTEN[name]
    version = 3 if name == "legacy" else 10
    return onnx.parser.parse_model(f"<ir_version: {version}, opset_import: [{opsets}]> {graph}")


def _functions() -> onnx.ModelProto:
    return onnx.parser.parse_model(_FUNCTIONS)


def _sparse() -> onnx.ModelProto:
    """A model with a sparse initializer, a sparse constant and metadata, for which there is no text form."""
    sparse = helper.make_sparse_tensor(
        helper.make_tensor("w", onnx.TensorProto.FLOAT, [2], [1.0, 2.0]),
        helper.make_tensor("w_indices", onnx.TensorProto.INT64, [2, 2], [0, 1, 2, 3]),
        [3, 4],
    )
    constant = helper.make_node("Constant", [], ["c"], sparse_value=sparse)
    nodes = [constant, helper.make_node("Add", ["w", "c"], ["s"]), helper.make_node("MatMul", ["x", "s"], ["y"])]
    graph = helper.make_graph(
        nodes,
        "sparse",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["N", 3])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["N", 4])],
        sparse_initializer=[sparse],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)


SEEDS: Final[tuple[str, ...]] = (*_WRITTEN, "functions", "sparse", *_FILES)
"""Names of the seeds."""


@cache
def seed(name: str) -> onnx.ModelProto:
    """The model called `name`; callers copy it before they change it."""
    if name == "functions":
        return _functions()
    if name == "sparse":
        return _sparse()
    return _written(name) if name in _WRITTEN else onnx.load(_DATA / name)
