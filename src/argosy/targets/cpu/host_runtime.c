/* The host runtime: runs the steps of a Plan. One copy is in every shared object, after host_abi.h.
 *
 * A step of several chunks is published in a slot of the pool, and whoever is free claims chunks one by one: the caller
 * always, workers as they come. Nobody waits for a worker that has not begun, so a busy machine costs speed, never a
 * stall. A slot's word holds generation and next chunk; a claim is one compare-and-swap on it, so a worker that comes
 * late, with what it read of an earlier step, claims nothing. The caller closes the word before it changes the fields.
 */

enum { SLOTS = 16, INDEX_BITS = 24, SPINS = 4000, YIELD_AFTER = 2000 };
#define CLOSED ((UINT64_C(1) << INDEX_BITS) - 1)

#define LOAD(place, order) __atomic_load_n(&(place), __ATOMIC_##order)
#define STORE(place, value, order) __atomic_store_n(&(place), value, __ATOMIC_##order)
#define ADD(place, value, order) __atomic_fetch_add(&(place), value, __ATOMIC_##order)

struct slot {
    _Alignas(64) uint64_t word; /* generation << INDEX_BITS | next chunk */
    argosy_kernel kernel;
    const void *params;
    int64_t chunks;
    char *scratch;
    int64_t stride;
    int64_t threads;
    _Alignas(64) int64_t finished; /* chunks that are done */
    _Alignas(64) int64_t taken;    /* whether a run owns the slot */
    int64_t fault, value, chunk;   /* of the first chunk that failed, under `lock` */
    int64_t lock;
};

struct argosy_pool {
    _Alignas(64) uint32_t epoch; /* changes when sleepers are called */
    uint32_t sleepers;
    uint32_t stopped;
    _Alignas(64) struct slot slots[SLOTS];
};

ARGOSY_EXPORT const int64_t argosy_host_abi = ARGOSY_HOST_ABI;
ARGOSY_EXPORT const int64_t argosy_pool_bytes = sizeof(struct argosy_pool);

/* ---------------------------------------------------------------------------------- the processor and the system */

static inline void pause_briefly(void) {
#if defined(__x86_64__)
    __asm__ volatile("pause");
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

static inline int64_t clock_now(void) {
#if defined(__x86_64__)
    uint32_t low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    return (int64_t)high << 32 | low;
#elif defined(__aarch64__)
    int64_t now;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(now));
    return now;
#else
    return 0;
#endif
}

#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__))
#define CAN_SLEEP 1
static int64_t system_call(int64_t number, const void *first, int64_t second, int64_t third) {
#if defined(__x86_64__)
    int64_t result;
    register int64_t fourth __asm__("r10") = 0;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(first), "S"(second), "d"(third), "r"(fourth)
                     : "rcx", "r11", "memory");
    return result;
#else
    register int64_t x8 __asm__("x8") = number;
    register int64_t x0 __asm__("x0") = (int64_t)first;
    register int64_t x1 __asm__("x1") = second;
    register int64_t x2 __asm__("x2") = third;
    register int64_t x3 __asm__("x3") = 0;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
    return x0;
#endif
}
#if defined(__x86_64__)
enum { FUTEX = 202, SCHED_YIELD = 24 };
#else
enum { FUTEX = 98, SCHED_YIELD = 124 };
#endif
enum { WAIT_PRIVATE = 128, WAKE_PRIVATE = 129 };
static void sleep_while(uint32_t *word, uint32_t value) { system_call(FUTEX, word, WAIT_PRIVATE, value); }
static void wake(uint32_t *word, int64_t count) { system_call(FUTEX, word, WAKE_PRIVATE, count); }
static void yield(void) { system_call(SCHED_YIELD, 0, 0, 0); }
#else
#define CAN_SLEEP 0
static void wake(uint32_t *word, int64_t count) { (void)word, (void)count; }
static void yield(void) { pause_briefly(); }
#endif

/* ------------------------------------------------------------------------------------------------------- chunks */

/* Notes a fault that a chunk reported in the worker's scratch. Of several chunks the first counts, so that the error
 * doesn't depend on who was quicker. */
static void note_fault(struct slot *slot, int64_t *report, int64_t chunk) {
    while (__atomic_exchange_n(&slot->lock, 1, __ATOMIC_ACQUIRE)) pause_briefly();
    if (slot->fault == ARGOSY_OK || chunk < slot->chunk) {
        slot->fault = report[0];
        slot->value = report[1];
        slot->chunk = chunk;
    }
    STORE(slot->lock, 0, RELEASE);
    report[0] = ARGOSY_OK;
}

/* Claims and does chunks of what is published in a slot, until none is left; how many. */
static int64_t help(struct slot *slot, int64_t worker) {
    int64_t done = 0;
    uint64_t word = LOAD(slot->word, ACQUIRE);
    for (;;) {
        int64_t chunk = (int64_t)(word & CLOSED);
        argosy_kernel kernel = LOAD(slot->kernel, RELAXED);
        const void *params = LOAD(slot->params, RELAXED);
        int64_t chunks = LOAD(slot->chunks, RELAXED);
        int64_t stride = LOAD(slot->stride, RELAXED);
        char *scratch = LOAD(slot->scratch, RELAXED) + worker * stride + 64;
        if (chunk >= chunks || worker >= LOAD(slot->threads, RELAXED)) return done;
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        /* What was read above belongs to this chunk if the word is still the same. */
        if (!__atomic_compare_exchange_n(&slot->word, &word, word + 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) continue;
        kernel(params, chunk, chunks, scratch);
        int64_t *report = (int64_t *)scratch - 8;
        if (report[0] != ARGOSY_OK) note_fault(slot, report, chunk);
        ADD(slot->finished, 1, RELEASE);
        ++done;
        word = LOAD(slot->word, ACQUIRE);
    }
}

/* Does a step together with whoever comes. */
static void share(struct argosy_pool *pool, struct slot *slot, const struct argosy_run *run,
                  const struct argosy_step *step) {
    uint64_t generation = ((slot->word >> INDEX_BITS) + 1) << INDEX_BITS;
    STORE(slot->word, generation | CLOSED, RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    STORE(slot->kernel, step->kernel, RELAXED);
    STORE(slot->params, step->params, RELAXED);
    STORE(slot->chunks, step->chunks, RELAXED);
    STORE(slot->finished, 0, RELAXED);
    STORE(slot->word, generation, SEQ_CST);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (LOAD(pool->sleepers, RELAXED)) {
        int64_t most = step->chunks < run->threads ? step->chunks : run->threads;
        ADD(pool->epoch, 1, SEQ_CST);
        wake(&pool->epoch, most - 1);
    }
    help(slot, 0);
    for (int64_t waits = 0; LOAD(slot->finished, ACQUIRE) != step->chunks; ++waits) {
        if (waits < YIELD_AFTER)
            pause_briefly();
        else
            yield();
    }
}

static struct slot *take_slot(struct argosy_pool *pool, const struct argosy_run *run) {
    for (int index = 0; index < SLOTS; ++index) {
        struct slot *slot = &pool->slots[index];
        int64_t expected = 0;
        if (LOAD(slot->taken, RELAXED) ||
            !__atomic_compare_exchange_n(&slot->taken, &expected, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            continue;
        slot->fault = ARGOSY_OK;
        STORE(slot->chunks, 0, RELAXED); /* nothing is published yet */
        STORE(slot->scratch, run->scratch, RELAXED);
        STORE(slot->stride, run->stride, RELAXED);
        STORE(slot->threads, run->threads, RELAXED);
        return slot;
    }
    return 0; /* more runs side by side than slots: this one goes alone */
}

ARGOSY_EXPORT void argosy_run(struct argosy_run *run) {
    struct argosy_pool *pool = run->threads > 1 ? run->pool : 0;
    struct slot *slot = 0;
    char *scratch = run->scratch + 64;
    int64_t *report = (int64_t *)run->scratch;
    for (int64_t worker = 0; worker < run->threads; ++worker)
        *(int64_t *)(run->scratch + worker * run->stride) = ARGOSY_OK;
    run->fault = ARGOSY_OK;
    if (run->clock) run->clock[0] = clock_now();
    for (int64_t index = 0; index < run->count; ++index) {
        const struct argosy_step *step = &run->steps[index];
        if (pool && step->chunks > 1 && step->chunks < (int64_t)CLOSED && (slot || (slot = take_slot(pool, run)))) {
            share(pool, slot, run, step);
            run->fault = slot->fault;
            run->value = slot->value;
        } else {
            for (int64_t chunk = 0; chunk < step->chunks && report[0] == ARGOSY_OK; ++chunk)
                step->kernel(step->params, chunk, step->chunks, scratch);
            run->fault = report[0];
            run->value = report[1];
        }
        if (run->clock) run->clock[index + 1] = clock_now();
        if (run->fault != ARGOSY_OK) {
            run->step = index;
            break;
        }
    }
    if (slot) STORE(slot->taken, 0, RELEASE);
}

/* ------------------------------------------------------------------------------------------------------ workers */

static int64_t help_all(struct argosy_pool *pool, int64_t worker) {
    int64_t done = 0;
    for (int index = 0; index < SLOTS; ++index) {
        struct slot *slot = &pool->slots[index];
        if (LOAD(slot->taken, RELAXED)) done += help(slot, worker);
    }
    return done;
}

ARGOSY_EXPORT int64_t argosy_work(void *place, int64_t worker) {
    struct argosy_pool *pool = place;
    int64_t idle = 0;
    while (!LOAD(pool->stopped, RELAXED)) {
        if (help_all(pool, worker)) {
            idle = 0;
            continue;
        }
        if (++idle < SPINS) {
            pause_briefly();
            continue;
        }
        idle = 0;
#if CAN_SLEEP
        /* Whoever publishes after this look sees a sleeper and changes the epoch. */
        uint32_t epoch = LOAD(pool->epoch, SEQ_CST);
        ADD(pool->sleepers, 1, SEQ_CST);
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        if (!help_all(pool, worker) && !LOAD(pool->stopped, SEQ_CST)) sleep_while(&pool->epoch, epoch);
        ADD(pool->sleepers, -1, SEQ_CST);
#else
        return 1;
#endif
    }
    return 0;
}

ARGOSY_EXPORT void argosy_stop(void *place) {
    struct argosy_pool *pool = place;
    STORE(pool->stopped, 1, SEQ_CST);
    ADD(pool->epoch, 1, SEQ_CST);
    wake(&pool->epoch, INT32_MAX);
}

/* ------------------------------------------------------- what compilers call where there is no C library to link */

typedef char wide __attribute__((vector_size(64), aligned(1)));

static void *copy_up(char *to, const char *from, size_t size) {
    char *target = to;
    for (; size >= 64; size -= 64, target += 64, from += 64) *(wide *)target = *(const wide *)from;
    for (; size; --size) *target++ = *from++;
    return to;
}

static void *copy_down(char *to, const char *from, size_t size) {
    while (size >= 64) {
        size -= 64;
        *(wide *)(to + size) = *(const wide *)(from + size);
    }
    while (size) {
        --size;
        to[size] = from[size];
    }
    return to;
}

void *memcpy(void *to, const void *from, size_t size) { return copy_up(to, from, size); }

void *memmove(void *to, const void *from, size_t size) {
    int overlaps_upwards = (uintptr_t)to - (uintptr_t)from < size;
    return overlaps_upwards ? copy_down(to, from, size) : copy_up(to, from, size);
}

void *memset(void *to, int value, size_t size) {
    char *target = to;
    wide filled = (wide){} + (char)value;
    for (; size >= 64; size -= 64, target += 64) *(wide *)target = filled;
    for (; size; --size) *target++ = (char)value;
    return to;
}

int memcmp(const void *left, const void *right, size_t size) {
    const unsigned char *a = left, *b = right;
    for (; size; --size, ++a, ++b)
        if (*a != *b) return *a - *b;
    return 0;
}

#if defined(_WIN32)
int _fltused = 0; /* that floats are used */
#endif

#if defined(__x86_64__)
/* Conversions of short floats, called on CPUs that have no instructions for them. Ties go to even; NaNs stay NaNs. */

union float_bits {
    float value;
    uint32_t bits;
};
union half_bits {
    _Float16 value;
    uint16_t bits;
};
union brain_bits {
    __bf16 value;
    uint16_t bits;
};

float __extendhfsf2(_Float16 half) {
    uint16_t bits = ((union half_bits){.value = half}).bits;
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16, rest = bits & 0x7fff;
    union float_bits result;
    if (rest >= 0x7c00)
        result.bits = 0x7f800000 | (rest & 0x3ff) << 13 | (rest > 0x7c00 ? 0x400000 : 0);
    else if (rest >= 0x400)
        result.bits = (rest << 13) + 0x38000000;
    else
        result.value = (float)rest * 0x1p-24f; /* subnormal */
    result.bits |= sign;
    return result.value;
}

_Float16 __truncsfhf2(float value) {
    uint32_t bits = ((union float_bits){value}).bits;
    uint16_t sign = bits >> 16 & 0x8000, result;
    bits &= 0x7fffffff;
    if (bits > 0x7f800000)
        result = 0x7e00 | (bits >> 13 & 0x3ff);
    else if (bits >= 0x47800000)
        result = 0x7c00;
    else if (bits >= 0x38800000)
        result = (bits - 0x38000000 + 0xfff + (bits >> 13 & 1)) >> 13;
    else {
        /* Subnormal: the last place of 0.5 is the one of these, so the addition rounds. */
        union float_bits sum = {((union float_bits){.bits = bits}).value + 0.5f};
        result = sum.bits - 0x3f000000;
    }
    return ((union half_bits){.bits = sign | result}).value;
}

__bf16 __truncsfbf2(float value) {
    uint32_t bits = ((union float_bits){value}).bits;
    uint16_t result = (bits & 0x7fffffff) > 0x7f800000 ? bits >> 16 | 0x40 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return ((union brain_bits){.bits = result}).value;
}

/* A float that rounds to any shorter type as the double does: what is cut off sets the last bit. */
static float round_to_odd(double value) {
    union float_bits near = {(float)value};
    double back = near.value;
    if (back == back && back != value) {
        if ((back < 0 ? -back : back) > (value < 0 ? -value : value)) --near.bits;
        near.bits |= 1;
    }
    return near.value;
}

_Float16 __truncdfhf2(double value) { return __truncsfhf2(round_to_odd(value)); }
__bf16 __truncdfbf2(double value) { return __truncsfbf2(round_to_odd(value)); }
#endif
