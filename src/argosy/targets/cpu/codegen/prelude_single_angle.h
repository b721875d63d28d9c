/* sin and cos in float32. A template: F and I are as in prelude_single.h.
 *
 * |x| < 2^17 becomes n pi/2 + r with pi/2 in three parts; with a fused multiply-add the first difference is exact and
 * what the second loses is known, so that r is a pair.
 */
typedef struct {
    F hi, lo;
} P;

OVERLOAD P reduce_small_angle(F x, I *n) {
    F shifted = muladd(x, (F)0x1.45f306p-1f, (F)0x1.8p23f);
    F whole = shifted - (F)0x1.8p23f;
    *n = as_int(shifted);
    F first = muladd(whole, (F)-0x1.921fb6p+0f, x);
    F product = whole * 0x1.777a5cp-25f;
    F r = first + product, part = r - first;
    F lost = muladd(whole, (F)0x1.777a5cp-25f, -product) + ((first - (r - part)) + (product - part));
    return (P){r, muladd(whole, (F)0x1.ee59dap-50f, lost)};
}

OVERLOAD F sin_of_angle(P r, I n) {
    F square = r.hi * r.hi;
    F sum = muladd((F)-0x1.993baep-13f, square, (F)0x1.11074ap-7f);
    sum = muladd(sum, square, (F)-0x1.555546p-3f);
    F sine = r.hi + muladd(r.hi * square, sum, r.lo);
    sum = muladd((F)0x1.9a9858p-16f, square, (F)-0x1.6c0f18p-10f);
    sum = muladd(sum, square, (F)0x1.555550p-5f);
    F half = 0.5f * square, lead = 1.0f - half;
    F tail = muladd(square * square, sum, -(r.hi * r.lo));
    F cosine = lead + (((1.0f - lead) - half) + tail);
    F result = (n & 1) != 0 ? cosine : sine;
    return as_float(as_int(result) ^ ((n & 2) << 30));
}
