/* Vectors of other numbers than float32, in the few ways that meet floats on registers: integers of 32 bits, bytes,
 * short floats in storage. Integers wrap as their scalars do. */
#define LANES_OPERATOR(NAME, OPERATOR)                                     \
    INLINE int32x16 NAME##_int32x16(int32x16 a, int32x16 b) { return (int32x16)((uint32x16)a OPERATOR (uint32x16)b); } \
    INLINE int64x16 NAME##_int64x16(int64x16 a, int64x16 b) { return (int64x16)((uint64x16)a OPERATOR (uint64x16)b); }
LANES_OPERATOR(add, +)
LANES_OPERATOR(sub, -)
LANES_OPERATOR(mul, *)
LANES_OPERATOR(bitand, &)
LANES_OPERATOR(bitor, |)
LANES_OPERATOR(bitxor, ^)
#undef LANES_OPERATOR
/* What a comparison says is a mask of 32 bits, whatever was compared. */
#define LANES_RULES(T)                                                                                             \
    INLINE T min_##T(T a, T b) { return __builtin_elementwise_min(a, b); }                                         \
    INLINE T max_##T(T a, T b) { return __builtin_elementwise_max(a, b); }                                         \
    INLINE int32x16 eq_##T(T a, T b) { return __builtin_convertvector(a == b, int32x16); }                         \
    INLINE int32x16 lt_##T(T a, T b) { return __builtin_convertvector(a < b, int32x16); }                          \
    INLINE int32x16 le_##T(T a, T b) { return __builtin_convertvector(a <= b, int32x16); }
LANES_RULES(int32x16)
LANES_RULES(int64x16)
#undef LANES_RULES
INLINE int64x16 select_int64x16(int32x16 mask, int64x16 a, int64x16 b) {
    return __builtin_convertvector(mask, int64x16) ? a : b;
}
INLINE float32x16 int64_to_float32x16(int64x16 x) { return __builtin_convertvector(x, float32x16); }

#define WIDEN_BYTES(T)                                                                                    \
    INLINE int32x16 T##_to_int32x16(T##x16 x) { return __builtin_convertvector(x, int32x16); }            \
    INLINE T##x16 int32_to_##T##x16(int32x16 x) { return __builtin_convertvector(x, T##x16); }            \
    INLINE float32x16 T##_to_float32x16(T##x16 x) { return to_float(__builtin_convertvector(x, int32x16)); } \
    /* an integer in the range of the type, as a float */                                                 \
    OVERLOAD T whole_to_##T(float32 x) { return (T)(int32)x; }                                            \
    OVERLOAD T whole_to_##T(float64 x) { return (T)(int32)x; }                                            \
    OVERLOAD T##x16 whole_to_##T(float32x16 x) { return __builtin_convertvector(to_int(x), T##x16); }
WIDEN_BYTES(int8)
WIDEN_BYTES(uint8)
#undef WIDEN_BYTES
INLINE float32x16 int32_to_float32x16(int32x16 x) { return to_float(x); }

/* Towards zero; what has no place in 32 bits wraps, lane by lane. */
INLINE int32x16 float32_to_int32x16(float32x16 x) {
    int32x16 inside = __builtin_elementwise_abs(x) < (float32x16)0x1p31f;
    int32x16 whole = to_int(inside ? x : (float32x16)0);
    if (__builtin_reduce_and(inside) == 0)
        for (int lane = 0; lane < 16; ++lane) whole[lane] = inside[lane] ? whole[lane] : float32_to_int32(x[lane]);
    return whole;
}

/* Short floats: as their scalars. */
#if defined(__F16C__) || defined(__aarch64__)
typedef _Float16 halves16 __attribute__((ext_vector_type(16)));
INLINE float32x16 float16_to_float32x16(uint16x16 x) { return __builtin_convertvector((halves16)x, float32x16); }
INLINE uint16x16 float32_to_float16x16(float32x16 x) { return (uint16x16)__builtin_convertvector(x, halves16); }
#else
INLINE float32x16 float16_to_float32x16(uint16x16 x) {
    float32x16 y;
    for (int lane = 0; lane < 16; ++lane) y[lane] = float16_to_float32(x[lane]);
    return y;
}
INLINE uint16x16 float32_to_float16x16(float32x16 x) {
    uint16x16 y;
    for (int lane = 0; lane < 16; ++lane) y[lane] = float32_to_float16(x[lane]);
    return y;
}
#endif
INLINE float32x16 bfloat16_to_float32x16(uint16x16 x) {
    return (float32x16)(__builtin_convertvector(x, uint32x16) << 16);
}
INLINE uint16x16 float32_to_bfloat16x16(float32x16 x) {
    uint32x16 bits = (uint32x16)x;
    uint32x16 rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    uint32x16 nan = ((bits >> 16) & 0x8000) | 0x7fc0;
    return __builtin_convertvector(x != x ? nan : rounded, uint16x16);
}
