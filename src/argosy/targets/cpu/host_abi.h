/* The host ABI: how the runtime and generated code meet. Version ARGOSY_HOST_ABI.
 *
 * A kernel is called for chunks 0 … chunks-1 of its step, each once, in any order and on any worker; called for
 * chunk 0 of 1 it does everything. `params` is the step's parameter block: pointers and int64 sizes, 8 bytes each, at
 * the offsets that the Plan states. `scratch` is memory of the calling worker, as many bytes as the Plan's step asks
 * for, aligned to 64 bytes; what it holds at the start is undefined. Buffers are aligned to 64 bytes.
 *
 * A kernel that finds a fault at run time calls `argosy_fail` and returns. The runtime then stops after the step
 * and raises an error with the step's name; of several chunks that fail, the first counts.
 *
 * The code is freestanding. `memcpy`, `memmove`, `memset` and the conversions of half floats that compilers call are
 * in host_runtime.c; there is nothing else to link with.
 */
#ifndef ARGOSY_HOST_ABI_H
#define ARGOSY_HOST_ABI_H

#include <stdint.h>
#include <stddef.h>

#define ARGOSY_HOST_ABI 1

/* Marks what the runtime looks up by name. */
#if defined(_WIN32)
#define ARGOSY_EXPORT __attribute__((dllexport, used))
#else
#define ARGOSY_EXPORT __attribute__((visibility("default"), used))
#endif

typedef void (*argosy_kernel)(const void *params, int64_t chunk, int64_t chunks, void *scratch);

/* Faults that a kernel may report; `value` says more. */
enum argosy_fault {
    ARGOSY_OK = 0,
    ARGOSY_INDEX = 1,    /* an index is out of range; value: the index */
    ARGOSY_SIZE = 2,     /* a size is negative, or larger than its bound; value: the size */
    ARGOSY_SHAPES = 3,   /* shapes do not fit each other; value: the axis, or -1 */
    ARGOSY_DIVISION = 4, /* an integer is divided by zero; value: 0 */
    ARGOSY_VALUE = 5,    /* an operand has a value that is not defined for the op; value: that value */
};

/* Reports a fault from within a kernel. The first of a chunk counts. It lies right before the worker's scratch. */
static inline void argosy_fail(void *scratch, int64_t fault, int64_t value) {
    int64_t *report = (int64_t *)scratch - 8;
    if (report[0] == ARGOSY_OK) {
        report[1] = value;
        report[0] = fault;
    }
}

/* One step of a run. */
struct argosy_step {
    argosy_kernel kernel;
    const void *params;
    int64_t chunks;
};

/* A run: `steps` in order, each after the one before. Scratch areas of `stride` bytes, 64 of which precede the
 * pointer that kernels get, follow each other from `scratch`: one for each of `threads` workers, the caller's first.
 */
struct argosy_run {
    const struct argosy_step *steps;
    int64_t count;
    char *scratch;
    int64_t stride;
    int64_t threads;
    void *pool;     /* argosy_pool_bytes bytes at a multiple of 64, zero at first; or null: the caller works alone */
    int64_t *clock; /* null, or where to put the time counter: at the start, and after each step */
    int64_t fault;  /* set by argosy_run: enum argosy_fault */
    int64_t value;  /* what the fault says more */
    int64_t step;   /* the step that failed */
};

/* What an object exports beside its kernels:
 *   const int64_t argosy_host_abi, argosy_pool_bytes;
 *   void argosy_run(struct argosy_run *run);
 *   int64_t argosy_work(void *pool, int64_t worker): what the thread of worker 1, 2 … does. It returns 0 when
 *   the pool is told to stop; and 1, on systems where it can't sleep by itself, when there is nothing to do.
 *   void argosy_stop(void *pool): sends the workers home.
 * Objects of one version of the ABI may share a pool.
 */

#endif
