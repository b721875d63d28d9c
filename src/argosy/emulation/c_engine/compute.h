/* Operations of the table: fetch sources, call the operation's function on all lanes, write results. */

typedef void (*Handler)(int n, const void *const *in, void *const *out);
static const Handler handlers[];

typedef union {
  uint16_t half[LANES];
  uint32_t word[LANES];
  uint64_t wide[LANES];
  uint8_t mask[LANES];
  float real[LANES];
} __attribute__((aligned(64))) Lanes;

/* The sign changes that an operand asks for, on words. */
static void change_words(const Operand *o, int n, uint32_t *to) {
  uint32_t clear = o->absolute ? 0x7FFFFFFFu : ~0u, turn = o->negate ? 0x80000000u : 0;
  for (int i = 0; i < n; i++) to[i] = (to[i] & clear) ^ turn;
}

static void select_part(const Instruction *in, int source, int n, uint32_t *words) {
  int code = in->select[source] - 1, shift = 8 * (code & 3), bits = code & 4 ? 16 : 8;
  for (int i = 0; i < n; i++) {
    uint32_t part = words[i] >> shift & ((1u << bits) - 1);
    words[i] = in->extend[source] ? (uint32_t)((int32_t)(part << (32 - bits)) >> (32 - bits)) : part;
  }
}

/* One source, in the form its type has for the functions; where it lies. `high` picks the half of a packed one. */
static const void *fetch(const Machine *m, const Wave *w, const Instruction *in, int k, int n, int which, Lanes *to) {
  const Operand *o = &in->source[k];
  int type = in->source_type[k];
  int picked = which ? in->op_sel_hi >> k & 1 : in->op_sel >> k & 1;
  switch (type) {
  case WORD: {
    const uint32_t *row = row_of(w, o, 0);
    int selected = k < 2 && in->select[k];
    if (row && !o->negate && !o->absolute && !selected && !(k == 0 && in->move >= 0)) return row;
    fetch_word(w, o, 0, n, to->word);
    if (selected) select_part(in, k, n, to->word);
    if (o->negate || o->absolute) change_words(o, n, to->word);
    return to->word;
  }
  case HALF:
    if (k < 2 && in->select[k]) {
      uint32_t words[LANES];
      fetch_word(w, o, 0, n, words);
      select_part(in, k, n, words);
      for (int i = 0; i < n; i++) {
        uint16_t half = (uint16_t)words[i];
        if (o->absolute) half &= 0x7FFF;
        to->half[i] = (uint16_t)(o->negate ? half ^ 0x8000 : half);
      }
    } else {
      fetch_half(w, o, o->high || picked, n, to->half);
    }
    return to->half;
  case WIDE: {
    const uint32_t *low = row_of(w, o, 0);
    if (low) {
      const uint32_t *high = row_of(w, o, 1);
      if (o->count > 1)
        for (int i = 0; i < n; i++) to->wide[i] = low[i] | (uint64_t)high[i] << 32;
      else
        for (int i = 0; i < n; i++) to->wide[i] = low[i];
    } else {
      uint64_t value = shared_word(w, o, 0);
      if (o->kind == OF_CONSTANT || o->count > 1) value |= (uint64_t)shared_word(w, o, 1) << 32;
      for (int i = 0; i < n; i++) to->wide[i] = value;
    }
    if (o->absolute)
      for (int i = 0; i < n; i++) to->wide[i] &= ~(1ull << 63);
    if (o->negate)
      for (int i = 0; i < n; i++) to->wide[i] ^= 1ull << 63;
    return to->wide;
  }
  case MASK: fetch_mask(pair_of(m, w, o->number), n, to->mask); return to->mask;
  case SCC: to->mask[0] = w->scc; return to->mask;
  case EXEC32: to->word[0] = w->scalars[EXEC]; return to->word;
  case EXEC64: to->wide[0] = w->scalars[EXEC] | (uint64_t)w->scalars[EXEC + 1] << 32; return to->wide;
  case MIXED:
  case MIXED_BFLOAT:
    if (in->op_sel_hi >> k & 1) {
      uint16_t halves[LANES];
      fetch_half(w, o, in->op_sel >> k & 1, n, halves);
      if (type == MIXED)
        for (int i = 0; i < n; i++) to->real[i] = half_value(halves[i]);
      else
        for (int i = 0; i < n; i++) to->word[i] = (uint32_t)halves[i] << 16;
    } else {
      fetch_word(w, o, 0, n, to->word);
      if (o->negate || o->absolute) change_words(o, n, to->word);
    }
    return to->word;
  case PACKED_HALF: {
    Operand plain = *o;
    plain.negate = plain.absolute = 0;
    fetch_half(w, &plain, picked, n, to->half);
    if ((which ? in->neg_hi : in->neg_lo) >> k & 1)
      for (int i = 0; i < n; i++) to->half[i] ^= 0x8000;
    return to->half;
  }
  default: /* PACKED_WORD, PICKED_WORD */
    fetch_word(w, o, picked && o->count > 1, n, to->word);
    if ((which ? in->neg_hi : in->neg_lo) >> k & 1)
      for (int i = 0; i < n; i++) to->word[i] ^= 0x80000000u;
    return to->word;
  }
}

/* A result with what is asked for behind the operation. In double, where a power of two loses nothing. */
static double finished(const Instruction *in, double x) {
  if (in->factor) x *= in->factor == 1 ? 2 : in->factor == 2 ? 4 : 0.5;
  return !in->clamp ? x : !(x > 0) ? 0 : x > 1 ? 1 : x;
}

static void finish(const Instruction *in, int n, Lanes *value) {
  switch (in->result_type[0]) {
  case WIDE:
    for (int i = 0; i < n; i++) value->wide[i] = bits_f64_u64(finished(in, bits_u64_f64(value->wide[i])));
    break;
  case HALF:
  case HIGH:
  case PACKED_HALF:
    for (int i = 0; i < n; i++) value->half[i] = half_bits(double_to_half(finished(in, half_value(value->half[i]))));
    break;
  default:
    for (int i = 0; i < n; i++) value->real[i] = (float)finished(in, value->real[i]);
  }
}

typedef struct {
  Lanes value[2][2]; /* by half of a packed operation, by result */
  uint64_t written;
} Outcome;

static uint64_t apply_move(const Machine *m, const Instruction *in, uint64_t mask, int bytes, Lanes *to) {
  const Move *move = &m->moves[in->move];
  Lanes old = *to;
  uint64_t written = 0;
  for (int i = 0; i < m->lanes; i++) {
    int from = move->source[i], valid = from >= 0 && (in->fetches_off || (mask >> from & 1));
    if (move->written[i] && (valid || in->zeroes)) written |= 1ull << i;
    from = from < 0 ? i : from;
    if (bytes == 2) to->half[i] = valid ? old.half[from] : 0;
    else if (bytes == 4) to->word[i] = valid ? old.word[from] : 0;
    else to->wide[i] = valid ? old.wide[from] : 0;
  }
  return written;
}

static void evaluate(const Machine *m, const Wave *w, const Instruction *in, Outcome *outcome) {
  Lanes buffers[4];
  const void *sources[4];
  int n = m->lanes, packed = in->source_type[0] >= PACKED_HALF;
  uint64_t mask = active(m, w);
  outcome->written = mask;
  for (int which = 0; which <= packed; which++) {
    for (int k = 0; k < in->sources; k++) {
      sources[k] = fetch(m, w, in, k, n, which, &buffers[k]);
      if (k == 0 && in->move >= 0) {
        int bytes = in->source_type[0] == HALF ? 2 : in->source_type[0] == WIDE ? 8 : 4;
        outcome->written &= apply_move(m, in, mask, bytes, &buffers[0]);
      }
    }
    if (in->source_type[0] == PICKED_WORD) { /* the low result of the first source, the high one of the second */
      for (int i = 0; i < n; i++) outcome->value[which][0].word[i] = ((const uint32_t *)sources[which])[i];
      continue;
    }
    void *results[2] = {&outcome->value[which][0], &outcome->value[which][1]};
    handlers[in->what](n, sources, results);
    if (in->clamp || in->factor) finish(in, n, &outcome->value[which][0]);
  }
}

/* Put a result into a part of a register (SDWA). */
static void place_part(const Machine *m, Wave *w, const Instruction *in, const Lanes *value, uint64_t mask) {
  int code = in->part - 1, shift = 8 * (code & 3), bits = code & 4 ? 16 : 8, half = in->result_type[0] == HALF;
  uint32_t part = ((1u << bits) - 1) << shift, words[LANES];
  for (int i = 0; i < m->lanes; i++) {
    uint32_t old = word_at(w, &in->result[0], 0, i), moved = (half ? value->half[i] : value->word[i]) << shift & part;
    int left = 32 - shift - bits;
    words[i] = in->unused == 1 ? (old & ~part) | moved : in->unused == 2 ? (uint32_t)((int32_t)(moved << left) >> left) : moved;
  }
  store_word(m, w, &in->result[0], 0, words, mask);
}

static void commit(const Machine *m, Wave *w, const Instruction *in, Outcome *outcome) {
  int n = m->lanes;
  uint64_t mask = active(m, w);
  uint64_t on = outcome->written; /* to a mask, lanes that a move leaves alone are off */
  if (in->sets_exec) write_pair(m, w, EXEC, pack_mask(outcome->value[0][0].mask, n) & on);
  for (int k = 0; k < in->results; k++) {
    const Operand *o = &in->result[k];
    Lanes *value = &outcome->value[0][k];
    if (in->part && k == 0) {
      place_part(m, w, in, value, outcome->written);
      continue;
    }
    switch (in->result_type[k]) {
    case MASK: write_pair(m, w, o->number, pack_mask(value->mask, n) & on); break;
    case HALF: store_half(m, w, o, value->half, outcome->written, o->high || in->picks_high, in->clears); break;
    case HIGH: store_half(m, w, o, value->half, outcome->written, 1, 0); break;
    case WIDE: {
      uint32_t part[LANES];
      for (int i = 0; i < n; i++) part[i] = (uint32_t)value->wide[i];
      store_word(m, w, o, 0, part, outcome->written);
      for (int i = 0; i < n; i++) part[i] = (uint32_t)(value->wide[i] >> 32);
      store_word(m, w, o, 1, part, outcome->written);
      break;
    }
    case PAIR:
      store_word(m, w, o, 0, value->word, outcome->written);
      store_word(m, w, o, 1, outcome->value[0][1].word, outcome->written);
      break;
    case PACKED_HALF: {
      uint32_t both[LANES];
      for (int i = 0; i < n; i++) both[i] = value->half[i] | (uint32_t)outcome->value[1][k].half[i] << 16;
      store_word(m, w, o, 0, both, outcome->written);
      break;
    }
    case PACKED_WORD:
    case PICKED_WORD:
      store_word(m, w, o, 0, value->word, outcome->written);
      store_word(m, w, o, 1, outcome->value[1][k].word, outcome->written);
      break;
    default: store_word(m, w, o, 0, value->word, outcome->written);
    }
  }
}

static void run_vector(Machine *m, Wave *w, const Instruction *in) {
  Outcome first, second;
  evaluate(m, w, in, &first);
  if (in->second) {
    const Instruction *other = &m->others[in->second - 1];
    evaluate(m, w, other, &second);
    commit(m, w, in, &first);
    commit(m, w, other, &second);
    return;
  }
  commit(m, w, in, &first);
}

static void run_scalar(Machine *m, Wave *w, const Instruction *in) {
  Lanes buffers[4], results[4];
  const void *sources[4];
  void *out[4] = {&results[0], &results[1], &results[2], &results[3]};
  for (int k = 0; k < in->sources; k++) sources[k] = fetch(m, w, in, k, 1, 0, &buffers[k]);
  handlers[in->what](1, sources, out);
  int shown = 0;
  for (int k = 0; k < in->results; k++) {
    switch (in->result_type[k]) {
    case SCC: w->scc = results[k].mask[0]; break;
    case EXEC32: w->scalars[EXEC] = results[k].word[0]; break;
    case EXEC64:
      w->scalars[EXEC] = results[k].word[0];
      w->scalars[EXEC + 1] = results[k].word[1];
      break;
    default: {
      const Operand *o = &in->result[shown++];
      if (o->number >= NOWHERE) break;
      w->scalars[o->number] = in->result_type[k] == HALF ? results[k].half[0] : results[k].word[0];
      if (in->result_type[k] == WIDE) w->scalars[o->number + 1] = results[k].word[1];
    }
    }
  }
}
