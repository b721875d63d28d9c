/* Sums and products with the part that rounding loses: a number as a pair, hi + lo, of about twice the precision.
 *
 * A template: D is float64 or a vector of them, L the integers of its width, P the name of the pair. Sources: D. E.
 * Knuth, TAOCP 2, 4.2.2 (sum); T. J. Dekker, "A floating-point technique for extending the available precision",
 * Numer. Math. 18 (1971) (sum of ordered terms; product by halves where there is no fused multiply-add).
 */
typedef struct {
    D hi, lo;
} P;

OVERLOAD P two_sum(D a, D b) {
    D sum = a + b, part = sum - a;
    return (P){sum, (a - (sum - part)) + (b - part)};
}

/* |a| >= |b|, or a = 0 */
OVERLOAD P ordered_sum(D a, D b) {
    D sum = a + b;
    return (P){sum, b - (sum - a)};
}

OVERLOAD P two_product(D a, D b) {
    D product = a * b;
#if ARGOSY_HAS_FMA
    return (P){product, muladd(a, b, -product)};
#else
    D a_high = as_float(as_int(a) & ~(L)0x7ffffff), a_low = a - a_high;
    D b_high = as_float(as_int(b) & ~(L)0x7ffffff), b_low = b - b_high;
    return (P){product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low};
#endif
}

/* The quotient of two pairs, and the square root of one above zero. */
OVERLOAD P pair_quotient(P a, P b) {
    D quotient = a.hi / b.hi;
    P back = two_product(quotient, b.hi);
    return (P){quotient, ((a.hi - back.hi) - back.lo + a.lo - quotient * b.lo) / b.hi};
}
OVERLOAD P pair_sqrt(P a) {
    D root = __builtin_elementwise_sqrt(a.hi);
    P back = two_product(root, root);
    D rest = ((a.hi - back.hi) - back.lo + a.lo) / (root + root);
    return (P){root, root > 0 ? rest : (D)0};
}

/* A polynomial by Horner's rule; the number of terms is known to the compiler, which unrolls. */
OVERLOAD D polynomial(D x, const float64 *terms, int count) {
    D sum = (D)terms[count - 1];
#pragma clang loop unroll(full)
    for (int term = count - 2; term >= 0; --term) sum = muladd(sum, x, (D)terms[term]);
    return sum;
}

/* A whole number below 2^31 in size as a float, without an instruction that many machines lack for 64 bits. */
OVERLOAD D small_to_float(L n) { return as_float(n + (L)0x4338000000000000) - (D)0x1.8p52; }
