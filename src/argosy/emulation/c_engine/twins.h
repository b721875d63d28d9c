/* What nothing has written: every wave has a twin, whose registers, local and private memory begin with another pattern.

   The twin does what its wave does. Where both have the same values, nothing depends on what was unwritten; where they
   have not, it does, which is allowed in registers and memory of the workgroup, and is a fault in an address, a
   condition, the mask of lanes or a store to global memory. `differ` has a flag for each register of each kind, set
   where the two may have different values; where it is clear, the twin's register holds nothing, and the wave's counts
   for both. So what is written whole from registers without a flag costs one look at the flags. */

enum { SCC_FLAG = SCALARS };

static inline uint8_t *flags_of(const Wave *w, const Operand *o) {
  if (o->kind == OF_CONSTANT || o->kind == OF_NOTHING) return 0;
  return o->kind == OF_SCC ? w->differ[OF_SCALAR] + SCC_FLAG : w->differ[o->kind] + o->number;
}

static inline int differs(const Wave *w, const Operand *o) {
  const uint8_t *flags = flags_of(w, o);
  if (!flags) return 0;
  if (o->count == 1) return flags[0];
  for (int k = 0; k < o->count; k++)
    if (flags[k]) return 1;
  return 0;
}

static void same_from_now(const Wave *w, const Operand *o) {
  uint8_t *flags = flags_of(w, o);
  for (int k = 0; flags && k < o->count; k++) flags[k] = 0;
}

/* Give the twin the values that it shares. */
static void fill_twin(Wave *w, const Operand *o) {
  const uint8_t *flags = flags_of(w, o);
  for (int k = 0; flags && k < o->count; k++) {
    if (flags[k]) continue;
    int row = o->number + k;
    switch (o->kind) {
    case OF_VECTOR: __builtin_memcpy_inline(w->twin->vectors[row], w->vectors[row], sizeof(uint32_t) * LANES); break;
    case OF_ACCUMULATOR:
      __builtin_memcpy_inline(w->twin->accumulators[row], w->accumulators[row], sizeof(uint32_t) * LANES);
      break;
    case OF_SCALAR: w->twin->scalars[row] = w->scalars[row]; break;
    default: w->twin->scc = w->scc;
    }
  }
}

static void compare(const Machine *m, Wave *w, const Operand *o) {
  uint8_t *flags = flags_of(w, o);
  for (int k = 0; flags && k < o->count; k++) {
    int row = o->number + k;
    if (o->kind == OF_SCALAR) {
      flags[k] = row < NOWHERE && w->scalars[row] != w->twin->scalars[row];
    } else {
      const uint32_t *mine = o->kind == OF_VECTOR ? w->vectors[row] : w->accumulators[row];
      const uint32_t *others = o->kind == OF_VECTOR ? w->twin->vectors[row] : w->twin->accumulators[row];
      uint32_t all = 0;
      for (int i = 0; i < m->lanes; i++) all |= mine[i] ^ others[i];
      flags[k] = all != 0;
    }
  }
}

/* The operands that an instruction reads and writes; how many. */
static int list_sources(const Machine *m, const Instruction *in, const Operand **to) {
  int n = 0;
  for (int k = 0; k < in->sources; k++) {
    static const Operand scc = {OF_SCC, 0, 0, 0, 0, 1, 0};
    to[n++] = in->unit <= SCALAR && in->source_type[k] == SCC ? &scc : &in->source[k];
  }
  return in->unit == VECTOR && in->second ? n + list_sources(m, &m->others[in->second - 1], to + n) : n;
}

static int list_results(const Machine *m, const Instruction *in, const Operand **to) {
  static const Operand scc = {OF_SCC, 0, 0, 0, 0, 1, 0};
  int n = 0, shown = 0;
  for (int k = 0; k < in->results; k++) {
    int type = in->unit == SCALAR ? in->result_type[k] : 0;
    if (type == SCC) to[n++] = &scc;
    else if (type != EXEC32 && type != EXEC64) to[n++] = &in->result[shown++];
  }
  if (in->unit == MOVE && (in->what == SWAP || in->what == SWAP_16 || in->what == SWAP_32)) to[n++] = &in->source[0];
  return in->unit == VECTOR && in->second ? n + list_results(m, &m->others[in->second - 1], to + n) : n;
}

/* Whether a result is written in all lanes and bits. */
static int writes_whole(const Machine *m, const Wave *w, const Instruction *in) {
  int all = active(m, w) == every_lane(m);
  switch (in->unit) {
  case SCALAR: return 1;
  case MATRIX: return m->shapes[in->what].out != F16 && m->shapes[in->what].out != BF16;
  case MOVE:
    if (in->what == READ_FIRST || in->what == READ_LANE) return 1;
    if (in->what == SWAP || in->what == SWAP_16 || in->what == SWAP_32) return 0; /* what a result held is a source too */
    return all && in->what != WRITE_LANE && in->what != PERMUTE_ROW && in->what != PERMUTE_ROWS_CROSSED;
  default:
    if (!all || in->move >= 0 || in->part) return 0;
    for (int k = 0; k < in->results; k++)
      if ((in->result_type[k] == HALF && !in->clears) || in->result_type[k] == HIGH) return 0;
    return !in->second || writes_whole(m, w, &m->others[in->second - 1]);
  }
}

static int execute(Machine *m, Wave *w, const Instruction *in) {
  switch (in->unit) {
  case VECTOR: run_vector(m, w, in); return 0;
  case SCALAR: run_scalar(m, w, in); return 0;
  case MATRIX: run_matrix(m, w, in); return 0;
  case ACCESS: return run_access(m, w, in);
  default: return run_move(m, w, in);
  }
}

static void wake_twin(Wave *w) {
  w->twin->scalars[EXEC] = w->scalars[EXEC];
  w->twin->scalars[EXEC + 1] = w->scalars[EXEC + 1];
  w->twin->place = w->place, w->twin->number = w->number;
}

/* Whether no flag is set of what an instruction reads and writes. */
static inline int all_same(const Machine *m, const Wave *w, const Instruction *in) {
  for (int k = 0; k < in->sources; k++)
    if (differs(w, &in->source[k])) return 0;
  if (in->unit == SCALAR && w->differ[OF_SCALAR][SCC_FLAG]) return 0;
  int results = in->results > 2 ? 2 : in->results;
  for (int k = 0; k < results; k++)
    if (differs(w, &in->result[k])) return 0;
  return !in->second || all_same(m, w, &m->others[in->second - 1]);
}

static int execute_both(Machine *m, Wave *w, const Instruction *in) {
  if (all_same(m, w, in)) return execute(m, w, in);
  const Operand *sources[10], *results[8];
  int read = list_sources(m, in, sources), written = list_results(m, in, results), apart = 0, kept = 0;
  for (int k = 0; k < read; k++) apart |= differs(w, sources[k]);
  for (int k = 0; k < written; k++) kept |= differs(w, results[k]);
  if (!apart && kept) kept = !writes_whole(m, w, in);
  if (!apart && !kept) {
    int wrong = execute(m, w, in);
    for (int k = 0; k < written; k++) same_from_now(w, results[k]); /* without effect where one is not written whole */
    return wrong;
  }
  for (int k = 0; k < read; k++) fill_twin(w, sources[k]);
  for (int k = 0; k < written; k++) fill_twin(w, results[k]);
  wake_twin(w);
  int wrong = execute(m, w->twin, in);
  if (!wrong) wrong = execute(m, w, in);
  if (wrong) return wrong;
  for (int k = 0; k < written; k++)
    if (results[k]->kind == OF_SCC) w->differ[OF_SCALAR][SCC_FLAG] = w->scc != w->twin->scc;
    else compare(m, w, results[k]);
  uint64_t on = active(m, w) ^ active(m, w->twin);
  return on ? fail(m, FAULT_UNWRITTEN_CONDITION, w, __builtin_ctzll(on), 0, 0) : 0;
}

/* ------------------------------------------------------------------------------------------------------ memory */
/* Where the operands of an access lie: what it loads, its first address, its first data. */
typedef struct {
  const Operand *result, *data, *more, *into; /* into: addresses in local memory */
  const Operand *parts[4]; /* of the address */
  int count;
} Access;

static Access access_of(const Instruction *in) {
  Access a = {0};
  const Operand *source = in->source, *end = source + in->sources;
  if (in->into) {
    if (in->into == BY_LANES) a.into = source++;
  } else if (in->space == IN_BUFFER) {
    if (in->store) a.data = source++;
    else a.result = source++;
  } else {
    if (!in->store || in->returns) a.result = source++;
    if (in->store) a.data = source + 1;
    if (in->store && in->space == IN_LOCAL && (in->pairs || in->atomic == A_CMPSWAP)) a.more = source + 2;
  }
  for (; source < end && a.count < 4; source++)
    if (source != a.data && source != a.more) a.parts[a.count++] = source;
  return a;
}

/* What a lane's address depends on, as one number. */
static uint64_t place_of(const Wave *w, const Instruction *in, const Access *a, int lane) {
  uint64_t odd = 0x9E3779B97F4A7C15ull;
  if (in->into) {
    Instruction plain = *in;
    plain.into = 0;
    uint64_t target = in->into == BY_LANES ? word_at(w, a->into, 0, lane) : w->scalars[M0];
    return place_of(w, &plain, a, lane) * odd + target;
  }
  if (in->space == IN_GLOBAL) return lane_address(w, in, a->parts[0], a->count > 1 ? a->parts[1] : 0, lane);
  if (in->space == IN_BUFFER) {
    uint64_t offset = in->flags & HAS_OFFEN ? word_at(w, a->parts[0], 0, lane) : 0, place = 0;
    for (int k = 0; k < 4; k++) place = place * odd + word_at(w, a->parts[1], k, 0);
    return place + offset + word_at(w, a->parts[2], 0, 0);
  }
  uint64_t place = 0;
  for (int k = 0; k < a->count; k++)
    if (a->parts[k]->kind != OF_NOTHING) place += wide_at(w, a->parts[k], lane);
  return place;
}

/* A fault where the address differs in a lane that is on. */
static int address_apart(Machine *m, Wave *w, const Instruction *in, const Access *a) {
  int apart = 0;
  for (int k = 0; k < a->count; k++) apart |= differs(w, a->parts[k]);
  if (a->into) apart |= differs(w, a->into);
  if (in->into == BY_M0) apart |= w->differ[OF_SCALAR][M0];
  if (!apart) return 0;
  if (!w->differ[OF_SCALAR][M0]) w->twin->scalars[M0] = w->scalars[M0];
  if (a->into) fill_twin(w, a->into);
  for (int k = 0; k < a->count; k++) fill_twin(w, a->parts[k]);
  uint64_t mask = in->space == IN_SCALAR ? 1 : active(m, w);
  for (int i = 0; i < m->lanes; i++)
    if (mask >> i & 1 && place_of(w, in, a, i) != place_of(w->twin, in, a, i))
      return fail(m, FAULT_UNWRITTEN_ADDRESS, w, i, 0, in->bytes);
  return 0;
}

/* The first lane that is on in which what is stored is not the twin's; -1 for none. */
static int lane_apart(const Machine *m, const Wave *w, const Instruction *in, const Operand *data) {
  uint64_t mask = active(m, w);
  int words = in->atomic ? data->count : in->bytes / 4, bits = 8 * in->bytes;
  int high = in->bytes < 4 && (in->half == 2 || data->high);
  for (int i = 0; i < m->lanes; i++) {
    if (!(mask >> i & 1)) continue;
    for (int k = 0; k < words; k++)
      if (word_at(w, data, k, i) != word_at(w->twin, data, k, i)) return i;
    if (words == 0 && ((word_at(w, data, 0, i) ^ word_at(w->twin, data, 0, i)) >> (high ? 16 : 0)) << (32 - bits)) return i;
  }
  return -1;
}

/* Whether local memory that a load reads differs from the twin's. */
static int local_apart(const Machine *m, const Wave *w, const Instruction *in) {
  const Operand *address = &in->source[1];
  uint64_t mask = active(m, w);
  for (int i = 0; i < m->lanes; i++) {
    if (!(mask >> i & 1)) continue;
    for (int pair = 0; pair <= (in->pairs > 0); pair++) {
      uint32_t base = word_at(w, address, 0, i);
      uint64_t place = base + (uint32_t)in->offset[pair];
      if (base == NO_ADDRESS || place + in->bytes > m->lds_size) continue;
      uint32_t mine[4] = {0}, others[4] = {0};
      copy_bytes(mine, m->lds + place, in->bytes);
      copy_bytes(others, m->twin_lds + place, in->bytes);
      if ((mine[0] ^ others[0]) | (mine[1] ^ others[1]) | (mine[2] ^ others[2]) | (mine[3] ^ others[3])) return 1;
    }
  }
  return 0;
}

static int run_twin(Machine *m, Wave *who, const Instruction *in) {
  uint8_t *lds = m->lds;
  m->lds = m->twin_lds, m->twins = 1;
  int wrong = run_access(m, who, in);
  m->lds = lds, m->twins = 0;
  return wrong;
}

/* A store, in the memory of both; to global memory, only where both store the same. */
static int store_both(Machine *m, Wave *w, const Instruction *in, const Access *a) {
  int own = in->space == IN_LOCAL || in->space == IN_PRIVATE;
  int apart = differs(w, a->data) || (a->more && differs(w, a->more));
  if (apart) {
    for (int k = 0; k < a->count; k++) fill_twin(w, a->parts[k]);
    fill_twin(w, a->data);
    if (a->more) fill_twin(w, a->more);
    int lane = own ? -1 : lane_apart(m, w, in, a->data);
    if (lane >= 0) return fail(m, FAULT_UNWRITTEN_STORE, w, lane, 0, in->bytes);
  }
  if (a->result) fill_twin(w, a->result);
  int wrong = run_access(m, w, in);
  if (wrong) return wrong;
  if (a->result) { /* an atomic operation that gives back what was there */
    for (int k = 0; k < a->result->count; k++)
      for (int i = 0; i < m->lanes; i++)
        if (active(m, w) >> i & 1) w->twin->vectors[a->result->number + k][i] = w->vectors[a->result->number + k][i];
    compare(m, w, a->result);
  }
  if (!own) return 0;
  uint8_t *mine = w->private_memory;
  if (!apart) w->private_memory = w->twin->private_memory;
  wrong = run_twin(m, apart ? w->twin : w, in);
  w->private_memory = mine;
  return wrong;
}

/* An atomic operation, on the local memory of both. */
static int local_atomic_both(Machine *m, Wave *w, const Instruction *in, const Access *a) {
  const Operand *all[] = {a->parts[0], a->data, a->more, a->result};
  for (int k = 0; k < 4; k++)
    if (all[k]) fill_twin(w, all[k]);
  int wrong = run_access(m, w, in);
  if (!wrong) wrong = run_twin(m, w->twin, in);
  if (!wrong && a->result) compare(m, w, a->result);
  return wrong;
}

static int access_both(Machine *m, Wave *w, const Instruction *in) {
  Access a = access_of(in);
  wake_twin(w);
  int wrong = address_apart(m, w, in, &a);
  if (wrong) return wrong;
  if (in->atomic && in->space == IN_LOCAL) return local_atomic_both(m, w, in, &a);
  if (a.data) return store_both(m, w, in, &a);
  if (in->into) {
    wrong = run_access(m, w, in);
    return wrong ? wrong : run_twin(m, w, in);
  }
  int whole = in->space == IN_SCALAR || (active(m, w) == every_lane(m) && !in->half && !a.result->high);
  int apart = in->space == IN_PRIVATE || (in->space == IN_LOCAL && local_apart(m, w, in)) || (!whole && differs(w, a.result));
  if (!apart) {
    wrong = run_access(m, w, in);
    if (whole) same_from_now(w, a.result);
    return wrong;
  }
  for (int k = 0; k < a.count; k++) fill_twin(w, a.parts[k]);
  fill_twin(w, a.result);
  wrong = run_twin(m, w->twin, in);
  if (!wrong) wrong = run_access(m, w, in);
  compare(m, w, a.result);
  return wrong;
}

/* What a condition sees, where the twin sees another. */
static int condition_apart(Machine *m, Wave *w, int what) {
  uint8_t *flags = w->differ[OF_SCALAR];
  if (what == IF_SCC0 || what == IF_SCC1)
    return flags[SCC_FLAG] && w->scc != w->twin->scc ? fail(m, FAULT_UNWRITTEN_CONDITION, w, 0, 0, 0) : 0;
  if ((what != IF_VCCZ && what != IF_VCCNZ) || !(flags[VCC] || flags[VCC + 1])) return 0;
  for (int k = 0; k < 2; k++)
    if (!flags[VCC + k]) w->twin->scalars[VCC + k] = w->scalars[VCC + k];
  int mine = pair_of(m, w, VCC) != 0, others = pair_of(m, w->twin, VCC) != 0;
  return mine != others ? fail(m, FAULT_UNWRITTEN_CONDITION, w, 0, 0, 0) : 0;
}
