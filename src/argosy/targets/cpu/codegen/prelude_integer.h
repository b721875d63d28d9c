/* Integers: the rules of ir/scalar.py, one function for each primitive and type, with no undefined behaviour.
 *
 * Sums and products are taken in unsigned arithmetic of at least 32 bits, which wraps.
 */
INLINE uint64 power_uint64(uint64 base, uint64 exponent) {
    uint64 result = 1;
    for (; exponent; exponent >>= 1, base *= base) result *= exponent & 1 ? base : 1;
    return result;
}

/* What signed and unsigned integers share. WIDE is unsigned and has at least 32 bits. */
#define INTEGER_RULES(T, WIDE)                                                \
    INLINE T neg_##T(T x) { return (T)(0 - (WIDE)x); }                        \
    INLINE T add_##T(T a, T b) { return (T)((WIDE)a + (WIDE)b); }             \
    INLINE T sub_##T(T a, T b) { return (T)((WIDE)a - (WIDE)b); }             \
    INLINE T mul_##T(T a, T b) { return (T)((WIDE)a * (WIDE)b); }             \
    INLINE T min_##T(T a, T b) { return b < a ? b : a; }                      \
    INLINE T max_##T(T a, T b) { return a < b ? b : a; }                      \
    INLINE T bitand_##T(T a, T b) { return (T)(a & b); }                      \
    INLINE T bitor_##T(T a, T b) { return (T)(a | b); }                       \
    INLINE T bitxor_##T(T a, T b) { return (T)(a ^ b); }                      \
    INLINE T bitnot_##T(T x) { return (T)~x; }                                \
    INLINE bool eq_##T(T a, T b) { return a == b; }                           \
    INLINE bool lt_##T(T a, T b) { return a < b; }                            \
    INLINE bool le_##T(T a, T b) { return a <= b; }                           \
    /* |x| = 1 has itself or 1 as its inverse; the inverse of all others truncates to 0, and so does 0's. */ \
    OVERLOAD T pow_##T(T base, uint64 exponent) { return (T)power_uint64((uint64)base, exponent); } \
    OVERLOAD T pow_##T(T base, int64 exponent) {                              \
        if (exponent >= 0) return (T)power_uint64((uint64)base, (uint64)exponent); \
        return base == 1 || base == (T)-1 && (T)-1 < 0 ? (exponent & 1 ? base : (T)1) : (T)0; \
    }

/* The divisor 0 and, for signed types, -1 are exchanged for 1: the quotient is not defined or leaves the range. */
#define SIGNED_RULES(T, WIDE, BITS)                                           \
    INTEGER_RULES(T, WIDE)                                                    \
    INLINE T abs_##T(T x) { return x < 0 ? neg_##T(x) : x; }                  \
    INLINE T sign_##T(T x) { return (T)((x > 0) - (x < 0)); }                 \
    INLINE T div_##T(T a, T b) { return b == 0 ? (T)0 : b == -1 ? neg_##T(a) : (T)(a / b); } \
    INLINE T fmod_##T(T a, T b) { return b == 0 || b == -1 ? (T)0 : (T)(a % b); } \
    INLINE T mod_##T(T a, T b) {                                              \
        T rest = fmod_##T(a, b);                                              \
        return rest != 0 && (rest < 0) != (b < 0) ? (T)(rest + b) : rest;     \
    }                                                                         \
    INLINE T shl_##T(T a, T b) { return b < 0 || b >= BITS ? (T)0 : (T)((WIDE)a << b); } \
    INLINE T shr_##T(T a, T b) { return (T)(a >> (b < 0 || b >= BITS ? BITS - 1 : b)); }

#define UNSIGNED_RULES(T, WIDE, BITS)                                         \
    INTEGER_RULES(T, WIDE)                                                    \
    INLINE T abs_##T(T x) { return x; }                                       \
    INLINE T sign_##T(T x) { return x != 0; }                                 \
    INLINE T div_##T(T a, T b) { return b == 0 ? (T)0 : (T)(a / b); }         \
    INLINE T fmod_##T(T a, T b) { return b == 0 ? (T)0 : (T)(a % b); }        \
    INLINE T mod_##T(T a, T b) { return fmod_##T(a, b); }                     \
    INLINE T shl_##T(T a, T b) { return b >= BITS ? (T)0 : (T)((WIDE)a << b); } \
    INLINE T shr_##T(T a, T b) { return b >= BITS ? (T)0 : (T)(a >> b); }

SIGNED_RULES(int8, uint32, 8)
SIGNED_RULES(int16, uint32, 16)
SIGNED_RULES(int32, uint32, 32)
SIGNED_RULES(int64, uint64, 64)
UNSIGNED_RULES(uint8, uint32, 8)
UNSIGNED_RULES(uint16, uint32, 16)
UNSIGNED_RULES(uint32, uint32, 32)
UNSIGNED_RULES(uint64, uint64, 64)

#undef INTEGER_RULES
#undef SIGNED_RULES
#undef UNSIGNED_RULES

/* Quotients towards minus infinity, for index arithmetic; the divisor is above zero. */
INLINE int64 floordiv_int64(int64 a, int64 b) { return a / b - (a % b < 0); }
INLINE int64 ceildiv_int64(int64 a, int64 b) { return a / b + (a % b > 0); }
INLINE int64 floormod_int64(int64 a, int64 b) { return a % b + (a % b < 0 ? b : 0); }
