/* Sizes and places that only the run knows: what slices, broadcasts and ranges come to. */
#ifndef ARGOSY_PRELUDE_VIEWS_H
#define ARGOSY_PRELUDE_VIEWS_H

/* A size of a result; one below zero or above its bound is reported. */
INLINE int64 checked_size(int64 size, int64 most, void *scratch) {
    if (size >= 0 && size <= most) return size;
    argosy_fail(scratch, ARGOSY_SIZE, size);
    return 0;
}

INLINE int64 clamp_int64(int64 x, int64 low, int64 high) {
    x = x < low ? low : x;
    return x > high ? high : x;
}

/* Where a slice begins, and how many elements it has: as ONNX Slice clamps. */
INLINE int64 slice_first(int64 start, int64 step, int64 size) {
    return clamp_int64(start + (start < 0 ? size : 0), 0, size - (step < 0));
}
INLINE int64 slice_count(int64 start, int64 end, int64 step, int64 size, void *scratch) {
    int64 first = slice_first(start, step, size);
    end += end < 0 ? size : 0;
    if (step == 0) {
        argosy_fail(scratch, ARGOSY_VALUE, 0);
        return 0;
    }
    if (step > 0) {
        end = clamp_int64(end, 0, size);
        return end > first ? (end - first - 1) / step + 1 : 0;
    }
    end = clamp_int64(end, -1, size - 1);
    return first > end ? (int64)((uint64)(first - end - 1) / (0 - (uint64)step)) + 1 : 0;
}

/* Where the element at `step` of a sequence comes from whose first `length` elements are reversed. A length outside
 * the axis is reported, and nothing is reversed. */
INLINE int64 reversed_step(int64 step, int64 length, int64 size, void *scratch) {
    if (length < 0 || length > size) {
        argosy_fail(scratch, ARGOSY_VALUE, length);
        return step;
    }
    return step < length ? length - 1 - step : step;
}

/* One dim of a broadcast of two shapes; `axis` is reported where they do not fit. */
INLINE int64 broadcast_size(int64 left, int64 right, int64 axis, void *scratch) {
    if (left == right || right == 1) return left;
    if (left != 1) argosy_fail(scratch, ARGOSY_SHAPES, axis);
    return right;
}

/* Elements of a range. */
INLINE int64 range_count_int64(int64 start, int64 limit, int64 delta, void *scratch) {
    if (delta == 0) {
        argosy_fail(scratch, ARGOSY_VALUE, 0);
        return 0;
    }
    if (delta > 0) return limit > start ? (int64)(((uint64)limit - (uint64)start - 1) / (uint64)delta) + 1 : 0;
    return limit < start ? (int64)(((uint64)start - (uint64)limit - 1) / (0 - (uint64)delta)) + 1 : 0;
}
INLINE int64 range_count_float64(float64 start, float64 limit, float64 delta, void *scratch) {
    if (delta == 0) argosy_fail(scratch, ARGOSY_VALUE, 0);
    float64 count = __builtin_elementwise_ceil((limit - start) / delta);
    if (!(count < 0x1p62)) {
        argosy_fail(scratch, ARGOSY_SIZE, -1);
        return 0;
    }
    return count > 0 ? (int64)count : 0;
}

/* What -1 in a shape stands for: the elements that the other sizes leave. */
INLINE int64 remaining_size(int64 total, int64 others, void *scratch) {
    if (others == 0 ? total != 0 : total % others != 0) argosy_fail(scratch, ARGOSY_SHAPES, -1);
    return others == 0 ? 0 : total / others;
}

#endif
