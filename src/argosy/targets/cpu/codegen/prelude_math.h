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
BY_FLOAT64(expm1)
BY_FLOAT64(sin)
BY_FLOAT64(cos)
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
BY_FLOAT64(tanh)
BY_FLOAT64(erf)
BY_FLOAT64(log)
BY_FLOAT64(log1p)
#else
#define F float32
#define I int32
#include "prelude_single.h"
#undef F
#undef I
#define F float32x16
#define I int32x16
#include "prelude_single.h"
#undef F
#undef I
#endif
#undef BY_FLOAT64
OVERLOAD float32 pow_float32(float32 x, float32 y) { return narrow(pow_float64(widen(x), widen(y))); }
OVERLOAD float32x16 pow_float32(float32x16 x, float32x16 y) { return narrow(pow_float64(widen(x), widen(y))); }
