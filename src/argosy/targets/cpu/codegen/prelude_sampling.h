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

/* A place outside [low, high] folded back at the borders until it is inside. */
#define REFLECT(T)                                                                  \
    INLINE T reflect_##T(T place, T low, T high) {                                  \
        T width = high - low;                                                       \
        if (width <= 0) return low;                                                 \
        if (!(place < low || place > high)) return place;                           \
        T beyond = place < low ? low - place : place - high;                        \
        T turns = __builtin_elementwise_floor(beyond / width);                      \
        T rest = beyond - turns * width;                                            \
        bool even = turns - 2 * __builtin_elementwise_floor(turns / 2) == 0;        \
        return (place < low) == even ? low + rest : high - rest;                    \
    }
REFLECT(float32)
REFLECT(float64)
#undef REFLECT

/* One sample along an axis of an aligned region: two neighbours and their weights, which are 0 for a place more than
 * 1 outside. */
struct region_sample {
    int64 lower, upper;
    float64 lower_weight, upper_weight;
};
INLINE struct region_sample sample_region(float64 place, int64 size) {
    bool valid = place >= -1.0 && place <= (float64)size;
    float64 inside = place > 0.0 ? place : 0.0;
    inside = inside < (float64)(size - 1) ? inside : (float64)(size - 1);
    int64 lower = (int64)inside;
    float64 fraction = inside - (float64)lower;
    return (struct region_sample){
        lower, min_int64(lower + 1, size - 1), valid ? 1 - fraction : 0.0, valid ? fraction : 0.0,
    };
}

/* Half away from zero, as C's round. */
INLINE float64 round_away(float64 x) {
    return __builtin_elementwise_copysign(__builtin_elementwise_floor(__builtin_elementwise_abs(x) + 0.5), x);
}

#endif
