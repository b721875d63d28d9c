/* Runs workgroups one after the other, the waves of each in turn from barrier to barrier. */

enum { RUNS, WAITS, ENDED };

typedef struct {
  uint32_t lanes, waves, vectors, accumulators, private_size, lds_size, threads, kernarg_at, ids_at, ids_in_traps, id_axes;
  uint64_t kernarg;
  uint32_t grid[3];
  uint32_t poison, looks, copies; /* looks: whether for what is unwritten; copies: whether some go into local memory */
} Launch;

static int run_wave(Machine *m, Wave *w) {
  for (;;) {
    if (w->place < 0 || w->place >= m->count) return fail(m, FAULT_END, w, 0, 0, 0);
    const Instruction *in = &m->code[w->place];
    int wrong = 0;
    if (in->unit == ACCESS) {
      raise_counter(w, in);
      wrong = w->twin ? access_both(m, w, in) : run_access(m, w, in);
    } else if (in->unit == FLOW) {
      int taken = 0;
      if (w->twin && (wrong = condition_apart(m, w, in->what))) return wrong;
      switch (in->what) {
      case END: w->state = ENDED; return 0;
      case BARRIER: offer(w), w->state = WAITS, w->place++; return 0;
      case SIGNAL:
      case SIGNAL_FIRST:
        if (w->signalled) return fail(m, FAULT_SIGNAL, w, 0, 0, 0);
        w->signalled = 1;
        offer(w);
        if (in->what == SIGNAL_FIRST) {
          w->scc = m->signals == 0;
          if (w->twin) w->differ[OF_SCALAR][SCC_FLAG] = 0;
        }
        m->signals++;
        break;
      case BARRIER_WAIT:
        if (!w->signalled) return fail(m, FAULT_SIGNAL, w, 0, 0, 0);
        w->signalled = 0, w->state = WAITS, w->place++;
        return 0;
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
    } else if (in->unit == WAIT) {
      wait_for(w, in);
    } else if (in->unit != NOTHING) {
      wrong = w->twin ? execute_both(m, w, in) : execute(m, w, in);
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
  w->scc = 0, w->state = RUNS, w->signalled = 0, w->met = 0, w->place = 0, w->number = (int32_t)number;
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

/* No number, in every type of floats, and zero, in turn: some other value than the wave's, for whatever is asked of it. */
static void fill_unwritten(void *to, size_t bytes) {
  uint8_t *at = to;
  for (size_t i = 0; i < bytes; i++) at[i] = i & 4 ? 0 : 0xFF;
}

/* Let nothing be written but what a launch writes; `begin` has run. */
static void begin_twin(const Machine *m, Wave *w, const Launch *l) {
  Wave *twin = w->twin;
  fill_unwritten(twin->vectors, (size_t)l->vectors * LANES * 4);
  fill_unwritten(twin->accumulators, (size_t)l->accumulators * LANES * 4);
  memset(w->private_memory, (int)(l->poison & 0xFF), (size_t)l->private_size * LANES);
  fill_unwritten(twin->private_memory, (size_t)l->private_size * LANES);
  memset(w->differ[OF_VECTOR], 1, l->vectors);
  memset(w->differ[OF_ACCUMULATOR], 1, l->accumulators);
  w->differ[OF_VECTOR][0] = 0;
  for (int r = 0; r < SCALARS; r++) {
    twin->scalars[r] = r < NOWHERE && r != M0 && r != EXEC && r != EXEC + 1 && w->scalars[r] == l->poison ? 0 : w->scalars[r];
    w->differ[OF_SCALAR][r] = twin->scalars[r] != w->scalars[r];
  }
  twin->scc = 1, w->differ[OF_SCALAR][SCC_FLAG] = 1;
}

/* Where the count would no longer fit, nothing was ever touched. */
static void pass_barrier(Machine *m) {
  m->signals = 0;
  if (++m->barriers >> (32 - COUNTED)) {
    memset(m->written, 0, m->lds_size * sizeof(Touch));
    memset(m->read, 0, m->lds_size * sizeof(Touch));
    m->barriers = 1;
  }
}

static int run_group(Machine *m, Wave *waves, const Launch *l, uint64_t group) {
  Fault held = {0};
  m->group = group;
  pass_barrier(m);
  memset(m->lds, (int)(l->poison & 0xFF), l->lds_size);
  if (m->twin_lds) fill_unwritten(m->twin_lds, l->lds_size);
  if (m->copying) memset(m->copying, 0, l->lds_size * sizeof *m->copying);
  m->mark = (uint16_t)(1 + group % (BY_MANY - 1)), m->met = 0;
  for (uint32_t i = 0; i < l->waves; i++) {
    begin(m, &waves[i], l, i, group);
    if (waves[i].twin) begin_twin(m, &waves[i], l);
  }
  for (;;) {
    uint32_t ended = 0;
    for (uint32_t i = 0; i < l->waves; i++) {
      if (waves[i].state == RUNS) {
        int wrong = run_wave(m, &waves[i]);
        if (wrong < FAULT_UNWRITTEN_ADDRESS || wrong > FAULT_UNWRITTEN_STORE) {
          if (wrong) return wrong;
        } else { /* the others may show a race, which says more */
          if (!held.code) held = *m->fault;
          waves[i].state = ENDED;
        }
      }
      ended += waves[i].state == ENDED;
    }
    if (held.code) {
      *m->fault = held;
      return held.code;
    }
    if (ended == l->waves) return 0;
    pass_barrier(m);
    for (uint32_t i = 0; i < l->waves; i++) {
      if (waves[i].state != WAITS) continue;
      if (ended) {
        waves[i].place--;
        return fail(m, FAULT_BARRIER, &waves[i], 0, 0, 0);
      }
      waves[i].state = RUNS;
      learn(&waves[i]);
    }
  }
}

static size_t room_of(uint32_t size) { return (size + 63) / 64 * 64; }

static uint8_t *take(uint8_t **from, size_t size) {
  uint8_t *at = *from;
  *from += room_of((uint32_t)size);
  return at;
}

static void give_registers(Wave *w, const Launch *l, uint8_t **room) {
  w->vectors = (void *)take(room, (size_t)l->vectors * LANES * 4);
  w->accumulators = (void *)take(room, (size_t)l->accumulators * LANES * 4);
  w->private_memory = take(room, (size_t)l->private_size * LANES);
}

/* Run groups from `first` to `last`. `room` is for all registers and their flags, and for local and private memory;
   `marks` are those of writers, then of readers, of every byte of the ranges, or null. */
__attribute__((visibility("default"))) int argosy_emulate(const Instruction *code, int32_t count, const Instruction *others,
                                                          const Move *moves, const Shape *shapes, const Range *ranges,
                                                          int32_t range_count, const Launch *launch, uint64_t first,
                                                          uint64_t last, uint8_t *room, uint16_t *marks, uint64_t marked,
                                                          Fault *fault) {
  Machine m = {code, others, count, (int32_t)launch->lanes, moves, shapes, ranges, range_count, launch->private_size,
               launch->lds_size};
  Wave waves[32] = {0}, twins[32] = {0};
  m.lds = take(&room, launch->lds_size);
  m.written = (Touch *)take(&room, launch->lds_size * sizeof(Touch));
  m.read = (Touch *)take(&room, launch->lds_size * sizeof(Touch));
  if (launch->copies) m.copying = (uint32_t *)take(&room, launch->lds_size * sizeof *m.copying);
  m.waves = waves;
  if (launch->looks) m.twin_lds = take(&room, launch->lds_size);
  if (marks) m.writers = marks, m.readers = marks + marked;
  for (uint32_t i = 0; i < launch->waves; i++) {
    give_registers(&waves[i], launch, &room);
    if (!launch->looks) continue;
    give_registers(&twins[i], launch, &room);
    waves[i].twin = &twins[i];
    waves[i].differ[OF_VECTOR] = take(&room, launch->vectors);
    waves[i].differ[OF_ACCUMULATOR] = take(&room, launch->accumulators);
    waves[i].differ[OF_SCALAR] = take(&room, SCALARS + 1);
  }
  memset(m.written, 0, launch->lds_size * sizeof(Touch));
  memset(m.read, 0, launch->lds_size * sizeof(Touch));
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
