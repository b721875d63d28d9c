/* exp and what is made of it, to an ulp of float64. A template: D, L and P are as in prelude_pair.h.
 *
 * exp(x) = 2^n exp(r) with |r| <= ln(2) / 2 by Cody and Waite's reduction: n times the upper part of ln(2) is exact.
 */
#define LN2_HI 0x1.62e42fefa3800p-1
#define LN2_LO 0x1.ef35793c76730p-45

/* exp(x.hi + x.lo) = (1 + hi + lo) 2^n, |x.hi| < 2^10. NaN stays NaN with any n. */
OVERLOAD P expm1_reduced(P x, L *n) {
    D shifted = x.hi * (D)0x1.71547652b82fep+0 + (D)0x1.8p52;
    D whole = shifted - (D)0x1.8p52;
    *n = as_int(shifted) - (L)0x4338000000000000;
    D upper = x.hi - whole * (D)LN2_HI; /* exact */
    D lower = x.lo - whole * (D)LN2_LO;
    D r = upper + lower;
    D rest = (upper - r) + lower;
    D tail = r * r * polynomial(r, EXP_TERMS, 11);
    return ordered_sum(r, tail + (rest + rest * r));
}

OVERLOAD P exp_reduced(P x, L *n) {
    P less = expm1_reduced(x, n);
    P sum = ordered_sum((D)1, less.hi);
    return ordered_sum(sum.hi, sum.lo + less.lo);
}

/* Beyond these limits all results are infinite, or zero. */
OVERLOAD D exp_pair(P x) {
    L n;
    P power = exp_reduced(x, &n);
    return scale(power.hi, n);
}
OVERLOAD D exp_float64(D x) {
    x = x > 710 ? (D)710 : x;
    x = x < -746 ? (D)-746 : x;
    return exp_pair((P){x, (D)0});
}

OVERLOAD D expm1_float64(D x) {
    L n;
    D inside = x > 710 ? (D)710 : x;
    inside = inside < -40 ? (D)-40 : inside;
    P less = expm1_reduced((P){inside, (D)0}, &n);
    /* 1 - 2^-n; beyond 2^60 what is subtracted no longer counts */
    D unit = as_float(((L)1023 - (n > 60 ? (L)60 : n)) << 52);
    P sum = two_sum((D)1 - unit, less.hi);
    D result = scale(sum.hi + (sum.lo + less.lo), n);
    return x == 0 ? x : result;
}

/* exp(|x|) 2^-n, and exp(-|x|) at the same scale. */
OVERLOAD P exp_and_inverse(D size, P *inverse, L *n) {
    P power = exp_reduced((P){size > 711 ? (D)711 : size, (D)0}, n);
    D inverted = 1 / power.hi;
    P back = two_product(inverted, power.hi);
    D shift = as_float(((L)1023 - 2 * (*n > 60 ? (L)60 : *n)) << 52);
    D rest = (((1 - back.hi) - back.lo) - inverted * power.lo) * inverted;
    *inverse = (P){inverted * shift, rest * shift};
    return power;
}

OVERLOAD D sinh_float64(D x) {
    L n;
    P inverse;
    D size = __builtin_elementwise_abs(x);
    D square = x * x;
    D near = size + size * (square * polynomial(square, SINH_TERMS, 7));
    P power = exp_and_inverse(size, &inverse, &n);
    P sum = two_sum(power.hi, -inverse.hi);
    D far = scale(sum.hi + (sum.lo + (power.lo - inverse.lo)), n - 1);
    return __builtin_elementwise_copysign(size < 1 ? near : far, x);
}

OVERLOAD D cosh_float64(D x) {
    L n;
    P inverse;
    P power = exp_and_inverse(__builtin_elementwise_abs(x), &inverse, &n);
    P sum = ordered_sum(power.hi, inverse.hi);
    return scale(sum.hi + (sum.lo + (power.lo + inverse.lo)), n - 1);
}

/* 1 - 2 / (exp(2 |x|) + 1), away from zero */
OVERLOAD D tanh_float64(D x) {
    L n;
    D size = __builtin_elementwise_abs(x);
    D square = x * x;
    D near = size + size * (square * polynomial(square, TANH_TERMS, 11));
    D doubled = size > 22 ? (D)44 : size + size;
    P power = exp_reduced((P){doubled, (D)0}, &n);
    D unit = as_float((n + 1023) << 52);
    P above = two_sum(power.hi * unit, (D)1);
    P fraction = pair_quotient((P){(D)2, (D)0}, (P){above.hi, above.lo + power.lo * unit});
    P result = ordered_sum((D)1, -fraction.hi);
    D far = result.hi + (result.lo - fraction.lo);
    return __builtin_elementwise_copysign(size < 0.55 ? near : far, x);
}

/* Away from zero 1 - erfc, whose error hardly counts. */
OVERLOAD D erf_float64(D x) {
    D size = __builtin_elementwise_abs(x);
    D square = x * x;
    /* x (1 + c0 + x^2 (c1 + ...)): the sums with c1 and c0 are large, so what they lose is carried along */
    P inner = ordered_sum((D)ERF_TERMS[1], square * polynomial(square, ERF_TERMS + 2, 13));
    P outer = two_product(inner.hi, square);
    P factor = two_sum((D)ERF_TERMS[0], outer.hi);
    D rest = factor.lo + (outer.lo + inner.lo * square + (D)ERF_FIRST_LOW);
    P sum = ordered_sum(size, size * factor.hi);
    D near = sum.hi + (sum.lo + size * rest);
    D far = size > 6 ? (D)6 : size;
    P negative = two_product(far, -far);
    D t = (far - 4) / (far + 4);
    D tail = exp_pair(negative) * polynomial(t, ERFC_TERMS, 15) / (far + 2);
    return __builtin_elementwise_copysign(size < 1.25 ? near : 1 - tail, x);
}

#undef LN2_HI
#undef LN2_LO
