"""MIGraphX's models on which the specification decides against the data, and the sentence that does.

The standard's sentences are those of ONNX's Operators.md; those of com.microsoft stand in ONNX Runtime's
docs/ContribOperators.md, which is all that specifies that domain.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

__all__ = ["NO_SUCH_OP", "RECOMPUTED", "VERDICTS", "remarks"]

_GROUP_QUERY = (
    'GroupQueryAttention: "seqlens_k: 1D Tensor of shape (batch_size). Equivalent to (total_sequence_lengths - 1)." '
    "It is 8 here, so that 9 keys count: one of the past before the eight new ones. The literal has none."
)
_PAST = (
    "MultiHeadAttention: \"attention_bias: bias added to QxK' with shape (batch_size or 1, num_heads or 1, "
    'sequence_length, total_sequence_length)"; the past included there are {} keys, and the bias has one.'
)
_MOD = 'Mod: "A : T", "B : T": both inputs have one type; here {}.'

VERDICTS: Mapping[str, str] = MappingProxyType(
    {
        "ort/isnan_bf16_test": ('IsNaN: "Y : T2", "T2 : tensor(bool)"; the values are recorded as bfloat16.'),
        "verify/group_norm_3d_bf16_test": (
            'GroupNormalization: "y = scale * (x - mean) / sqrt(variance + epsilon) + bias". The variance of 1, 2, 3 '
            "and 4 is 1.25; the literal has about 1.53, of sums that were rounded to bfloat16."
        ),
        "verify/group_query_attention_prefill_local_test": _GROUP_QUERY,
        "verify/group_query_attention_prefill_test": _GROUP_QUERY,
        "verify/int4_const_identity_block_sz_2_qdq_test": (
            'QuantizeLinear: "Given x shape (D0, ..., Di, ..., Dn), y_scale shape (S0, ... Si, ...Sn) and axis=i, the '
            'accepted range is [ceil(Di/Si), ceil(Di/(Si-1))-1]"; without block_size that is 2 or 3 here.'
        ),
        "verify/matmulintegertofloat_zp_bias_test": (
            'MatMulIntegerToFloat: "Y : T3", "T3 : tensor(float), tensor(float16)"; the values are recorded as int32.'
        ),
        "verify/mha_past_key_value_seq_len_test": _PAST.format(3),
        "verify/mha_past_key_value_test": _PAST.format(4),
        "verify/mod_test_different_dtypes": _MOD.format("int16 and int32"),
        "verify/mod_test_fmod_different_dtypes": _MOD.format("float and int32"),
        "verify/mxqdq_small_test": "MXQuantizeDequantize is an op of neither ONNX nor ONNX Runtime.",
        "verify/reducesum_variable_axes_noop_test": (
            "The model declares `axes` int64[1], and the second case feeds none. onnx.proto: "
            '"A dimension can be either an integer value or a symbolic variable"; this is the integer 1.'
        ),
        "verify/resize_downsample_f_test": (
            'Resize: "x_original = x_resized * (length_original - 1) / (length_resized - 1)" with '
            '"scale = length_resized / length_original", so that the length is 2.4 for the scale 0.6. ONNX\'s own '
            "test_resize_downsample_scales_linear_align_corners has it so; the literal and ONNX Runtime take 2."
        ),
        "verify/reversesequence_4D_test": (
            'ReverseSequence: "sequence_lens: Tensor specifying lengths of the sequences in a batch" is an input; no '
            "version has such an attribute."
        ),
        "verify/skip_simplified_layer_normalization_bias_test": (
            'SkipSimplifiedLayerNormalization: output 1 is "mean: Saved mean used during training"; nothing says what '
            "that is here. The literal is the mean of the squares without the bias, beside a deviation with it."
        ),
    }
)
"""For each model that fails, why the data cannot be right."""

NO_SUCH_OP: frozenset[str] = frozenset({"negative/unknown_aten_test", "negative/unknown_test"})
"""Invalid models that hold an op of no operator set: refusing it as unsupported says what is wrong."""

_IGNORED = (
    "onnx.reference ignores the attributes activations and input_forget and the input sequence_lens, so that its "
    'values contradict "activations: A list of activation functions", "input_forget: Couple the input and forget gates '
    'if 1", "sequence_lens: Optional tensor specifying lengths of the sequences in a batch". Compared with ONNX '
    "Runtime instead, which runs these models without their `clip` of 0."
)
RECOMPUTED: Mapping[str, str] = MappingProxyType(
    {
        f"reference/onnx_{name}": _IGNORED
        for name in (
            "gru_3arg", "gru_5arg", "gru_bi", "gru_bi_0", "gru_forward", "gru_forward_0", "lstm_bi0af", "lstm_cell",
            "lstm_f0af", "lstm_f4args", "lstm_f6args", "lstm_f7args", "lstm_forward", "lstm_hs", "lstm_last",
            "lstm_r0af", "lstm_reverse",
        )
    }
)  # fmt: skip
"""Models whose expected values are computed anew, by ONNX Runtime, and why."""


def remarks() -> str:
    """Both tables in Markdown."""
    rows = [f"| {name} | {why} |" for name, why in VERDICTS.items()]
    again: dict[str, list[str]] = {}
    for name, why in RECOMPUTED.items():
        again.setdefault(why, []).append(name)
    return "\n".join(
        [
            "## Where the specification decides against the data\n",
            "Every model with expected values that fails, and why its data cannot be right.\n",
            "| model | the sentence that decides |",
            "|---|---|",
            *rows,
            "\n## Expected values computed anew\n",
            *(f"{why}\n\n{', '.join(names)}\n" for why, names in again.items()),
        ]
    )
