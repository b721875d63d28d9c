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

#include "prelude_views.h"
#include "prelude_sampling.h"
#include "prelude_order.h"
#include "prelude_random.h"

#endif
