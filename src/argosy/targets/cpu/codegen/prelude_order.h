/* Putting things in order: a stable merge sort of positions, and heaps of the best few. */
#ifndef ARGOSY_PRELUDE_ORDER_H
#define ARGOSY_PRELUDE_ORDER_H

/* Whether the thing at position `a` comes before that at `b`. */
typedef bool (*before_function)(const void *context, int64 a, int64 b);

/* Positions 0 … count-1 in order, equal ones as they were; `spare` has room for as many. */
INLINE void sort_positions(int64 *order, int64 *spare, int64 count, before_function before, const void *context) {
    for (int64 i = 0; i < count; ++i) order[i] = i;
    int64 *from = order, *to = spare;
    for (int64 width = 1; width < count; width *= 2) {
        for (int64 begin = 0; begin < count; begin += 2 * width) {
            int64 middle = min_int64(begin + width, count), end = min_int64(begin + 2 * width, count);
            int64 left = begin, right = middle;
            for (int64 i = begin; i < end; ++i) {
                bool take_right = right < end && (left >= middle || before(context, from[right], from[left]));
                to[i] = take_right ? from[right++] : from[left++];
            }
        }
        int64 *swap = from;
        from = to, to = swap;
    }
    if (from != order)
        for (int64 i = 0; i < count; ++i) order[i] = from[i];
}

/* The first `kept` positions of that order: `heap` holds the best so far, the worst of them on top. */
INLINE void sift_down(int64 *heap, int64 top, int64 count, before_function before, const void *context) {
    int64 moved = heap[top];
    for (int64 child = 2 * top + 1; child < count; child = 2 * top + 1) {
        if (child + 1 < count && before(context, heap[child], heap[child + 1])) ++child;
        if (!before(context, moved, heap[child])) break;
        heap[top] = heap[child];
        top = child;
    }
    heap[top] = moved;
}
/* `before` must tell equal things apart, by their positions. */
INLINE void first_positions(int64 *heap, int64 kept, int64 count, before_function before, const void *context) {
    for (int64 i = 0; i < kept; ++i) heap[i] = i;
    for (int64 i = kept / 2; i-- > 0;) sift_down(heap, i, kept, before, context);
    for (int64 i = kept; i < count && kept; ++i) {
        if (before(context, i, heap[0])) {
            heap[0] = i;
            sift_down(heap, 0, kept, before, context);
        }
    }
    for (int64 left = kept; left-- > 1;) {
        int64 worst = heap[0];
        heap[0] = heap[left];
        heap[left] = worst;
        sift_down(heap, 0, left, before, context);
    }
}

#endif
