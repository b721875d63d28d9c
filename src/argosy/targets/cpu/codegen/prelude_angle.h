/* An angle as n pi/2 + r with |r| <= pi/4: r as a pair, and the quadrant in the low bits of n. */

/* |x| < 2^21, by Cody and Waite's reduction: the products with the first three parts of pi/2, of 33 bits, are exact. */
#define SMALL_ANGLES(D, L, P)                                                             \
    OVERLOAD P reduce_small_angle(D x, L *n) {                                            \
        D shifted = x * (D)0x1.45f306dc9c883p-1 + (D)0x1.8p52;                            \
        D whole = shifted - (D)0x1.8p52;                                                  \
        *n = as_int(shifted);                                                             \
        P r = two_sum(x - whole * (D)0x1.921fb544p+0, -(whole * (D)0x1.0b4611a6p-34));    \
        P next = two_sum(r.hi, -(whole * (D)0x1.3198a2ep-69));                            \
        return ordered_sum(next.hi, next.lo + (r.lo - whole * (D)0x1.b839a252049c1p-104)); \
    }
SMALL_ANGLES(float64, int64, pair_float64)
SMALL_ANGLES(float64x16, int64x16, pair_float64x16)
#undef SMALL_ANGLES

/* Large angles: Payne and Hanek's reduction, in integers. Source: M. H. Payne, R. N. Hanek, "Radian reduction for
 * trigonometric functions", ACM SIGNUM Newsletter 18 (1983).
 *
 * x = M 2^e with M whole. The bits of 2/pi that give multiples of 4 are passed over; the 192 that follow give the
 * quadrant and, of the rest, more than the 62 bits that may cancel and the 53 that are wanted.
 */
static inline __attribute__((noinline)) pair_float64 reduce_large_angle(float64 x, int64 *n) {
    uint64 bits = (uint64)as_int(x);
    int exponent = (int)(bits >> 52 & 0x7ff);
    if (exponent == 0x7ff) { /* NaN and infinities have no angle */
        *n = 0;
        return (pair_float64){x - x, 0};
    }
    uint64 whole = (bits & 0xfffffffffffff) | (uint64)1 << 52;
    int first = exponent - 1075 - 1 - 1 + 64; /* the bit of weight 2 in the product, after 64 zeros */
    const uint32 *word = TWO_OVER_PI + (first >> 5);
    int shift = first & 31;
    uint64 window[3];
    for (int part = 0; part < 3; ++part, word += 2) {
        uint64 upper = (uint64)word[0] << 32 | word[1];
        window[part] = shift ? upper << shift | word[2] >> (32 - shift) : upper;
    }
    /* the lowest 192 bits of the product */
    unsigned __int128 low = (unsigned __int128)whole * window[2];
    unsigned __int128 middle = (unsigned __int128)whole * window[1] + (uint64)(low >> 64);
    uint64 top = whole * window[0] + (uint64)(middle >> 64);
    uint64 next = (uint64)middle, last = (uint64)low;
    int64 quadrant = (int64)(top >> 62);
    top = top << 2 | next >> 62;
    next = next << 2 | last >> 62;
    /* the fraction of a quadrant, rounded to nearest: above a half it is counted down from the next */
    bool negative = top >> 63;
    quadrant += negative;
    if (negative) {
        next = 0 - next;
        top = ~top + (next == 0);
    }
    int zeros = top ? __builtin_clzll(top) : 64 + (next ? __builtin_clzll(next) : 63);
    if (zeros >= 64) top = next, next = 0;
    int left = zeros & 63;
    if (left) top = top << left | next >> (64 - left), next <<= left;
    float64 unit = as_float((int64)(1023 - 64 - zeros) << 52);
    pair_float64 fraction = {(float64)(int64)(top >> 11) * 0x1p11 * unit, (float64)(int64)((top & 0x7ff) << 52 | next >> 12) * 0x1p-52 * unit};
    pair_float64 r = two_product(fraction.hi, 0x1.921fb54442d18p+0);
    r.lo += fraction.hi * 0x1.1a62633145c07p-54 + fraction.lo * 0x1.921fb54442d18p+0;
    r = ordered_sum(r.hi, r.lo);
    bool opposite = negative != (x < 0);
    *n = x < 0 ? -quadrant : quadrant;
    return (pair_float64){opposite ? -r.hi : r.hi, opposite ? -r.lo : r.lo};
}

#define LARGE_ANGLE 0x1p20
OVERLOAD pair_float64 reduce_angle(float64 x, int64 *n) {
    return __builtin_elementwise_abs(x) < LARGE_ANGLE ? reduce_small_angle(x, n) : reduce_large_angle(x, n);
}
OVERLOAD pair_float64x16 reduce_angle(float64x16 x, int64x16 *n) {
    pair_float64x16 r = reduce_small_angle(x, n);
    int64x16 large = __builtin_elementwise_abs(x) >= (float64x16)LARGE_ANGLE;
    if (__builtin_reduce_or(large))
        for (int lane = 0; lane < 16; ++lane)
            if (large[lane]) {
                int64 quadrant;
                pair_float64 angle = reduce_large_angle(x[lane], &quadrant);
                r.hi[lane] = angle.hi, r.lo[lane] = angle.lo, (*n)[lane] = quadrant;
            }
    return r;
}
#undef LARGE_ANGLE
