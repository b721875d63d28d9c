/* log and what is made of it, and pow, to an ulp of float64. A template: D, L and P are as in prelude_pair.h.
 *
 * x = m 2^e with m in [sqrt(1/2), sqrt(2)); log(m) is a series in s = (m - 1) / (m + 1), and 2 s = f - s f with f = m - 1,
 * so that the leading term is exact.
 */
#define LN2_HI 0x1.62e42fefa3800p-1
#define LN2_LO 0x1.ef35793c76730p-45

/* log(2^shift (u.hi + u.lo)) for u.hi above zero, finite and normal. */
OVERLOAD D log_pair(P u, D shift) {
    u = ordered_sum(u.hi, u.lo); /* of u.lo only the first power is taken below: it has to be small */
    L e = (as_int(u.hi) - (L)0x3fe6a09e667f3bcd) >> 52;
    D m = as_float(as_int(u.hi) - (e << 52));
    D rest = u.lo / u.hi;
    D power = small_to_float(e) + shift;
    D f = m - 1;
    D s = f / (2 + f), z = s * s;
    D half = (D)0.5 * f * f;
    P lead = ordered_sum(power * (D)LN2_HI, f);
    D tail = s * (half + z * polynomial(z, LOG_TERMS, 8)) + (power * (D)LN2_LO + rest);
    return lead.hi + (lead.lo - (half - tail));
}

/* What log gives where the formula does not hold: x is not above zero, or not finite. */
OVERLOAD D log_edges(D x, D result) {
    D outside = x == 0 ? (D)-__builtin_inf() : (D)__builtin_nan("");
    result = x > 0 ? result : outside;
    return x < (D)__builtin_inf() ? result : x; /* +inf; and NaN of its own sign */
}

OVERLOAD D log_float64(D x) {
    D normal = x < (D)0x1p-1022 ? x * (D)0x1p54 : x;
    D result = log_pair((P){normal, (D)0}, x < (D)0x1p-1022 ? (D)-54 : (D)0);
    return log_edges(x, result);
}

OVERLOAD D log1p_float64(D x) {
    D result = log_edges(1 + x, log_pair(two_sum((D)1, x), (D)0));
    return x == 0 ? x : result;
}

/* log(x + sqrt(x^2 + sign)) for x above zero; from 2^28 on it is log(2 x). */
OVERLOAD D log_of_root(D x, float64 sign) {
    D inside = x > (D)0x1p28 ? (D)0x1p28 : x;
    P square = two_product(inside, inside);
    P sum = two_sum(square.hi, (D)sign);
    P root = pair_sqrt(ordered_sum(sum.hi, sum.lo + square.lo));
    P whole = two_sum(inside, root.hi);
    P u = {x > (D)0x1p28 ? x : whole.hi, x > (D)0x1p28 ? (D)0 : whole.lo + root.lo};
    D result = log_pair(u, x > (D)0x1p28 ? (D)1 : (D)0);
    return x < (D)__builtin_inf() ? result : x;
}
OVERLOAD D asinh_float64(D x) {
    D size = __builtin_elementwise_abs(x);
    D result = log_of_root(size, 1);
    return size < (D)0x1p-27 ? x : __builtin_elementwise_copysign(result, x);
}
OVERLOAD D acosh_float64(D x) {
    D result = log_of_root(x, -1);
    return x < 1 ? (D)__builtin_nan("") : result;
}

OVERLOAD D atanh_float64(D x) {
    D size = __builtin_elementwise_abs(x);
    P ratio = pair_quotient(two_sum((D)1, size), two_sum((D)1, -size));
    D result = (D)0.5 * log_pair(ratio, (D)0);
    result = size < 1 ? result : size == 1 ? (D)__builtin_inf() : (D)__builtin_nan("");
    return size < (D)0x1p-27 ? x : __builtin_elementwise_copysign(result, x);
}

/* log(x) as a pair good to 2^-64 of itself, for x above zero and normal: as above, with the terms up to s^3 in pairs. */
OVERLOAD P log_as_pair(D x, D shift) {
    L e = (as_int(x) - (L)0x3fe6a09e667f3bcd) >> 52;
    D f = as_float(as_int(x) - (e << 52)) - 1;
    D power = small_to_float(e) + shift;
    P s = pair_quotient((P){f, (D)0}, two_sum((D)2, f));
    P z = two_product(s.hi, s.hi);
    z.lo += 2 * s.hi * s.lo;
    D tail = z.hi * polynomial(z.hi, LOG_TAIL_TERMS, 8); /* of the series 1/3 + tail */
    P third = ordered_sum((D)0x1.5555555555555p-2, tail);
    third.lo += (D)0x1.5555555555555p-56;
    P cubic = two_product(third.hi, z.hi);
    cubic.lo += third.hi * z.lo + third.lo * z.hi;
    P product = two_product(cubic.hi, s.hi);
    product.lo += cubic.hi * s.lo + cubic.lo * s.hi;
    P sum = ordered_sum(2 * s.hi, 2 * product.hi);
    sum = ordered_sum(sum.hi, sum.lo + 2 * (s.lo + product.lo));
    P whole = ordered_sum(power * (D)LN2_HI, sum.hi);
    return ordered_sum(whole.hi, whole.lo + (sum.lo + power * (D)LN2_LO));
}

OVERLOAD D pow_float64(D x, D y) {
    D size = __builtin_elementwise_abs(x);
    D normal = size < (D)0x1p-1022 ? size * (D)0x1p54 : size;
    P log = log_as_pair(normal, size < (D)0x1p-1022 ? (D)-54 : (D)0);
    /* |log(x)| is at least 2^-53 but for x = 1: powers above 2^64 are infinite, or zero */
    D limit = __builtin_elementwise_abs(y) > (D)0x1p64 ? __builtin_elementwise_copysign((D)0x1p64, y) : y;
    P product = two_product(limit, log.hi);
    product.lo += limit * log.lo;
    D inside = product.hi > 710 ? (D)710 : product.hi < -746 ? (D)-746 : product.hi;
    D power = exp_pair((P){inside, inside == product.hi ? product.lo : (D)0});
    D ended = (size == 0) == (y < 0) ? (D)__builtin_inf() : (D)0;
    power = ((size == 0) | (size == (D)__builtin_inf())) ? ended : power;
    power = ((x != x) | (y != y)) ? x + y : power;
    return pow_edges_float64(x, y, power);
}

#undef LN2_HI
#undef LN2_LO
