/* A wave's registers, decoded instructions, and reading and writing operands. Layouts are those of encode.py. */

enum { LANES = 64, VCC = 106, TTMP = 108, M0 = 124, EXEC = 126, NOWHERE = 128, SCALARS = 132 };
enum { OF_VECTOR, OF_ACCUMULATOR, OF_SCALAR, OF_CONSTANT, OF_SCC, OF_NOTHING };
enum { HALF = 0, WORD, WIDE, MASK, SCC, EXEC32, EXEC64, MIXED, HIGH, PAIR, MIXED_BFLOAT, PACKED_HALF, PACKED_WORD, PICKED_WORD };
enum { NOTHING, VECTOR, SCALAR, ACCESS, MATRIX, MOVE, FLOW, WAIT };
enum { BRANCH, IF_SCC0, IF_SCC1, IF_VCCZ, IF_VCCNZ, IF_EXECZ, IF_EXECNZ, END, BARRIER, SIGNAL, BARRIER_WAIT, SIGNAL_FIRST };
enum {
  FAULT_NONE, FAULT_BOUNDS, FAULT_LOCAL, FAULT_PRIVATE, FAULT_END, FAULT_STUCK, FAULT_UNKNOWN, FAULT_RACE,
  FAULT_LANES, FAULT_UNWRITTEN_ADDRESS, FAULT_UNWRITTEN_CONDITION, FAULT_UNWRITTEN_STORE, FAULT_GROUPS, FAULT_BARRIER, FAULT_SIGNAL,
  FAULT_COPY
};

typedef struct {
  uint8_t kind, high, negate, absolute;
  uint16_t number, count;
  uint64_t value;
} Operand;

typedef struct {
  uint8_t unit, sources, results, sets_exec;
  uint16_t what, second; /* second: 1 + place among the other halves; 0 for none */
  int32_t target;
  Operand source[5];
  Operand result[2];
  uint8_t source_type[4], result_type[4];
  uint8_t op_sel, op_sel_hi, neg_lo, neg_hi;
  uint8_t clamp, clears, picks_high, factor; /* factor: 0 none, 1 times 2, 2 times 4, 3 divided by 2 */
  uint8_t select[2], extend[2];              /* SDWA: 0 none, else 1 + shift / 8 + 4 * size, size 0 byte, 1 word */
  int16_t move;                              /* DPP: place of its table; -1 for none */
  uint8_t zeroes, fetches_off;
  uint8_t space, store, bytes, is_signed, half, pairs, atomic, atomic_kind, returns, flags, part, unused, into, raises;
  /* part: as select, of the result; unused: 0 clear, 1 keep, 2 sign; into: 0 registers, local memory by 1 M0, 2 lanes;
     raises: 1 + a counter of copies.h; of a wait, `what` and `second` are to what the two fall */
  int64_t offset[2];
} Instruction;

typedef struct {
  int8_t source[LANES]; /* -1: none */
  uint8_t written[LANES];
} Move;

typedef struct {
  int32_t kind, bits, elements;
  const uint8_t *places; /* (row, k) of each lane's elements; for an exchange, the (lane, element) that they come from */
} Factor;

typedef struct {
  int32_t rows, k, out, registers, block; /* block: elements along k that share a scale; 0 for none */
  Factor a, b;
  const uint8_t *places; /* (row, column) of each lane's registers */
} Shape;

typedef struct {
  uint64_t start, end, marks; /* marks: where those of its first byte are */
} Range;

typedef struct {
  int32_t code, place, lane, wave;
  uint64_t address, size, group;
} Fault;

typedef struct {
  uint32_t raised, done, offered, known;
} Counter;

typedef struct Wave {
  uint32_t (*vectors)[LANES];
  uint32_t (*accumulators)[LANES];
  uint32_t scalars[SCALARS];
  uint8_t scc, state, signalled; /* state: 0 runs, 1 waits, 2 ended */
  int32_t place, number;
  uint32_t met; /* the barrier since which it took the result of an atomic operation on local memory, see shadows.h */
  Counter counters[2]; /* see copies.h */
  uint8_t *private_memory;
  struct Wave *twin; /* see twins.h; null where what is unwritten is not looked for */
  uint8_t *differ[4];
} Wave;

/* Who touched a byte of local memory last, and between which barriers: a count of barriers, over all workgroups, above a
   bit for atomic operations and the number of a wave, or MANY for several; 0 for never. */
typedef uint32_t Touch;

enum { MANY = 0xFF, ATOMIC = 0x100, COUNTED = 9 }; /* COUNTED: the first bit of the count */

typedef struct {
  const Instruction *code, *others;
  int32_t count, lanes;
  const Move *moves;
  const Shape *shapes;
  const Range *ranges;
  int32_t range_count;
  uint32_t private_size, lds_size;
  uint8_t *lds;
  Fault *fault;
  Range last;
  uint64_t group;
  Touch *written, *read;
  uint32_t barriers, signals; /* signals: waves that signalled since the last barrier */
  Wave *waves;
  uint32_t *copying; /* see copies.h; null for kernels without copies */
  uint8_t *twin_lds;
  uint16_t *writers, *readers; /* see groups.h; null where races between workgroups are not looked for */
  uint16_t mark;
  uint8_t met;      /* whether this workgroup has met others, by an atomic operation whose result it took */
  uint8_t twins;    /* whether it is a twin that runs */
} Machine;

static inline uint64_t every_lane(const Machine *m) { return m->lanes == 64 ? ~0ull : 0xFFFFFFFFull; }

static inline uint64_t pair_of(const Machine *m, const Wave *w, int number) {
  uint64_t low = w->scalars[number];
  return m->lanes == 64 ? low | (uint64_t)w->scalars[number + 1] << 32 : low;
}

static inline uint64_t active(const Machine *m, const Wave *w) { return pair_of(m, w, EXEC); }

static void write_pair(const Machine *m, Wave *w, int number, uint64_t value) {
  if (number >= NOWHERE) return;
  w->scalars[number] = (uint32_t)value;
  if (m->lanes == 64) w->scalars[number + 1] = (uint32_t)(value >> 32);
}

static int fail(Machine *m, int code, const Wave *w, int lane, uint64_t address, uint64_t size) {
  Fault *f = m->fault;
  f->code = code, f->place = w->place, f->wave = w->number, f->lane = lane;
  f->address = address, f->size = size, f->group = m->group;
  return code;
}

/* 32 bits of an operand: a row of lanes, or one value for all. */
static inline const uint32_t *row_of(const Wave *w, const Operand *o, int place) {
  if (o->kind == OF_VECTOR) return w->vectors[o->number + place];
  if (o->kind == OF_ACCUMULATOR) return w->accumulators[o->number + place];
  return 0;
}

static inline uint32_t shared_word(const Wave *w, const Operand *o, int place) {
  switch (o->kind) {
  case OF_SCALAR: return w->scalars[o->number + place];
  case OF_CONSTANT: return (uint32_t)(o->value >> (32 * place));
  case OF_SCC: return w->scc;
  default: return 0;
  }
}

static inline uint32_t word_at(const Wave *w, const Operand *o, int place, int lane) {
  const uint32_t *row = row_of(w, o, place);
  return row ? row[lane] : shared_word(w, o, place);
}

static void fetch_word(const Wave *w, const Operand *o, int place, int n, uint32_t *to) {
  const uint32_t *row = row_of(w, o, place);
  if (row) {
    for (int i = 0; i < n; i++) to[i] = row[i];
  } else {
    uint32_t value = shared_word(w, o, place);
    for (int i = 0; i < n; i++) to[i] = value;
  }
}

static void fetch_half(const Wave *w, const Operand *o, int high, int n, uint16_t *to) {
  const uint32_t *row = row_of(w, o, 0);
  if (row) {
    int shift = high ? 16 : 0;
    for (int i = 0; i < n; i++) to[i] = (uint16_t)(row[i] >> shift);
  } else {
    uint32_t value = shared_word(w, o, 0);
    uint16_t half = (uint16_t)(high ? value >> 16 : value);
    for (int i = 0; i < n; i++) to[i] = half;
  }
  uint16_t clear = o->absolute ? 0x7FFF : 0xFFFF, turn = o->negate ? 0x8000 : 0;
  if (o->absolute || o->negate)
    for (int i = 0; i < n; i++) to[i] = (uint16_t)((to[i] & clear) ^ turn);
}

static void fetch_mask(uint64_t mask, int n, uint8_t *to) {
  for (int i = 0; i < n; i++) to[i] = (uint8_t)(mask >> i & 1);
}

static uint64_t pack_mask(const uint8_t *from, int n) {
  uint64_t mask = 0;
  for (int i = 0; i < n; i++) mask |= (uint64_t)(from[i] & 1) << i;
  return mask;
}

/* Write a row of 32 bits in the lanes of a mask. */
static void store_word(const Machine *m, Wave *w, const Operand *o, int place, const uint32_t *from, uint64_t mask) {
  if (o->kind == OF_SCALAR) {
    if (o->number < NOWHERE) w->scalars[o->number + place] = from[0];
    return;
  }
  uint32_t *row = o->kind == OF_VECTOR ? w->vectors[o->number + place] : w->accumulators[o->number + place];
  if (mask == every_lane(m)) {
    for (int i = 0; i < m->lanes; i++) row[i] = from[i];
  } else {
    for (int i = 0; i < m->lanes; i++) row[i] = mask >> i & 1 ? from[i] : row[i];
  }
}

static void store_half(const Machine *m, Wave *w, const Operand *o, const uint16_t *from, uint64_t mask, int high,
                       int clears) {
  uint32_t *row = o->kind == OF_VECTOR ? w->vectors[o->number] : w->accumulators[o->number];
  for (int i = 0; i < m->lanes; i++) {
    if (!(mask >> i & 1)) continue;
    uint32_t old = row[i], value = from[i];
    row[i] = clears ? value : high ? (old & 0xFFFF) | value << 16 : (old & 0xFFFF0000u) | value;
  }
}
