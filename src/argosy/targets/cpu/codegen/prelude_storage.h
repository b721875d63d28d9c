/* Element types that are stored otherwise than computed: short floats, and types below a byte.
 *
 * A short float is known by its exponent and fraction widths, its bias, and what becomes of values beyond its
 * range. Widening is exact; narrowing rounds to nearest even and agrees with numpy and ml_dtypes in every code.
 */
#define SIGN_BIT ((int32)0x80000000)
#define INFINITY_BITS 0x7f800000

/* `magnitude` is a code without its sign, of a type with `fraction` bits below an exponent of this bias.
 * Codes of exponent 0 are read as 2^(1 - bias) * (1 + fraction), less that 1: no subnormal float32 is met. */
INLINE float32 widen_magnitude(int32 magnitude, int fraction, int bias) {
    int32 bits = (magnitude << (23 - fraction)) + ((127 - bias) << 23);
    float32 subnormal = as_float(bits + (1 << 23)) - as_float((128 - bias) << 23);
    return magnitude < 1 << fraction ? subnormal : as_float(bits);
}

/* The code of |x| in such a type, as if its exponents had no end; x is finite.
 * Below the least normal value the sum with a power of two leaves the rounded code in the low bits. */
INLINE int32 narrow_magnitude(float32 x, int fraction, int bias) {
    int32 bits = as_int(x) & ~SIGN_BIT;
    int shift = 23 - fraction;
    int32 rounded = bits + ((1 << (shift - 1)) - 1) + ((bits >> shift) & 1);
    int32 normal = (rounded >> shift) - ((127 - bias) << fraction);
    int32 anchor = (127 + shift + 1 - bias) << 23;
    int32 subnormal = as_int(as_float(bits) + as_float(anchor)) - anchor;
    return bits < (128 - bias) << 23 ? subnormal : normal;
}

INLINE int32 sign_code(float32 x, int width) { return (int32)((uint32)as_int(x) >> 31) << (width - 1); }

/* float16 and bfloat16 */

#if defined(__F16C__) || defined(__aarch64__)
INLINE float32 float16_to_float32(uint16 code) {
    _Float16 x;
    __builtin_memcpy(&x, &code, sizeof x);
    return (float32)x;
}
INLINE uint16 float32_to_float16(float32 x) {
    _Float16 rounded = (_Float16)x;
    uint16 code;
    __builtin_memcpy(&code, &rounded, sizeof code);
    return code;
}
#else
INLINE float32 float16_to_float32(uint16 code) {
    int32 magnitude = code & 0x7fff;
    int32 special = INFINITY_BITS | (magnitude << 13);
    int32 bits = magnitude < 0x7c00 ? as_int(widen_magnitude(magnitude, 10, 15)) : special;
    return as_float(bits | (int32)((uint32)(code & 0x8000) << 16));
}
INLINE uint16 float32_to_float16(float32 x) {
    int32 size = as_int(x) & ~SIGN_BIT;
    int32 code = narrow_magnitude(x, 10, 15);
    code = size >= 0x477ff000 ? 0x7c00 : code; /* from 65520 on, infinity is the nearest */
    code = size > INFINITY_BITS ? 0x7e00 | ((size >> 13) & 0x3ff) : code;
    return (uint16)(code | sign_code(x, 16));
}
#endif

INLINE float32 bfloat16_to_float32(uint16 code) { return as_float((int32)((uint32)code << 16)); }
INLINE uint16 float32_to_bfloat16(float32 x) {
    uint32 bits = (uint32)as_int(x);
    uint32 rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    uint32 nan = ((bits >> 16) & 0x8000) | 0x7fc0;
    return (uint16)(x != x ? nan : rounded);
}

/* float8: `fn` types have no infinities and one NaN for each sign, `fnuz` types one zero and one NaN, 0x80. */

INLINE float32 signed_float(float32 magnitude, int32 negative) {
    return as_float(as_int(magnitude) | (negative ? SIGN_BIT : 0));
}
INLINE float32 float8_e4m3fn_to_float32(uint8 code) {
    int32 magnitude = code & 0x7f;
    return signed_float(magnitude == 0x7f ? __builtin_nanf("") : widen_magnitude(magnitude, 3, 7), code & 0x80);
}
INLINE float32 float8_e5m2_to_float32(uint8 code) { return float16_to_float32((uint16)(code << 8)); }
INLINE float32 float8_e4m3fnuz_to_float32(uint8 code) {
    return code == 0x80 ? -__builtin_nanf("") : signed_float(widen_magnitude(code & 0x7f, 3, 8), code & 0x80);
}
INLINE float32 float8_e5m2fnuz_to_float32(uint8 code) {
    return code == 0x80 ? -__builtin_nanf("") : signed_float(widen_magnitude(code & 0x7f, 2, 16), code & 0x80);
}
INLINE uint8 float32_to_float8_e4m3fn(float32 x) {
    int32 code = narrow_magnitude(x, 3, 7);
    return (uint8)((code >= 0x7f ? 0x7f : code) | sign_code(x, 8));
}
INLINE uint8 float32_to_float8_e5m2(float32 x) {
    int32 code = narrow_magnitude(x, 2, 15);
    code = code >= 0x7c ? 0x7c : code;
    return (uint8)((x != x ? 0x7e : code) | sign_code(x, 8));
}
INLINE uint8 narrow_fnuz(float32 x, int fraction, int bias) {
    int32 code = narrow_magnitude(x, fraction, bias);
    int32 whole = code | (code == 0 ? 0 : sign_code(x, 8));
    return (uint8)(code > 0x7f ? 0x80 : whole);
}
INLINE uint8 float32_to_float8_e4m3fnuz(float32 x) { return narrow_fnuz(x, 3, 8); }
INLINE uint8 float32_to_float8_e5m2fnuz(float32 x) { return narrow_fnuz(x, 2, 16); }

/* e8m0: a power of two, its code the biased exponent; 0xff is NaN, and so are all that are not above zero. */
INLINE float32 float8_e8m0fnu_to_float32(uint8 code) {
    int32 bits = code == 0 ? 1 << 22 : code << 23; /* 2^-127 is subnormal in float32 */
    return as_float(code == 0xff ? 0x7fc00000 : bits);
}
INLINE uint8 float32_to_float8_e8m0fnu(float32 x) {
    int32 bits = as_int(x);
    int32 small = bits >= 3 << 21; /* below 2^-126 lies 2^-127 alone */
    int32 code = bits < 1 << 23 ? small : (int32)(((uint32)bits + (1u << 22)) >> 23);
    return (uint8)(bits <= 0 || bits > INFINITY_BITS ? 0xff : code);
}

/* float6 and float4 have neither infinities nor NaN: large values saturate, NaN becomes a zero. */
INLINE uint8 narrow_finite(float32 x, int fraction, int bias, int width) {
    int32 largest = (1 << (width - 1)) - 1;
    int32 code = narrow_magnitude(x, fraction, bias);
    code = code > largest ? largest : code;
    return (uint8)(x != x ? (1 << (width - 1)) ^ sign_code(x, width) : code | sign_code(x, width));
}
INLINE float32 float6_e2m3fn_to_float32(uint8 code) {
    return signed_float(widen_magnitude(code & 0x1f, 3, 1), code & 0x20);
}
INLINE float32 float6_e3m2fn_to_float32(uint8 code) {
    return signed_float(widen_magnitude(code & 0x1f, 2, 3), code & 0x20);
}
INLINE float32 float4_e2m1fn_to_float32(uint8 code) {
    return signed_float(widen_magnitude(code & 0x7, 1, 1), code & 0x8);
}
INLINE uint8 float32_to_float6_e2m3fn(float32 x) { return narrow_finite(x, 3, 1, 6); }
INLINE uint8 float32_to_float6_e3m2fn(float32 x) { return narrow_finite(x, 2, 3, 6); }
INLINE uint8 float32_to_float4_e2m1fn(float32 x) { return narrow_finite(x, 1, 1, 4); }

/* Integers below a byte: the low bits of their byte count, the others are written as zeros. */
INLINE int8 int4_to_int8(uint8 code) { return (int8)(((code & 15) ^ 8) - 8); }
INLINE int8 int2_to_int8(uint8 code) { return (int8)(((code & 3) ^ 2) - 2); }
INLINE uint8 uint4_to_uint8(uint8 code) { return code & 15; }
INLINE uint8 uint2_to_uint8(uint8 code) { return code & 3; }
INLINE uint8 int8_to_int4(int8 x) { return x & 15; }
INLINE uint8 int8_to_int2(int8 x) { return x & 3; }
INLINE uint8 uint8_to_uint4(uint8 x) { return x & 15; }
INLINE uint8 uint8_to_uint2(uint8 x) { return x & 3; }

/* Code number `index` of a stream of codes of 2, 4 or 6 bits, each in the lowest bits that are free. */
INLINE uint8 unpack_2(const uint8 *from, int64 index) { return (from[index >> 2] >> (2 * (index & 3))) & 3; }
INLINE uint8 unpack_4(const uint8 *from, int64 index) { return (from[index >> 1] >> (4 * (index & 1))) & 15; }
INLINE uint8 unpack_6(const uint8 *from, int64 index) {
    int64 bit = 6 * index;
    int shift = bit & 7;
    int code = from[bit >> 3] >> shift;
    if (shift > 2) code |= from[(bit >> 3) + 1] << (8 - shift); /* else the next byte may be past the end */
    return code & 63;
}
