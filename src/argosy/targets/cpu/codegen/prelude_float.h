/* The float primitives that are a few instructions each: the rules of ir/scalar.py, over scalars and vectors. */
/* F names the functions, T is the type and M that of a comparison's result. */
#define FLOAT_RULES(F, T, M)                                                              \
    OVERLOAD T abs_##F(T x) { return __builtin_elementwise_abs(x); }                      \
    OVERLOAD T sign_##F(T x) { return x > 0 ? (T)1 : x < 0 ? (T)-1 : x + (T)0; }          \
    OVERLOAD T floor_##F(T x) { return __builtin_elementwise_floor(x); }                  \
    OVERLOAD T ceil_##F(T x) { return __builtin_elementwise_ceil(x); }                    \
    OVERLOAD T round_##F(T x) { return __builtin_elementwise_roundeven(x); }              \
    OVERLOAD T sqrt_##F(T x) { return __builtin_elementwise_sqrt(x); }                    \
    OVERLOAD M isnan_##F(T x) { return x != x; }                                          \
    OVERLOAD M isinf_##F(T x) { return __builtin_elementwise_abs(x) == (T)__builtin_inf(); } \
    /* a comparison with NaN is false, so a NaN in b comes out by itself */               \
    OVERLOAD T min_##F(T a, T b) {                                                        \
        T least = a < b ? a : b;                                                          \
        return a != a ? a : least;                                                        \
    }                                                                                     \
    OVERLOAD T max_##F(T a, T b) {                                                        \
        T most = a > b ? a : b;                                                           \
        return a != a ? a : most;                                                         \
    }
FLOAT_RULES(float32, float32, bool)
FLOAT_RULES(float64, float64, bool)
FLOAT_RULES(float32, float32x16, int32x16)
FLOAT_RULES(float64, float64x16, int64x16)
#undef FLOAT_RULES

/* |a| mod |b| for finite a and b, neither zero, by long division of the significands: exact.
 * BITS is the width of the significand with its leading one, LIMIT how many bits a step may bring down. */
#define FMOD_RULES(F, T, I, U, BITS, LIMIT)                                               \
    static inline T fmod_significands_##F(T a, T b) {                                     \
        U one = (U)1 << (BITS - 1);                                                       \
        U x = (U)as_int(a) & ((U)-1 >> 1), y = (U)as_int(b) & ((U)-1 >> 1);               \
        if (x < y) return as_float((I)x);                                                 \
        int up = (int)(x >> (BITS - 1)), down = (int)(y >> (BITS - 1));                   \
        uint64 rest = up ? (x & (one - 1)) | one : x, divisor = down ? (y & (one - 1)) | one : y; \
        int shift = (up ? up : 1) - (down ? down : 1), exponent = down ? down : 1;        \
        for (rest %= divisor; shift > 0 && rest; shift -= LIMIT)                          \
            rest = (rest << (shift < LIMIT ? shift : LIMIT)) % divisor;                   \
        if (rest == 0) return 0;                                                          \
        int lead = __builtin_clzll(rest) - (64 - BITS), move = lead < exponent - 1 ? lead : exponent - 1; \
        rest <<= move;                                                                    \
        exponent -= move;                                                                 \
        return as_float((I)(rest >= one ? rest - one + ((uint64)exponent << (BITS - 1)) : rest)); \
    }                                                                                     \
    OVERLOAD T fmod_##F(T a, T b) {                                                       \
        T size = __builtin_elementwise_abs(a), divisor = __builtin_elementwise_abs(b);    \
        if (!(size < (T)__builtin_inf()) || !(divisor > 0)) return (T)__builtin_nan("");  \
        if (size < divisor) return a;                                                     \
        return __builtin_elementwise_copysign(fmod_significands_##F(size, divisor), a);   \
    }                                                                                     \
    /* as numpy: a remainder of zero has the divisor's sign */                            \
    OVERLOAD T mod_##F(T a, T b) {                                                        \
        T rest = fmod_##F(a, b);                                                          \
        if (rest == 0) return __builtin_elementwise_copysign((T)0, b);                    \
        return (rest < 0) != (b < 0) ? rest + b : rest;                                   \
    }
FMOD_RULES(float32, float32, int32, uint32, 24, 40)
FMOD_RULES(float64, float64, int64, uint64, 53, 11)
#undef FMOD_RULES

/* Of vectors lane by lane: no machine divides so. */
#define LANES_RULE(NAME)                                                                  \
    OVERLOAD float32x16 NAME##_float32(float32x16 a, float32x16 b) {                      \
        for (int lane = 0; lane < 16; ++lane) a[lane] = NAME##_float32(a[lane], b[lane]); \
        return a;                                                                         \
    }
LANES_RULE(fmod)
LANES_RULE(mod)
#undef LANES_RULE

OVERLOAD float32 bool_to_float32(bool x) { return x; }
OVERLOAD float32x16 bool_to_float32(int32x16 mask) { return mask ? (float32x16)1 : (float32x16)0; }

/* What C says of pow at the edges, given |x|^y, for x and y as they are. */
#define POW_EDGES(T, F)                                                                   \
    OVERLOAD T pow_edges_##F(T x, T y, T power) {                                         \
        T size = __builtin_elementwise_abs(x), half = (T)0.5 * y;                         \
        T negative = __builtin_elementwise_copysign((T)1, x);                             \
        T fraction = y - __builtin_elementwise_floor(y); /* NaN for infinities: they are even */ \
        T odd = fraction == 0 ? half - __builtin_elementwise_floor(half) : (T)0;          \
        T result = size == 1 ? (y == y ? (T)1 : y) : power;                               \
        result = odd != 0 ? __builtin_elementwise_copysign(result, negative) : result;    \
        T outside = ((x < 0) & (size < (T)__builtin_inf()) & (fraction > 0)) ? (T)__builtin_nan("") : result; \
        return ((x == 1) | (y == 0)) ? (T)1 : outside;                                    \
    }
POW_EDGES(float32, float32)
POW_EDGES(float64, float64)
POW_EDGES(float32x16, float32)
POW_EDGES(float64x16, float64)
#undef POW_EDGES
