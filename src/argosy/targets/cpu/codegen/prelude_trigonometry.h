/* sin, cos, tan and the inverse functions, to an ulp of float64. A template: D, L and P are as in prelude_pair.h.
 *
 * An angle becomes n pi/2 + r with |r| <= pi/4, r a pair: see prelude_angle.h.
 */
#define HALF_PI_HI 0x1.921fb54442d18p+0
#define HALF_PI_LO 0x1.1a62633145c07p-54

/* sin and cos of a reduced angle as pairs; the low parts are what the last addition would lose. */
OVERLOAD P sin_reduced(P r) {
    D z = r.hi * r.hi;
    return ordered_sum(r.hi, r.lo + (r.hi * (z * polynomial(z, SIN_TERMS, 7)) - (D)0.5 * z * r.lo));
}
OVERLOAD P cos_reduced(P r) {
    P z = two_product(r.hi, r.hi);
    P lead = ordered_sum((D)1, (D)-0.5 * z.hi);
    D tail = z.hi * z.hi * polynomial(z.hi, COS_TERMS, 6) - r.hi * r.lo - (D)0.5 * z.lo;
    return ordered_sum(lead.hi, lead.lo + tail);
}

/* sin and cos turned by the quadrant. */
OVERLOAD D sin_of_angle(P r, L n) {
    D sine = sin_reduced(r).hi, cosine = cos_reduced(r).hi;
    D result = (n & 1) != 0 ? cosine : sine;
    return (n & 2) != 0 ? -result : result;
}
OVERLOAD D tan_of_angle(P r, L n) {
    P sine = sin_reduced(r), cosine = cos_reduced(r);
    P above = {(n & 1) != 0 ? -cosine.hi : sine.hi, (n & 1) != 0 ? -cosine.lo : sine.lo};
    P below = {(n & 1) != 0 ? sine.hi : cosine.hi, (n & 1) != 0 ? sine.lo : cosine.lo};
    P ratio = pair_quotient(above, below);
    return ratio.hi + ratio.lo;
}

OVERLOAD D sin_float64(D x) {
    L n;
    P r = reduce_angle(x, &n);
    D result = sin_of_angle(r, n);
    return x == 0 ? x : result;
}
OVERLOAD D cos_float64(D x) {
    L n;
    P r = reduce_angle(x, &n);
    return sin_of_angle(r, n + 1);
}
OVERLOAD D tan_float64(D x) {
    L n;
    P r = reduce_angle(x, &n);
    D result = tan_of_angle(r, n);
    return x == 0 ? x : result;
}

/* atan(x) = b + atan(t), |t| <= 1/2: t is x, (x - 1) / (x + 1) or -1 / x and b is 0, pi/4 or pi/2. */
OVERLOAD D atan_float64(D x) {
    D size = __builtin_elementwise_abs(x);
    D far = size > (D)0x1p60 ? (D)0x1p60 : size;
    P one_more = two_sum(far, (D)1);
    D above = size > 2 ? (D)-1 : size > 0.5 ? far - 1 : far;
    D below = size > 2 ? far : size > 0.5 ? one_more.hi : (D)1;
    D below_low = size > 2 ? (D)0 : size > 0.5 ? one_more.lo : (D)0;
    D base = size > 2 ? (D)HALF_PI_HI : size > 0.5 ? (D)(HALF_PI_HI / 2) : (D)0;
    D base_low = size > 2 ? (D)HALF_PI_LO : size > 0.5 ? (D)(HALF_PI_LO / 2) : (D)0;
    P t = pair_quotient((P){above, (D)0}, (P){below, below_low});
    D z = t.hi * t.hi;
    P sum = ordered_sum(base, t.hi);
    D tail = t.hi * (z * polynomial(z, ATAN_TERMS, 13)) + (t.lo - t.lo * z);
    return __builtin_elementwise_copysign(sum.hi + (sum.lo + (tail + base_low)), x);
}

/* asin(|x|) for |x| <= 1/2, else asin(sqrt((1 - |x|) / 2)), whose double is acos(|x|). NaN for |x| > 1. */
OVERLOAD P asin_or_half_acos(D size) {
    D half = (D)0.5 * (1 - size); /* exact, where it is used */
    P root = pair_sqrt((P){half, (D)0});
    D t = size > 0.5 ? root.hi : size;
    D z = size > 0.5 ? half : size * size;
    D low = size > 0.5 ? root.lo : (D)0;
    return (P){t, t * (z * polynomial(z, ASIN_TERMS, 13)) + low};
}
OVERLOAD D asin_float64(D x) {
    D size = __builtin_elementwise_abs(x);
    P part = asin_or_half_acos(size);
    P sum = ordered_sum((D)HALF_PI_HI, -2 * part.hi);
    D far = sum.hi + (sum.lo + ((D)HALF_PI_LO - 2 * part.lo));
    return __builtin_elementwise_copysign(size > 0.5 ? far : part.hi + part.lo, x);
}
OVERLOAD D acos_float64(D x) {
    D size = __builtin_elementwise_abs(x);
    P part = asin_or_half_acos(size);
    D near_sign = __builtin_elementwise_copysign((D)1, x);
    D factor = size <= 0.5 ? -near_sign : x < 0 ? (D)-2 : (D)2;
    D base = size <= 0.5 ? (D)HALF_PI_HI : x < 0 ? (D)(2 * HALF_PI_HI) : (D)0;
    D base_low = size <= 0.5 ? (D)HALF_PI_LO : x < 0 ? (D)(2 * HALF_PI_LO) : (D)0;
    P sum = ordered_sum(base, factor * part.hi);
    return sum.hi + (sum.lo + (factor * part.lo + base_low));
}

#undef HALF_PI_HI
#undef HALF_PI_LO
