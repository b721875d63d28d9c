/* Functions that stay in float32, for speed, with an error of about an ulp: docs/accuracy.md states each.
 *
 * A template: F is float32 or a vector of them, I the integers of its width, D and L float64 and its integers. There are no branches, so loops over
 * them become vector code. Polynomials are minimax, by Remez' exchange, their coefficients moved by single ulps to
 * the set of float32 numbers that errs least.
 */
#define LN2_HI 0x1.62e4p-1f /* short: its products with exponents are exact */
#define LN2_LO 0x1.7f7d1cp-20f

/* (exp(r) - 1 - r) / r^2 for |r| <= ln(2) / 2; exp(r) errs by 2^-27. */
OVERLOAD F exp_tail(F r) {
    F sum = muladd((F)0x1.6d7c50p-10f, r, (F)0x1.1210c2p-7f);
    sum = muladd(sum, r, (F)0x1.5554cep-5f);
    sum = muladd(sum, r, (F)0x1.5554d8p-3f);
    return muladd(sum, r, (F)0.5f);
}
OVERLOAD F exp_series(F r) { return muladd(muladd(exp_tail(r), r, (F)1.0f), r, (F)1.0f); }

/* x = n ln(2) + the result, |x| < 2^8. NaN stays NaN, with any n. */
OVERLOAD F exp_argument(F x, I *n) {
    F shifted = muladd(x, (F)0x1.715476p+0f, (F)0x1.8p23f);
    F whole = shifted - (F)0x1.8p23f;
    *n = as_int(shifted) - (I)0x4b400000;
    return muladd(whole, (F)-LN2_LO, muladd(whole, (F)-LN2_HI, x));
}

/* exp(x) = 2^n times the result. */
OVERLOAD F exp_reduced(F x, I *n) { return exp_series(exp_argument(x, n)); }

OVERLOAD F exp_float32(F x) {
    I n;
    x = x > 89.0f ? (F)89.0f : x;
    x = x < -104.0f ? (F)-104.0f : x;
    F power = exp_reduced(x, &n);
    return scale(power, n);
}

/* exp(x) - 1 = 2^n ((exp(r) - 1) + (1 - 2^-n)); beyond 2^30 what is subtracted no longer counts. */
OVERLOAD F expm1_float32(F x) {
    I n;
    F limited = x > 89.0f ? (F)89.0f : x;
    limited = limited < -20.0f ? (F)-20.0f : limited;
    F r = exp_argument(limited, &n);
    F less = muladd(r * r, exp_tail(r), r);
    F unit = as_float((127 - (n > 30 ? (I)30 : n)) << 23);
    F result = scale((1.0f - unit) + less, n);
    return x == 0.0f ? x : result;
}

/* 1 - 2 / (exp(2 |x|) + 1), away from zero. NaN takes the near branch, which keeps it. */
OVERLOAD F tanh_float32(F x) {
    I n;
    F size = __builtin_elementwise_abs(x), square = x * x;
    F sum = muladd((F)-0x1.9f0900p-8f, square, (F)0x1.59fb24p-6f);
    sum = muladd(sum, square, (F)-0x1.b94228p-5f);
    sum = muladd(sum, square, (F)0x1.110ddap-3f);
    sum = muladd(sum, square, (F)-0x1.55554ep-2f);
    F near = muladd(size * square, sum, size);
    F power = exp_reduced(size > 10.0f ? (F)20.0f : size + size, &n);
    F far = 1.0f - 2.0f / (as_float(as_int(power) + (n << 23)) + 1.0f);
    return __builtin_elementwise_copysign(size >= 0.55f ? far : near, x);
}

/* Away from zero 1 - exp(log(erfc(|x|))), the logarithm being a polynomial; it is 1 from 3.93 on. */
OVERLOAD F erf_float32(F x) {
    I n;
    F size = __builtin_elementwise_abs(x), square = x * x;
    F sum = muladd((F)0x1.4ae170p-14f, square, (F)-0x1.a484bap-11f);
    sum = muladd(sum, square, (F)0x1.5419d0p-8f);
    sum = muladd(sum, square, (F)-0x1.b7fbacp-6f);
    sum = muladd(sum, square, (F)0x1.ce2d24p-4f);
    sum = muladd(sum, square, (F)-0x1.812740p-2f);
    sum = muladd(sum, square, (F)0x1.06eba8p-3f);
    F near = muladd(size, sum, size);
    F limited = size > 3.93f ? (F)3.93f : size;
    F log = muladd((F)0x1.85664ap-13f, limited, (F)-0x1.817196p-9f);
    log = muladd(log, limited, (F)0x1.655570p-6f);
    log = muladd(log, limited, (F)-0x1.a61512p-4f);
    log = muladd(log, limited, (F)-0x1.46c3eep-1f);
    log = muladd(log, limited, (F)-0x1.208632p+0f);
    log = muladd(log, limited, (F)-0x1.70d3aap-12f);
    F power = exp_reduced(log, &n);
    F far = 1.0f - as_float(as_int(power) + (n << 23));
    return __builtin_elementwise_copysign(size >= 1.0f ? far : near, x);
}

/* log(2^shift x (1 + rest)) for x above zero, finite and normal: x = m 2^e, m in [sqrt(1/2), sqrt(2)), f = m - 1. */
OVERLOAD F log_normal(F x, F rest, F shift) {
    I e = (as_int(x) - (I)0x3f3504f3) >> 23;
    F f = as_float(as_int(x) - (e << 23)) - 1.0f;
    F power = to_float(e) + shift, square = f * f;
    F sum = muladd((F)-0x1.44033ep-4f, f, (F)0x1.075accp-3f);
    sum = muladd(sum, f, (F)-0x1.0c432ap-3f);
    sum = muladd(sum, f, (F)0x1.227b0ap-3f);
    sum = muladd(sum, f, (F)-0x1.548b6ap-3f);
    sum = muladd(sum, f, (F)0x1.99a526p-3f);
    sum = muladd(sum, f, (F)-0x1.0001d0p-2f);
    sum = muladd(sum, f, (F)0x1.55554cp-2f);
    F tail = muladd(f * square, sum, muladd(power, (F)LN2_LO, rest));
    F upper = power * LN2_HI;
    F lead = upper + f;
    F lost = f - (lead - upper);
    return lead + (lost + muladd((F)-0.5f, square, tail));
}
OVERLOAD F log_edges(F x, F result) {
    F outside = x == 0.0f ? (F)-__builtin_inff() : (F)__builtin_nanf("");
    result = x > 0.0f ? result : outside;
    return x < __builtin_inff() ? result : x;
}
OVERLOAD F log_float32(F x) {
    F normal = x < 0x1p-126f ? x * 0x1p23f : x;
    F shift = x < 0x1p-126f ? (F)-23.0f : (F)0.0f;
    return log_edges(x, log_normal(normal, (F)0.0f, shift));
}
OVERLOAD F log1p_float32(F x) {
    F u = 1.0f + x, part = u - 1.0f;
    F lost = (1.0f - (u - part)) + (x - part);
    F result = log_edges(u, log_normal(u, lost / u, (F)0.0f));
    return x == 0.0f ? x : result;
}

/* exp(y log |x|), the product in float64: the logarithm's series errs by 2^-37 of it. */
OVERLOAD F pow_float32(F x, F y) {
    F size = __builtin_elementwise_abs(x);
    D wide = widen(size);
    L e = (as_int(wide) - (L)0x3fe6a09e667f3bcd) >> 52;
    D f = as_float(as_int(wide) - (e << 52)) - 1;
    D s = f / (2 + f), z = s * s;
    D sum = muladd((D)0x1.e1e15213d2fa0p-3, z, (D)0x1.24415ed40374ap-2);
    sum = muladd(sum, z, (D)0x1.999a51015e197p-2);
    sum = muladd(sum, z, (D)0x1.5555551bbc9c9p-1);
    D log = muladd(small_to_float(e), (D)0x1.62e42fefa39efp-1, muladd(s * z, sum, s + s));
    D product = widen(y) * log;
    product = product > 89 ? (D)89 : product;
    product = product < -104 ? (D)-104 : product;
    D shifted = muladd(product, (D)0x1.71547652b82fep+0, (D)0x1.8p52);
    D whole = shifted - (D)0x1.8p52;
    I n = low_half(as_int(shifted));
    F power = scale(exp_series(narrow(muladd(whole, (D)-0x1.62e42fefa39efp-1, product))), n);
    F ended = (size == 0) == (y < 0) ? (F)__builtin_inff() : (F)0;
    power = ((size == 0) | (size == (F)__builtin_inff())) ? ended : power;
    return pow_edges_float32(x, y, ((x != x) | (y != y)) ? x + y : power);
}

#undef LN2_HI
#undef LN2_LO
