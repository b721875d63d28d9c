/* Between numbers: floats into integers, which wrap, and wide numbers into short floats by way of float32. */
/* x towards zero, modulo 2^32 as a signed number; 0 for NaN and infinities. All steps are exact. */
INLINE int32 wrap_32(float64 x) {
    float64 whole = __builtin_elementwise_trunc(x - x == 0 ? x : 0.0);
    float64 low = whole - __builtin_elementwise_floor(whole * 0x1p-32) * 0x1p32;
    return (int32)(low >= 0x1p31 ? low - 0x1p32 : low);
}

/* The same modulo 2^64, by way of |x|: the complement of a small number would not be exact. */
INLINE int64 wrap_64(float64 x) {
    float64 size = __builtin_elementwise_abs(x - x == 0 ? x : 0.0);
    float64 low = size - __builtin_elementwise_floor(size * 0x1p-64) * 0x1p64;
    uint64 whole = (uint64)(int64)(low >= 0x1p63 ? low - 0x1p64 : low);
    return (int64)(x < 0 ? 0 - whole : whole);
}

#define INTEGERS_FROM(F)                                                \
    INLINE int8 F##_to_int8(F x) { return (int8)wrap_32(x); }           \
    INLINE int16 F##_to_int16(F x) { return (int16)wrap_32(x); }        \
    INLINE int32 F##_to_int32(F x) { return wrap_32(x); }               \
    INLINE int64 F##_to_int64(F x) { return wrap_64(x); }               \
    INLINE uint8 F##_to_uint8(F x) { return (uint8)wrap_32(x); }        \
    INLINE uint16 F##_to_uint16(F x) { return (uint16)wrap_32(x); }     \
    INLINE uint32 F##_to_uint32(F x) { return (uint32)wrap_32(x); }     \
    INLINE uint64 F##_to_uint64(F x) { return (uint64)wrap_64(x); }
INTEGERS_FROM(float32)
INTEGERS_FROM(float64)
#undef INTEGERS_FROM

/* As float32, but of two neighbours the one with the odd significand wherever x is neither, so that a rounding to
 * nearest even that follows is the only one. Source: S. Boldo, G. Melquiond, "Emulation of a FMA and correctly
 * rounded sums: proved algorithms using rounding to odd", IEEE Trans. Computers 57 (2008). */
INLINE float32 float64_to_odd_float32(float64 x) {
    float32 near = (float32)x;
    float64 back = (float64)near;
    int32 bits = as_int(near);
    int32 down = bits - (__builtin_elementwise_abs(back) > __builtin_elementwise_abs(x));
    return back == x || x != x ? near : as_float(down | 1);
}
INLINE float32 int32_to_odd_float32(int32 x) { return float64_to_odd_float32((float64)x); }
INLINE float32 uint32_to_odd_float32(uint32 x) { return float64_to_odd_float32((float64)x); }

/* Of 64 bits the lowest 11 become a sticky one where float64 would round them. */
INLINE float32 uint64_to_odd_float32(uint64 x) {
    uint64 sticky = (x & ~(uint64)0x7ff) | ((uint64)((x & 0x7ff) != 0) << 11);
    return float64_to_odd_float32((float64)(x < (uint64)1 << 53 ? x : sticky));
}
INLINE float32 int64_to_odd_float32(int64 x) {
    float32 size = uint64_to_odd_float32(x < 0 ? 0 - (uint64)x : (uint64)x);
    return x < 0 ? -size : size;
}
