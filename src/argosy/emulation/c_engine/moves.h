/* What moves values between lanes and files of registers. Names are those of decode.LANES, in the order of encode.py. */

enum {
  READ_FIRST, READ_LANE, WRITE_LANE, COUNT_LOW, COUNT_HIGH, PERMUTE_ROW, PERMUTE_ROWS_CROSSED, PERMUTE_64, SWAP_32, SWAP_16,
  SWAP, READ_ACC, WRITE_ACC, MOVE_ACC, LOCAL_BACKWARD, LOCAL_FORWARD, SWIZZLE
};

static int run_move(Machine *m, Wave *w, const Instruction *in) {
  const Operand *result = &in->result[0], *source = in->source;
  uint64_t mask = active(m, w);
  int n = m->lanes;
  uint32_t value[LANES], made[LANES];
  switch (in->what) {
  case READ_FIRST: {
    int lane = mask ? __builtin_ctzll(mask) : 0;
    if (result->number < NOWHERE) w->scalars[result->number] = word_at(w, &source[0], 0, lane);
    return 0;
  }
  case READ_LANE: {
    int lane = (int)(word_at(w, &source[1], 0, 0) % (uint32_t)n);
    if (result->number < NOWHERE) w->scalars[result->number] = word_at(w, &source[0], 0, lane);
    return 0;
  }
  case WRITE_LANE: w->vectors[result->number][word_at(w, &source[1], 0, 0) % (uint32_t)n] = word_at(w, &source[0], 0, 0); return 0;
  case COUNT_LOW:
  case COUNT_HIGH:
    for (int i = 0; i < n; i++) {
      int below = in->what == COUNT_LOW ? i : i - 32;
      uint32_t kept = below <= 0 ? 0 : below >= 32 ? ~0u : (1u << below) - 1;
      made[i] = (uint32_t)__builtin_popcount(word_at(w, &source[0], 0, i) & kept) + word_at(w, &source[1], 0, i);
    }
    store_word(m, w, result, 0, made, mask);
    return 0;
  case PERMUTE_ROW:
  case PERMUTE_ROWS_CROSSED: {
    fetch_word(w, &source[0], 0, n, value);
    uint32_t choice[2] = {word_at(w, &source[1], 0, 0), word_at(w, &source[2], 0, 0)};
    uint64_t written = 0;
    for (int i = 0; i < n; i++) {
      int place = i & 15, row = (i & ~15) ^ (in->what == PERMUTE_ROW ? 0 : 16);
      int from = row + (int)(choice[place >> 3] >> (4 * (place & 7)) & 15);
      int valid = in->fetches_off || (mask >> from & 1);
      made[i] = valid ? value[from] : 0;
      if (valid || in->zeroes) written |= 1ull << i;
    }
    store_word(m, w, result, 0, made, mask & written);
    return 0;
  }
  case PERMUTE_64:
    fetch_word(w, &source[0], 0, n, value);
    for (int i = 0; i < n; i++) made[i] = value[i ^ 32];
    store_word(m, w, result, 0, made, mask);
    return 0;
  case SWAP_32:
  case SWAP_16: {
    int size = in->what == SWAP_32 ? 32 : 16;
    uint32_t other[LANES], second[LANES];
    fetch_word(w, result, 0, n, value);
    fetch_word(w, &source[0], 0, n, other);
    uint64_t upper = 0, written = 0;
    for (int i = 0; i < n; i++) {
      int valid = in->fetches_off || (mask >> (i ^ size) & 1);
      made[i] = valid ? other[i ^ size] : 0;
      second[i] = valid ? value[i ^ size] : 0;
      upper |= (uint64_t)((i & size) != 0) << i;
      written |= (uint64_t)(valid || in->zeroes) << i;
    }
    store_word(m, w, result, 0, made, mask & written & upper);
    store_word(m, w, &source[0], 0, second, mask & written & ~upper);
    return 0;
  }
  case SWAP:
    fetch_word(w, result, 0, n, value);
    fetch_word(w, &source[0], 0, n, made);
    store_word(m, w, result, 0, made, mask);
    store_word(m, w, &source[0], 0, value, mask);
    return 0;
  case READ_ACC:
  case WRITE_ACC:
  case MOVE_ACC:
    fetch_word(w, &source[0], 0, n, value);
    store_word(m, w, result, 0, value, mask);
    return 0;
  case LOCAL_BACKWARD:
    fetch_word(w, &source[1], 0, n, value);
    for (int i = 0; i < n; i++) {
      int from = (int)(((word_at(w, &source[0], 0, i) + (uint32_t)in->offset[0]) >> 2) % (uint32_t)n);
      made[i] = mask >> from & 1 ? value[from] : 0;
    }
    store_word(m, w, result, 0, made, mask);
    return 0;
  case LOCAL_FORWARD:
    fetch_word(w, &source[1], 0, n, value);
    for (int i = 0; i < n; i++) made[i] = 0;
    for (int i = 0; i < n; i++)
      if (mask >> i & 1) made[((word_at(w, &source[0], 0, i) + (uint32_t)in->offset[0]) >> 2) % (uint32_t)n] = value[i];
    store_word(m, w, result, 0, made, mask);
    return 0;
  case SWIZZLE:
    fetch_word(w, &source[0], 0, n, value);
    for (int i = 0; i < n; i++) {
      int from = m->moves[in->move].source[i];
      made[i] = mask >> from & 1 ? value[from] : 0;
    }
    store_word(m, w, result, 0, made, mask);
    return 0;
  default: return fail(m, FAULT_UNKNOWN, w, 0, 0, 0);
  }
}
