/* Types of fixed width under the names of the element types, and the few operations that C has no word for.
 *
 * Every function of the prelude that has a vector form is overloaded over scalars and vectors of 16 lanes, so
 * that one expression text serves loops, which clang vectorises, and epilogues on registers. A comparison of
 * scalars gives 0 or 1 and one of vectors gives lanes of 0 or -1; both steer `?:`, `&` and `|` alike.
 */
typedef __INT8_TYPE__ int8;
typedef __INT16_TYPE__ int16;
typedef __INT32_TYPE__ int32;
typedef __INT64_TYPE__ int64;
typedef __UINT8_TYPE__ uint8;
typedef __UINT16_TYPE__ uint16;
typedef __UINT32_TYPE__ uint32;
typedef __UINT64_TYPE__ uint64;
typedef float float32;
typedef double float64;
#if !defined(__STDC_VERSION__) || __STDC_VERSION__ < 202311L
typedef _Bool bool;
#endif

typedef int8 int8x16 __attribute__((ext_vector_type(16)));
typedef uint8 uint8x16 __attribute__((ext_vector_type(16)));
typedef uint16 uint16x16 __attribute__((ext_vector_type(16)));
typedef int32 int32x16 __attribute__((ext_vector_type(16)));
typedef int64 int64x16 __attribute__((ext_vector_type(16)));
typedef uint32 uint32x16 __attribute__((ext_vector_type(16)));
typedef uint64 uint64x16 __attribute__((ext_vector_type(16)));
typedef float32 float32x16 __attribute__((ext_vector_type(16)));
typedef float64 float64x16 __attribute__((ext_vector_type(16)));

/* Always inline: a call that stays would keep the loop around it scalar. */
#define INLINE static inline __attribute__((always_inline))
#define OVERLOAD static inline __attribute__((always_inline, overloadable))

/* The bits of a float as an integer of its width, and back. */
OVERLOAD int32 as_int(float32 x) {
    int32 bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    return bits;
}
OVERLOAD int64 as_int(float64 x) {
    int64 bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    return bits;
}
OVERLOAD float32 as_float(int32 bits) {
    float32 x;
    __builtin_memcpy(&x, &bits, sizeof x);
    return x;
}
OVERLOAD float64 as_float(int64 bits) {
    float64 x;
    __builtin_memcpy(&x, &bits, sizeof x);
    return x;
}
OVERLOAD int32x16 as_int(float32x16 x) { return (int32x16)x; }
OVERLOAD int64x16 as_int(float64x16 x) { return (int64x16)x; }
OVERLOAD float32x16 as_float(int32x16 bits) { return (float32x16)bits; }
OVERLOAD float64x16 as_float(int64x16 bits) { return (float64x16)bits; }

/* Conversions between float and integer of one width; towards zero, the value in range. */
OVERLOAD int32 to_int(float32 x) { return (int32)x; }
OVERLOAD int64 to_int(float64 x) { return (int64)x; }
OVERLOAD int32x16 to_int(float32x16 x) { return __builtin_convertvector(x, int32x16); }
OVERLOAD int64x16 to_int(float64x16 x) { return __builtin_convertvector(x, int64x16); }
OVERLOAD float32 to_float(int32 x) { return (float32)x; }
OVERLOAD float64 to_float(int64 x) { return (float64)x; }
OVERLOAD float32x16 to_float(int32x16 x) { return __builtin_convertvector(x, float32x16); }
OVERLOAD float64x16 to_float(int64x16 x) { return __builtin_convertvector(x, float64x16); }

/* Between the two widths of float: exact, and to nearest even. */
OVERLOAD float64 widen(float32 x) { return (float64)x; }
OVERLOAD float64x16 widen(float32x16 x) { return __builtin_convertvector(x, float64x16); }
OVERLOAD float32 narrow(float64 x) { return (float32)x; }
OVERLOAD float32x16 narrow(float64x16 x) { return __builtin_convertvector(x, float32x16); }

OVERLOAD int32 low_half(int64 x) { return (int32)x; }
OVERLOAD int32x16 low_half(int64x16 x) { return __builtin_convertvector(x, int32x16); }

/* Sixteen numbers at an address that need be aligned to one of them only, and four bytes at any. */
#define SIXTEEN(T)                                                                              \
    typedef T##x16 T##x16_unaligned __attribute__((aligned(sizeof(T))));                        \
    INLINE T##x16 load_##T##x16(const T *from) { return *(const T##x16_unaligned *)from; }      \
    INLINE void store_##T##x16(T *to, T##x16 x) { *(T##x16_unaligned *)to = x; }
SIXTEEN(int8)
SIXTEEN(uint8)
SIXTEEN(uint16)
SIXTEEN(int32)
SIXTEEN(int64)
SIXTEEN(float32)
#undef SIXTEEN
INLINE uint32 load_word(const void *from) {
    uint32 word;
    __builtin_memcpy(&word, from, sizeof word);
    return word;
}

/* a * b + c, rounded once where the machine has the instruction and twice where it does not. */
#if defined(__FMA__) || defined(__aarch64__) || defined(__riscv_f) || defined(__VSX__)
#define ARGOSY_HAS_FMA 1
#define MULADD(T) \
    OVERLOAD T muladd(T a, T b, T c) { return __builtin_elementwise_fma(a, b, c); }
#else
#define ARGOSY_HAS_FMA 0
#define MULADD(T) \
    OVERLOAD T muladd(T a, T b, T c) { return a * b + c; }
#endif
MULADD(float32)
MULADD(float64)
MULADD(float32x16)
MULADD(float64x16)
#undef MULADD

/* x * 2^n with one rounding, |n| at most 2^(width of the exponent + 1). */
#if defined(__AVX512F__) && defined(__AVX512VL__)
#define SCALE(T, I) \
    OVERLOAD T scale(T x, I n) { return __builtin_elementwise_ldexp(x, n); }
SCALE(float32, int32)
SCALE(float32x16, int32x16)
#undef SCALE
#else
/* Two factors, each in range: the first product is exact, for it stays normal. */
#define SCALE(T, I)                                                           \
    OVERLOAD T scale(T x, I n) {                                              \
        I half = n >> 1;                                                      \
        return x * as_float((half + 127) << 23) * as_float((n - half + 127) << 23); \
    }
SCALE(float32, int32)
SCALE(float32x16, int32x16)
#undef SCALE
#endif
#define SCALE(T, I)                                                             \
    OVERLOAD T scale(T x, I n) {                                                \
        I half = n >> 1;                                                        \
        return x * as_float((half + 1023) << 52) * as_float((n - half + 1023) << 52); \
    }
SCALE(float64, int64)
SCALE(float64x16, int64x16)
#undef SCALE
