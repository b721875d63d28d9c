/* Philox 4x32-10: four random words for a counter and a key. Source: J. K. Salmon et al., "Parallel random numbers: as
 * easy as 1, 2, 3", SC 2011. */
#ifndef ARGOSY_PRELUDE_RANDOM_H
#define ARGOSY_PRELUDE_RANDOM_H

struct random_words {
    uint32 first, second, third, fourth;
};
INLINE struct random_words philox(uint64 low_counter, uint64 high_counter, uint32 low_key, uint32 high_key) {
    struct random_words w = {
        (uint32)low_counter, (uint32)(low_counter >> 32), (uint32)high_counter, (uint32)(high_counter >> 32),
    };
    for (int round = 0; round < 10; ++round) {
        uint64 left = (uint64)w.first * 0xD2511F53u, right = (uint64)w.third * 0xCD9E8D57u;
        w = (struct random_words){
            (uint32)(right >> 32) ^ w.second ^ low_key, (uint32)right, (uint32)(left >> 32) ^ w.fourth ^ high_key,
            (uint32)left,
        };
        low_key += 0x9E3779B9u;
        high_key += 0xBB67AE85u;
    }
    return w;
}

/* 53 random bits as a number in [0, 1). */
INLINE float64 uniform_float64(struct random_words w) {
    return (float64)(((uint64)w.first << 21) ^ (w.second >> 11)) * 0x1p-53;
}

/* Box and Muller's method as argosy/ops/box_muller.py has it, operation by operation: the bits are those of every target.
 * The coefficients are of the series of log((1 + s) / (1 - s)) / s, cos t and sin t / t, the constant term first. */
static const float64 DRAWN_LOGARITHM[] = {
    0x1.0000000000000p+1, 0x1.5555555555555p-1, 0x1.999999999999ap-2, 0x1.2492492492492p-2,
    0x1.c71c71c71c71cp-3, 0x1.745d1745d1746p-3, 0x1.3b13b13b13b14p-3, 0x1.1111111111111p-3,
    0x1.e1e1e1e1e1e1ep-4, 0x1.af286bca1af28p-4, 0x1.8618618618618p-4, 0x1.642c8590b2164p-4,
};
static const float64 DRAWN_COSINE[] = {
    0x1.0000000000000p+0, -0x1.0000000000000p-1, 0x1.5555555555555p-5, -0x1.6c16c16c16c17p-10,
    0x1.a01a01a01a01ap-16, -0x1.27e4fb7789f5cp-22, 0x1.1eed8eff8d898p-29, -0x1.93974a8c07c9dp-37,
    0x1.ae7f3e733b81fp-45, -0x1.6827863b97d97p-53,
};
static const float64 DRAWN_SINE[] = {
    0x1.0000000000000p+0, -0x1.5555555555555p-3, 0x1.1111111111111p-7, -0x1.a01a01a01a01ap-13,
    0x1.71de3a556c734p-19, -0x1.ae64567f544e4p-26, 0x1.6124613a86d09p-33, -0x1.ae7f3e733b81fp-41,
    0x1.952c77030ad4ap-49, -0x1.2f49b46814157p-57,
};
#define DRAWN_SERIES(terms, x) drawn_series(terms, sizeof(terms) / sizeof((terms)[0]), x)

INLINE float64 drawn_series(const float64 *terms, int64 count, float64 x) {
    float64 total = terms[count - 1];
    for (int64 k = count - 2; k >= 0; --k) total = total * x + terms[k];
    return total;
}

/* log((word + 1) / 2^32) */
INLINE float64 log_of_fraction(uint32 word) {
    int64 bits = as_int((float64)((int64)word + 1));
    int64 exponent = (bits >> 52) - 1022 - 32;
    float64 mantissa = as_float((bits & 0xFFFFFFFFFFFFF) | 0x3FE0000000000000);
    int64 low = mantissa < 0x1.6a09e667f3bcdp-1;
    mantissa = low ? mantissa + mantissa : mantissa;
    float64 s = (mantissa - 1.0) / (mantissa + 1.0);
    return (float64)(exponent - low) * 0x1.62e42fefa39efp-1 + s * DRAWN_SERIES(DRAWN_LOGARITHM, s * s);
}

/* cos(2 pi word / 2^32) */
INLINE float64 cosine_of_turn(uint32 word) {
    uint32 quarter = word >> 30, rest = word & 0x3FFFFFFF;
    uint32 far = rest > 0x20000000;
    float64 angle = (float64)(int64)(far ? 0x40000000 - rest : rest) * 0x1.921fb54442d18p-30, square = angle * angle;
    float64 sine = angle * DRAWN_SERIES(DRAWN_SINE, square), cosine = DRAWN_SERIES(DRAWN_COSINE, square);
    float64 value = far == (quarter & 1) ? cosine : sine;
    return quarter == 1 || quarter == 2 ? -value : value;
}

INLINE float64 normal_float64(struct random_words w, float64 mean, float64 deviation) {
    return mean + deviation * (sqrt_float64(-2.0 * log_of_fraction(w.first)) * cosine_of_turn(w.second));
}

#endif
