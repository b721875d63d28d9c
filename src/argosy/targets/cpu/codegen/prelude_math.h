/* The functions of analysis. In float64 they are good to an ulp. Those of float32 are taken from there and rounded,
 * but for the ones that ought to be fast: with ARGOSY_EXACT all of them. */
#include "prelude_terms.h"

#define D float64
#define L int64
#define P pair_float64
#include "prelude_pair.h"
#undef D
#undef L
#undef P
#define D float64x16
#define L int64x16
#define P pair_float64x16
#include "prelude_pair.h"
#undef D
#undef L
#undef P

#include "prelude_angle.h"

#define D float64
#define L int64
#define P pair_float64
#include "prelude_exponential.h"
#include "prelude_logarithm.h"
#include "prelude_trigonometry.h"
#undef D
#undef L
#undef P
#define D float64x16
#define L int64x16
#define P pair_float64x16
#include "prelude_exponential.h"
#include "prelude_logarithm.h"
#include "prelude_trigonometry.h"
#undef D
#undef L
#undef P

#define BY_FLOAT64(NAME)                                                                  \
    OVERLOAD float32 NAME##_float32(float32 x) { return narrow(NAME##_float64(widen(x))); } \
    OVERLOAD float32x16 NAME##_float32(float32x16 x) { return narrow(NAME##_float64(widen(x))); }
BY_FLOAT64(tan)
BY_FLOAT64(asin)
BY_FLOAT64(acos)
BY_FLOAT64(atan)
BY_FLOAT64(sinh)
BY_FLOAT64(cosh)
BY_FLOAT64(asinh)
BY_FLOAT64(acosh)
BY_FLOAT64(atanh)

#ifdef ARGOSY_EXACT
BY_FLOAT64(exp)
BY_FLOAT64(expm1)
BY_FLOAT64(tanh)
BY_FLOAT64(erf)
BY_FLOAT64(log)
BY_FLOAT64(log1p)
OVERLOAD float32 pow_float32(float32 x, float32 y) { return narrow(pow_float64(widen(x), widen(y))); }
OVERLOAD float32x16 pow_float32(float32x16 x, float32x16 y) { return narrow(pow_float64(widen(x), widen(y))); }
#else
#define D float64
#define L int64
#define F float32
#define I int32
#include "prelude_single.h"
#undef D
#undef L
#undef F
#undef I
#define D float64x16
#define L int64x16
#define F float32x16
#define I int32x16
#include "prelude_single.h"
#undef D
#undef L
#undef F
#undef I
#endif

#if defined(ARGOSY_EXACT) || !ARGOSY_HAS_FMA
BY_FLOAT64(sin)
BY_FLOAT64(cos)
#else
#define F float32
#define I int32
#define P pair_float32
#include "prelude_single_angle.h"
#undef F
#undef I
#undef P
#define F float32x16
#define I int32x16
#define P pair_float32x16
#include "prelude_single_angle.h"
#undef F
#undef I
#undef P

#ifdef __AVX2__ /* it gathers rows of a table */
#include "prelude_turns.h"
#define reduce_single_angle reduce_any_angle
#else
static inline __attribute__((noinline)) pair_float32 reduce_wide_angle(float32 x, int32 *n) {
    int64 quadrant;
    pair_float64 r = reduce_angle(widen(x), &quadrant);
    float32 hi = narrow(r.hi);
    *n = low_half(quadrant);
    return (pair_float32){hi, narrow(r.hi - widen(hi))};
}
INLINE pair_float32 reduce_single_angle(float32 x, int32 *n) {
    return __builtin_elementwise_abs(x) < 0x1p17f ? reduce_small_angle(x, n) : reduce_wide_angle(x, n);
}
#endif

/* Of vectors, lanes beyond the short way go one by one: they are rare. */
INLINE pair_float32x16 reduce_single_angles(float32x16 x, int32x16 *n) {
    pair_float32x16 r = reduce_small_angle(x, n);
    int32x16 large = __builtin_elementwise_abs(x) >= 0x1p17f;
    if (__builtin_reduce_or(large))
        for (int lane = 0; lane < 16; ++lane)
            if (large[lane]) {
                int32 quadrant;
                pair_float32 angle = reduce_single_angle(x[lane], &quadrant);
                r.hi[lane] = angle.hi, r.lo[lane] = angle.lo, (*n)[lane] = quadrant;
            }
    return r;
}

OVERLOAD float32 sin_float32(float32 x) {
    int32 n;
    pair_float32 r = reduce_single_angle(x, &n);
    float32 result = sin_of_angle(r, n);
    return x == 0 ? x : result;
}
OVERLOAD float32 cos_float32(float32 x) {
    int32 n;
    pair_float32 r = reduce_single_angle(x, &n);
    return sin_of_angle(r, n + 1);
}
OVERLOAD float32x16 sin_float32(float32x16 x) {
    int32x16 n;
    pair_float32x16 r = reduce_single_angles(x, &n);
    float32x16 result = sin_of_angle(r, n);
    return x == 0 ? x : result;
}
OVERLOAD float32x16 cos_float32(float32x16 x) {
    int32x16 n;
    pair_float32x16 r = reduce_single_angles(x, &n);
    return sin_of_angle(r, n + 1);
}
#endif
#undef BY_FLOAT64

/* x^3 is common in approximations; by float64 it is rounded once and leaves the range only where it should. */
OVERLOAD float32 cube_float32(float32 x) { return narrow(widen(x) * widen(x) * widen(x)); }
OVERLOAD float32x16 cube_float32(float32x16 x) { return narrow(widen(x) * widen(x) * widen(x)); }
