/* What every kernel begins with: the parameter block, and indices into axes. */
#ifndef ARGOSY_PRELUDE_KERNEL_H
#define ARGOSY_PRELUDE_KERNEL_H

#define ARGOSY_POINTER(params, slot) (((void *const *)(params))[slot])
#define ARGOSY_SYMBOL(params, slot) (((const int64 *)(params))[slot])

/* An index into an axis of `size`: negative ones count from the end. One outside is reported and clamped, so that
 * nothing outside is read before the runtime stops. */
INLINE int64 dim_index(int64 index, int64 size, void *scratch) {
    index += index < 0 ? size : 0;
    if (index < 0 || index >= size) {
        argosy_fail(scratch, ARGOSY_INDEX, index);
        return 0;
    }
    return index;
}

/* Lets the processor take subnormal numbers as zero, operands and results; returns its mode before. Where
 * another processor has no such mode, nothing happens. */
static inline uint64_t flush_subnormals(void) {
#if defined(__x86_64__)
    uint32_t mode, flushing;
    __asm__ volatile("stmxcsr %0" : "=m"(mode));
    flushing = mode | 0x8040;
    __asm__ volatile("ldmxcsr %0" : : "m"(flushing) : "memory");
    return mode;
#elif defined(__aarch64__)
    uint64_t mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    __asm__ volatile("msr fpcr, %0" : : "r"(mode | UINT64_C(1) << 24) : "memory");
    return mode;
#else
    return 0;
#endif
}

/* Sets the mode that `flush_subnormals` returned. */
static inline void restore_subnormals(uint64_t mode) {
#if defined(__x86_64__)
    uint32_t before = (uint32_t)mode;
    __asm__ volatile("ldmxcsr %0" : : "m"(before) : "memory");
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" : : "r"(mode) : "memory");
#else
    (void)mode;
#endif
}

#include "prelude_views.h"
#include "prelude_sampling.h"
#include "prelude_order.h"
#include "prelude_random.h"

#endif
