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

/* A number of the normal distribution, by the method of Box and Muller. */
INLINE float64 normal_float64(struct random_words w, float64 mean, float64 deviation) {
    float64 radius = sqrt_float64(-2.0 * log_float64(((float64)w.first + 1.0) * 0x1p-32));
    return mean + deviation * radius * cos_float64((float64)w.second * 0x1.921fb54442d18p-30);
}

#endif
