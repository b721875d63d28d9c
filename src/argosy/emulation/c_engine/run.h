/* Runs workgroups one after the other, the waves of each in turn from barrier to barrier. */

enum { BRANCH, IF_SCC0, IF_SCC1, IF_VCCZ, IF_VCCNZ, IF_EXECZ, IF_EXECNZ, END, BARRIER };
enum { RUNS, WAITS, ENDED };

typedef struct {
  uint32_t lanes, waves, vectors, accumulators, private_size, lds_size, threads, kernarg_at, ids_at, ids_in_traps, id_axes;
  uint64_t kernarg;
  uint32_t grid[3];
  uint32_t poison;
} Launch;

static int run_wave(Machine *m, Wave *w) {
  for (;;) {
    if (w->place < 0 || w->place >= m->count) return fail(m, FAULT_END, w, 0, 0, 0);
    const Instruction *in = &m->code[w->place];
    int wrong = 0;
    switch (in->unit) {
    case NOTHING: break;
    case VECTOR: run_vector(m, w, in); break;
    case SCALAR: run_scalar(m, w, in); break;
    case ACCESS: wrong = run_access(m, w, in); break;
    case MATRIX: run_matrix(m, w, in); break;
    case MOVE: wrong = run_move(m, w, in); break;
    default: {
      int taken = 0;
      switch (in->what) {
      case END: w->state = ENDED; return 0;
      case BARRIER: w->state = WAITS, w->place++; return 0;
      case BRANCH: taken = 1; break;
      case IF_SCC0: taken = !w->scc; break;
      case IF_SCC1: taken = w->scc; break;
      case IF_VCCZ: taken = pair_of(m, w, VCC) == 0; break;
      case IF_VCCNZ: taken = pair_of(m, w, VCC) != 0; break;
      case IF_EXECZ: taken = active(m, w) == 0; break;
      case IF_EXECNZ: taken = active(m, w) != 0; break;
      default: return fail(m, FAULT_UNKNOWN, w, 0, 0, 0);
      }
      if (taken) {
        w->place = in->target;
        continue;
      }
    }
    }
    if (wrong) return wrong;
    w->place++;
  }
}

static void begin(Machine *m, Wave *w, const Launch *l, uint32_t number, uint64_t group) {
  for (uint32_t r = 0; r < l->vectors; r++)
    for (int i = 0; i < LANES; i++) w->vectors[r][i] = l->poison;
  for (uint32_t r = 0; r < l->accumulators; r++)
    for (int i = 0; i < LANES; i++) w->accumulators[r][i] = l->poison;
  for (int r = 0; r < SCALARS; r++) w->scalars[r] = r < NOWHERE ? l->poison : 0;
  w->scc = 0, w->state = RUNS, w->place = 0, w->number = (int32_t)number;
  if (l->kernarg_at != ~0u) {
    w->scalars[l->kernarg_at] = (uint32_t)l->kernarg;
    w->scalars[l->kernarg_at + 1] = (uint32_t)(l->kernarg >> 32);
  }
  uint32_t id[3] = {(uint32_t)(group % l->grid[0]), (uint32_t)(group / l->grid[0] % l->grid[1]),
                    (uint32_t)(group / ((uint64_t)l->grid[0] * l->grid[1]))};
  if (l->ids_in_traps) {
    w->scalars[TTMP + 9] = id[0];
    w->scalars[TTMP + 7] = id[1] | id[2] << 16;
    w->scalars[TTMP + 8] = number << 25;
  } else {
    uint32_t at = l->ids_at;
    for (int axis = 0; axis < 3; axis++)
      if (l->id_axes >> axis & 1) w->scalars[at++] = id[axis];
  }
  w->scalars[M0] = 0;
  uint64_t on = 0;
  for (uint32_t i = 0; i < l->lanes; i++) {
    uint32_t thread = number * l->lanes + i;
    w->vectors[0][i] = thread;
    if (thread < l->threads) on |= 1ull << i;
  }
  w->scalars[EXEC] = (uint32_t)on;
  w->scalars[EXEC + 1] = (uint32_t)(on >> 32);
}

static int run_group(Machine *m, Wave *waves, const Launch *l, uint64_t group) {
  m->group = group;
  m->barriers++;
  memset(m->lds, (int)(l->poison & 0xFF), l->lds_size);
  for (uint32_t i = 0; i < l->waves; i++) begin(m, &waves[i], l, i, group);
  for (;;) {
    uint32_t ended = 0;
    for (uint32_t i = 0; i < l->waves; i++) {
      if (waves[i].state == RUNS) {
        int wrong = run_wave(m, &waves[i]);
        if (wrong) return wrong;
      }
      ended += waves[i].state == ENDED;
    }
    if (ended == l->waves) return 0;
    m->barriers++;
    for (uint32_t i = 0; i < l->waves; i++)
      if (waves[i].state == WAITS) waves[i].state = RUNS;
  }
}

static size_t room_of(uint32_t size) { return (size + 63) / 64 * 64; }

/* Run groups from `first` to `last`. `memory` has room for all registers, and for local and private memory. */
__attribute__((visibility("default"))) int argosy_emulate(const Instruction *code, int32_t count, const Instruction *others,
                                                          const Move *moves, const Shape *shapes, const Range *ranges,
                                                          int32_t range_count, const Launch *launch, uint64_t first,
                                                          uint64_t last, uint8_t *memory, Fault *fault) {
  Machine m = {code, others, count, (int32_t)launch->lanes, moves, shapes, ranges, range_count, launch->private_size,
               launch->lds_size};
  Wave waves[32];
  uint8_t *at = memory;
  for (uint32_t i = 0; i < launch->waves; i++) {
    waves[i].vectors = (void *)at, at += (size_t)launch->vectors * LANES * 4;
    waves[i].accumulators = (void *)at, at += (size_t)launch->accumulators * LANES * 4;
  }
  for (uint32_t i = 0; i < launch->waves; i++) waves[i].private_memory = at, at += (size_t)launch->private_size * LANES;
  m.lds = at, at += room_of(launch->lds_size);
  m.shadow = (Shadow *)at;
  memset(m.shadow, 0, launch->lds_size * sizeof(Shadow));
  m.fault = fault;
  fault->code = 0;
  for (uint64_t group = first; group < last; group++) {
    int wrong = run_group(&m, waves, launch, group);
    if (wrong) return wrong;
  }
  return 0;
}

__attribute__((visibility("default"))) void argosy_emulator_math(const Math *given) { math_ = *given; }

/* One operation of the table, on values as registers hold them. */
__attribute__((visibility("default"))) void argosy_emulator_apply(int32_t operation, int32_t n, const void *const *in,
                                                                  void *const *out) {
  handlers[operation](n, in, out);
}

__attribute__((visibility("default"))) uint32_t argosy_emulator_sizes(int which) {
  switch (which) {
  case 0: return sizeof(Instruction);
  case 1: return sizeof(Operand);
  case 2: return sizeof(Launch);
  case 3: return sizeof(Shape);
  default: return sizeof(Fault);
  }
}
