/* Complex numbers as pairs, computed as numpy computes them. */
/* Division scales by the larger part of the divisor. Source: R. L. Smith, "Algorithm 116: Complex division",
 * Comm. ACM 5 (1962). Zero divided by is the quotient by its real zero, part by part. */
#define COMPLEX_RULES(C, F)                                                                    \
    typedef struct {                                                                           \
        F re, im;                                                                              \
    } C;                                                                                       \
    INLINE C neg_##C(C x) { return (C){-x.re, -x.im}; }                                        \
    INLINE C add_##C(C a, C b) { return (C){a.re + b.re, a.im + b.im}; }                       \
    INLINE C sub_##C(C a, C b) { return (C){a.re - b.re, a.im - b.im}; }                       \
    INLINE C mul_##C(C a, C b) { return (C){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; } \
    INLINE C div_##C(C a, C b) {                                                               \
        F re = __builtin_elementwise_abs(b.re), im = __builtin_elementwise_abs(b.im);          \
        if (re == 0 && im == 0) return (C){a.re / re, a.im / re};                              \
        if (re >= im) {                                                                        \
            F ratio = b.im / b.re, scale = 1 / (b.re + b.im * ratio);                          \
            return (C){(a.re + a.im * ratio) * scale, (a.im - a.re * ratio) * scale};          \
        }                                                                                      \
        F ratio = b.re / b.im, scale = 1 / (b.im + b.re * ratio);                              \
        return (C){(a.re * ratio + a.im) * scale, (a.im * ratio - a.re) * scale};              \
    }                                                                                          \
    INLINE bool eq_##C(C a, C b) { return a.re == b.re && a.im == b.im; }
COMPLEX_RULES(complex64, float32)
COMPLEX_RULES(complex128, float64)
#undef COMPLEX_RULES

INLINE complex128 complex64_to_complex128(complex64 x) { return (complex128){x.re, x.im}; }
INLINE complex64 complex128_to_complex64(complex128 x) { return (complex64){(float32)x.re, (float32)x.im}; }
