/* Places between elements: sizes by scale, and the weights of interpolation. */
#ifndef ARGOSY_PRELUDE_SAMPLING_H
#define ARGOSY_PRELUDE_SAMPLING_H

/* floor(size * scale), where a float32 scale that is the nearest one to a fraction of a denominator up to 1000
 * means that fraction: the convergents of its continued fraction are tried in turn. */
INLINE int64 scaled_size(int64 size, float64 scale) {
    float64 rest = scale;
    int64 above = 1, below = 0, before_above = 0, before_below = 1;
    for (int step = 0; step < 24 && rest < 0x1p40; ++step) {
        int64 whole = (int64)__builtin_elementwise_floor(rest);
        int64 next_above = whole * above + before_above, next_below = whole * below + before_below;
        if (next_below > 1000) break;
        before_above = above, before_below = below, above = next_above, below = next_below;
        if ((float32)((float64)above / (float64)below) == (float32)scale) return floordiv_int64(size * above, below);
        if (rest == (float64)whole) break;
        rest = 1.0 / (rest - (float64)whole);
    }
    return (int64)__builtin_elementwise_floor((float32)size * (float32)scale);
}

/* The cubic convolution kernel at a distance >= 0.
 * Source: R. G. Keys, "Cubic convolution interpolation for digital image processing", IEEE TASSP 29 (1981), eq. 4. */
INLINE float64 cubic_weight(float64 distance, float64 a) {
    float64 near = ((a + 2) * distance - (a + 3)) * distance * distance + 1;
    float64 far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a;
    return distance <= 1 ? near : distance < 2 ? far : 0.0;
}

#endif
