/* Loads, stores and atomic operations. */

enum { IN_GLOBAL, IN_BUFFER, IN_PRIVATE, IN_LOCAL, IN_SCALAR };
enum { A_NONE, A_ADD, A_SUB, A_MIN, A_MAX, A_AND, A_OR, A_XOR, A_SWAP, A_CMPSWAP, A_PK_ADD, A_INC, A_DEC };
enum { K_U32, K_I32, K_F32, K_U64, K_I64, K_F64, K_F16 };
enum { HAS_OFFEN = 1, HAS_SCALED = 2, HAS_BASE = 4, HAS_WIDE = 8 };
enum { BY_M0 = 1, BY_LANES };
enum { M0_ADDRESS = 0x3FFFC, NO_ADDRESS = 0x7FFFFFFF }; /* NO_ADDRESS: where code points lanes that are to do nothing */

static inline uint64_t wide_at(const Wave *w, const Operand *o, int lane) {
  uint64_t low = word_at(w, o, 0, lane);
  return o->count > 1 || o->kind == OF_CONSTANT ? low | (uint64_t)word_at(w, o, 1, lane) << 32 : low;
}

static inline void copy_bytes(void *to, const void *from, int bytes) {
  switch (bytes) {
  case 1: *(uint8_t *)to = *(const uint8_t *)from; break;
  case 2: __builtin_memcpy_inline(to, from, 2); break;
  case 4: __builtin_memcpy_inline(to, from, 4); break;
  case 8: __builtin_memcpy_inline(to, from, 8); break;
  case 12: __builtin_memcpy_inline(to, from, 12); break;
  default: __builtin_memcpy_inline(to, from, 16);
  }
}

/* What is shorter than a word fills one with zeros; a word that is written in parts and then read would wait for them. */
static inline void load_bytes(uint32_t *to, const void *from, int bytes) {
  uint16_t half;
  switch (bytes) {
  case 1: to[0] = *(const uint8_t *)from; break;
  case 2: __builtin_memcpy_inline(&half, from, 2), to[0] = half; break;
  default: copy_bytes(to, from, bytes);
  }
}

/* What lanes store, by words; words[k][i] is word k of lane i. */
static void gather(const Wave *w, const Instruction *in, const Operand *data, int n, uint32_t (*words)[LANES]) {
  for (int k = 0; k < (in->bytes + 3) / 4; k++) fetch_word(w, data, k, n, words[k]);
  if (in->bytes < 4 && (in->half == 2 || data->high))
    for (int i = 0; i < n; i++) words[0][i] >>= 16;
}

/* What becomes of what lanes have loaded. */
static void scatter(Wave *w, const Instruction *in, const Operand *data, uint64_t mask, int n, uint32_t (*words)[LANES]) {
  uint32_t(*rows)[LANES] = (data->kind == OF_VECTOR ? w->vectors : w->accumulators) + data->number;
  if (in->bytes >= 4) {
    for (int k = 0; k < in->bytes / 4; k++)
      for (int i = 0; i < n; i++) rows[k][i] = mask >> i & 1 ? words[k][i] : rows[k][i];
    return;
  }
  int high = in->half == 2 || data->high, part = in->half || data->high, spare = 32 - 8 * in->bytes;
  uint32_t kept = !part ? 0 : high ? 0xFFFF : 0xFFFF0000;
  for (int i = 0; i < n; i++) {
    uint32_t value = in->is_signed ? (uint32_t)((int32_t)(words[0][i] << spare) >> spare) : words[0][i];
    if (part) value = high ? value << 16 : value & 0xFFFF;
    rows[0][i] = mask >> i & 1 ? (rows[0][i] & kept) | value : rows[0][i];
  }
}

static int run_scalar_load(Machine *m, Wave *w, const Instruction *in) {
  const Operand *result = &in->source[0];
  int bytes = in->bytes, whole = bytes == 255 ? 64 : bytes == 254 ? 32 : bytes;
  uint64_t address = wide_at(w, &in->source[1], 0) + (uint64_t)in->offset[0];
  uint64_t scale = in->flags & HAS_SCALED ? (uint64_t)whole : 1;
  for (int k = 2; k < in->sources; k++)
    address += in->source[k].kind == OF_CONSTANT ? in->source[k].value : word_at(w, &in->source[k], 0, 0) * scale;
  if (whole >= 4) address &= ~3ull;
  if (!inside(m, address, (uint64_t)whole)) return fail(m, FAULT_BOUNDS, w, 0, address, (uint64_t)whole);
  if (m->writers && mark_read(m, address, whole)) return fail(m, FAULT_GROUPS, w, 0, address, (uint64_t)whole);
  if (whole < 4) {
    uint32_t value;
    load_bytes(&value, (const void *)address, whole);
    if (in->is_signed) value = whole == 1 ? (uint32_t)(int8_t)value : (uint32_t)(int16_t)value;
    w->scalars[result->number] = value;
    return 0;
  }
  for (int k = 0; k < whole / 4; k++) w->scalars[result->number + k] = ((const uint32_t *)address)[k];
  return 0;
}

static uint64_t lane_address(const Wave *w, const Instruction *in, const Operand *first, const Operand *base, int lane) {
  if (!(in->flags & HAS_BASE)) return wide_at(w, first, lane) + (uint64_t)in->offset[0];
  uint64_t small = word_at(w, first, 0, lane);
  if (in->flags & HAS_SCALED) small *= in->bytes;
  return wide_at(w, base, 0) + small + (uint64_t)in->offset[0];
}

static volatile char atomic_lock;

static uint64_t changed(const Instruction *in, uint64_t old, uint64_t given, uint64_t expected) {
  union { uint32_t u; int32_t i; float f; } a = {(uint32_t)old}, b = {(uint32_t)given};
  union { uint64_t u; int64_t i; double f; } c = {old}, d = {given};
  if (in->atomic == A_SWAP) return given;
  if (in->atomic == A_CMPSWAP) return old == expected ? given : old;
  if (in->atomic == A_PK_ADD) {
    uint16_t low = half_bits(half_value((uint16_t)old) + half_value((uint16_t)given));
    uint16_t high = half_bits(half_value((uint16_t)(old >> 16)) + half_value((uint16_t)(given >> 16)));
    return low | (uint64_t)high << 16;
  }
#define ONE(K, x, y, F)                                                                        \
  case K:                                                                                      \
    switch (in->atomic) {                                                                      \
    case A_ADD: x.F = x.F + y.F; break;                                                        \
    case A_SUB: x.F = x.F - y.F; break;                                                        \
    case A_MIN: x.F = y.F < x.F || x.F != x.F ? y.F : x.F; break;                              \
    case A_MAX: x.F = y.F > x.F || x.F != x.F ? y.F : x.F; break;                              \
    case A_AND: x.u &= y.u; break;                                                             \
    case A_OR: x.u |= y.u; break;                                                              \
    case A_XOR: x.u ^= y.u; break;                                                             \
    case A_INC: x.u = x.u >= y.u ? 0 : x.u + 1; break;                                         \
    case A_DEC: x.u = x.u == 0 || x.u > y.u ? y.u : x.u - 1; break;                            \
    }                                                                                          \
    return x.u;
  switch (in->atomic_kind) {
    ONE(K_U32, a, b, u)
    ONE(K_I32, a, b, i)
    ONE(K_F32, a, b, f)
    ONE(K_U64, c, d, u)
    ONE(K_I64, c, d, i)
    ONE(K_F64, c, d, f)
  }
  return old;
}

static int run_atomic(Machine *m, Wave *w, const Instruction *in) {
  const Operand *source = in->source;
  const Operand *result = in->returns ? source++ : 0;
  const Operand *data = &source[1], *base = &source[2];
  uint64_t mask = active(m, w);
  int words = in->bytes / 4;
  uint64_t old[LANES];
  for (int i = 0; i < m->lanes; i++) {
    if (!(mask >> i & 1)) continue;
    uint64_t address = lane_address(w, in, &source[0], base, i);
    if (!inside(m, address, in->bytes)) return fail(m, FAULT_BOUNDS, w, i, address, in->bytes);
    uint64_t given = word_at(w, data, 0, i), expected = 0;
    if (words == 2) given |= (uint64_t)word_at(w, data, 1, i) << 32;
    if (in->atomic == A_CMPSWAP) {
      expected = word_at(w, data, words, i);
      if (words == 2) expected |= (uint64_t)word_at(w, data, 3, i) << 32;
    }
    while (__atomic_test_and_set(&atomic_lock, __ATOMIC_ACQUIRE)) {}
    uint64_t before = words == 2 ? *(uint64_t *)address : *(uint32_t *)address;
    uint64_t after = changed(in, before, given, expected);
    if (words == 2) *(uint64_t *)address = after;
    else *(uint32_t *)address = (uint32_t)after;
    __atomic_clear(&atomic_lock, __ATOMIC_RELEASE);
    old[i] = before;
  }
  if (result) m->met = 1;
  if (result)
    for (int i = 0; i < m->lanes; i++)
      if (mask >> i & 1)
        for (int k = 0; k < words; k++) w->vectors[result->number + k][i] = (uint32_t)(old[i] >> (32 * k));
  return 0;
}

/* What a lane loads goes to local memory: from M0 on lanes have slots, or each has an address in a register. */
static int into_local(Machine *m, Wave *w, const Instruction *in, int lane, uint32_t *words) {
  uint64_t place;
  int bytes = in->bytes;
  if (in->into == BY_LANES) {
    place = word_at(w, &in->source[0], 0, lane) + (uint32_t)in->offset[0];
  } else {
    place = (uint64_t)in->offset[0] + (w->scalars[M0] & M0_ADDRESS) + (uint64_t)lane * (bytes <= 4 ? 4 : 16);
    if (in->is_signed) words[0] = bytes == 1 ? (uint32_t)(int8_t)words[0] : (uint32_t)(int16_t)words[0];
    bytes = bytes < 4 ? 4 : bytes;
  }
  if (place + (uint64_t)bytes > m->lds_size) return fail(m, FAULT_LOCAL, w, lane, place, (uint64_t)bytes);
  int wrong = shadow_store(m, w, place, bytes, words);
  if (wrong) return fail(m, wrong, w, lane, place, (uint64_t)bytes);
  if (!m->twins) mark_copy(m, w, in, place, bytes);
  copy_bytes(m->lds + place, words, bytes);
  return 0;
}

/* Lanes exchange elements of what they loaded, as a table says. */
static int exchange(Machine *m, Wave *w, const Instruction *in, const Operand *data, uint32_t (*loaded)[LANES]) {
  const Factor *table = &m->shapes[in->what - 1].a;
  if (active(m, w) != every_lane(m)) return fail(m, FAULT_LANES, w, 0, 0, 0);
  uint32_t words[4][LANES] = {0};
  for (int i = 0; i < m->lanes; i++)
    for (int e = 0; e < table->elements; e++) {
      const uint8_t *from = table->places + 2 * (i * table->elements + e);
      int source = from[1] * table->bits, target = e * table->bits;
      uint32_t element = loaded[source >> 5][from[0]] >> (source & 31) & ((1u << table->bits) - 1);
      words[target >> 5][i] |= element << (target & 31);
    }
  scatter(w, in, data, every_lane(m), m->lanes, words);
  return 0;
}

static int run_global(Machine *m, Wave *w, const Instruction *in) {
  if (in->atomic) return run_atomic(m, w, in);
  const Operand *data = in->store ? &in->source[1] : &in->source[0];
  const Operand *first = &in->source[in->store || in->into == BY_M0 ? 0 : 1], *base = first + (in->store ? 2 : 1);
  uint64_t mask = active(m, w), addresses[LANES];
  if (in->into == BY_M0 && w->scalars[M0] == NO_ADDRESS) return 0;
  if (in->into == BY_LANES)
    for (int i = 0; i < m->lanes; i++) {
      uint32_t place = word_at(w, data, 0, i);
      if (place == NO_ADDRESS || place + (uint32_t)in->offset[0] == NO_ADDRESS) mask &= ~(1ull << i);
    }
  for (int i = 0; i < m->lanes; i++) {
    if (!(mask >> i & 1)) continue;
    addresses[i] = lane_address(w, in, first, base, i);
    if (!inside(m, addresses[i], in->bytes)) return fail(m, FAULT_BOUNDS, w, i, addresses[i], in->bytes);
  }
  uint32_t words[4][LANES] = {0};
  if (in->store) gather(w, in, data, m->lanes, words);
  for (int i = 0; i < m->lanes; i++) {
    if (!(mask >> i & 1)) continue;
    uint32_t held[4] = {words[0][i], words[1][i], words[2][i], words[3][i]};
    if (in->store) {
      if (m->writers && mark_write(m, addresses[i], in->bytes, held)) return fail(m, FAULT_GROUPS, w, i, addresses[i], in->bytes);
      copy_bytes((void *)addresses[i], held, in->bytes);
      continue;
    }
    if (m->writers && mark_read(m, addresses[i], in->bytes)) return fail(m, FAULT_GROUPS, w, i, addresses[i], in->bytes);
    load_bytes(held, (const void *)addresses[i], in->bytes);
    int wrong = in->into ? into_local(m, w, in, i, held) : 0;
    if (wrong) return wrong;
    for (int k = 0; k < 4; k++) words[k][i] = held[k];
  }
  if (in->what) return exchange(m, w, in, data, words);
  if (!in->store && !in->into) scatter(w, in, data, mask, m->lanes, words);
  return 0;
}

static int run_buffer(Machine *m, Wave *w, const Instruction *in) {
  const Operand *data = &in->source[0], *place = data + !in->into, *resource = place + 1, *shared = place + 2;
  const uint32_t *held = &w->scalars[resource->number];
  uint64_t low = held[0] | (uint64_t)held[1] << 32, high = held[2] | (uint64_t)held[3] << 32;
  int wide = (in->flags & HAS_WIDE) != 0;
  uint64_t start = low & ((1ull << (wide ? 57 : 48)) - 1);
  uint64_t size = wide ? (low >> 57 | high << 7) & ((1ull << 45) - 1) : held[2];
  uint64_t mask = active(m, w), offsets[LANES];
  if (in->into && w->scalars[M0] == NO_ADDRESS) return 0;
  if (wide ? high >> 44 & 0xFFFF : low >> 48 & 0x3FFF) return fail(m, FAULT_UNKNOWN, w, 0, start, 0);
  for (int i = 0; i < m->lanes; i++) {
    if (!(mask >> i & 1)) continue;
    offsets[i] = (uint64_t)in->offset[0] + (in->flags & HAS_OFFEN ? word_at(w, place, 0, i) : 0);
    if (!wide) offsets[i] = (uint32_t)offsets[i]; /* a lane may start before the buffer, and end in it */
    offsets[i] += word_at(w, shared, 0, 0);
    if (offsets[i] + in->bytes <= size && !inside(m, start + offsets[i], in->bytes))
      return fail(m, FAULT_BOUNDS, w, i, start + offsets[i], in->bytes);
  }
  uint32_t words[4][LANES] = {0};
  if (in->store) gather(w, in, data, m->lanes, words);
  for (int i = 0; i < m->lanes; i++) {
    if (!(mask >> i & 1)) continue;
    uint32_t held[4] = {words[0][i], words[1][i], words[2][i], words[3][i]};
    uint64_t address = start + offsets[i];
    int there = offsets[i] + in->bytes <= size;
    if (in->store) {
      if (!there) continue;
      if (m->writers && mark_write(m, address, in->bytes, held)) return fail(m, FAULT_GROUPS, w, i, address, in->bytes);
      copy_bytes((void *)address, held, in->bytes);
      continue;
    }
    if (there && m->writers && mark_read(m, address, in->bytes)) return fail(m, FAULT_GROUPS, w, i, address, in->bytes);
    if (there) load_bytes(held, (const void *)address, in->bytes);
    int wrong = in->into ? into_local(m, w, in, i, held) : 0;
    if (wrong) return wrong;
    for (int k = 0; k < 4; k++) words[k][i] = held[k];
  }
  if (!in->store && !in->into) scatter(w, in, data, mask, m->lanes, words);
  return 0;
}

/* One lane after the other; of a compare-and-swap, what is new comes before what is expected. */
static int run_local_atomic(Machine *m, Wave *w, const Instruction *in) {
  const Operand *source = in->source, *result = in->returns ? source++ : 0;
  uint64_t mask = active(m, w);
  int words = in->bytes / 4;
  uint64_t old[LANES];
  for (int i = 0; i < m->lanes; i++) {
    uint32_t base = word_at(w, &source[0], 0, i);
    old[i] = 0;
    if (!(mask >> i & 1) || base == NO_ADDRESS) continue;
    uint64_t place = base + (uint32_t)in->offset[0], given[2] = {0};
    if (place + in->bytes > m->lds_size) return fail(m, FAULT_LOCAL, w, i, place, in->bytes);
    for (int k = 0; k <= (in->atomic == A_CMPSWAP); k++) {
      given[k] = word_at(w, &source[1 + k], 0, i);
      if (words == 2) given[k] |= (uint64_t)word_at(w, &source[1 + k], 1, i) << 32;
    }
    int wrong = shadow_atomic(m, w, place, in->bytes);
    if (!wrong) wrong = copy_outstanding(m, w, place, in->bytes);
    if (wrong) return fail(m, wrong, w, i, place, in->bytes);
    copy_bytes(&old[i], m->lds + place, in->bytes);
    uint64_t after = changed(in, old[i], given[0], given[1]);
    copy_bytes(m->lds + place, &after, in->bytes);
  }
  if (!result) return 0;
  w->met = m->barriers;
  uint32_t found[4][LANES];
  for (int i = 0; i < m->lanes; i++) found[0][i] = (uint32_t)old[i], found[1][i] = (uint32_t)(old[i] >> 32);
  scatter(w, in, result, mask, m->lanes, found);
  return 0;
}

/* Lanes that load or store so many bytes each, a number that is known where this is called. */
static inline __attribute__((always_inline)) int local_lanes(Machine *m, Wave *w, const Instruction *in, const uint32_t *base,
                                                             uint32_t shift, uint64_t mask, int bytes, uint32_t (*words)[LANES]) {
  for (int i = 0; i < m->lanes; i++) {
    if (!(mask >> i & 1) || base[i] == NO_ADDRESS) continue;
    uint64_t place = base[i] + shift; /* 32 bits: a base may be less than zero */
    if (place + (uint64_t)bytes > m->lds_size) return fail(m, FAULT_LOCAL, w, i, place, (uint64_t)bytes);
    if (copy_outstanding(m, w, place, bytes)) return fail(m, FAULT_COPY, w, i, place, (uint64_t)bytes);
    uint32_t held[4];
    if (in->store) {
      for (int k = 0; k < (bytes + 3) / 4; k++) held[k] = words[k][i];
      int wrong = shadow_store(m, w, place, bytes, held);
      if (wrong) return fail(m, wrong, w, i, place, (uint64_t)bytes);
      copy_bytes(m->lds + place, held, bytes);
    } else {
      int wrong = shadow_load(m, w, place, bytes);
      if (wrong) return fail(m, wrong, w, i, place, (uint64_t)bytes);
      load_bytes(held, m->lds + place, bytes);
      for (int k = 0; k < (bytes + 3) / 4; k++) words[k][i] = held[k];
    }
  }
  return 0;
}

static int run_local(Machine *m, Wave *w, const Instruction *in) {
  if (in->atomic) return run_local_atomic(m, w, in);
  uint64_t mask = active(m, w);
  uint32_t base[LANES];
  fetch_word(w, &in->source[!in->store], 0, m->lanes, base); /* a result may lie where the address is */
  for (int pair = 0; pair <= (in->pairs > 0); pair++) {
    Operand data = in->source[in->store ? 1 + pair : 0];
    if (!in->store) data.number += (uint16_t)(pair * in->bytes / 4);
    uint32_t shift = (uint32_t)in->offset[pair], words[4][LANES] = {0};
    int wrong;
    if (in->store) gather(w, in, &data, m->lanes, words);
    switch (in->bytes) {
    case 1: wrong = local_lanes(m, w, in, base, shift, mask, 1, words); break;
    case 2: wrong = local_lanes(m, w, in, base, shift, mask, 2, words); break;
    case 4: wrong = local_lanes(m, w, in, base, shift, mask, 4, words); break;
    case 8: wrong = local_lanes(m, w, in, base, shift, mask, 8, words); break;
    case 12: wrong = local_lanes(m, w, in, base, shift, mask, 12, words); break;
    default: wrong = local_lanes(m, w, in, base, shift, mask, 16, words);
    }
    if (wrong) return wrong;
    if (in->what) return exchange(m, w, in, &data, words);
    if (!in->store) scatter(w, in, &data, mask, m->lanes, words);
  }
  return 0;
}

static int run_private(Machine *m, Wave *w, const Instruction *in) {
  const Operand *data = in->store ? &in->source[1] : &in->source[0];
  const Operand *first = in->store ? &in->source[0] : &in->source[1], *second = &in->source[2];
  uint64_t mask = active(m, w);
  uint32_t words[4][LANES] = {0};
  if (in->store) gather(w, in, data, m->lanes, words);
  for (int i = 0; i < m->lanes; i++) {
    if (!(mask >> i & 1)) continue;
    uint32_t place = (uint32_t)in->offset[0];
    if (first->kind != OF_NOTHING) place += word_at(w, first, 0, i);
    if (in->sources > 2 && second->kind != OF_NOTHING) place += word_at(w, second, 0, i);
    if ((uint64_t)place + in->bytes > m->private_size) return fail(m, FAULT_PRIVATE, w, i, place, in->bytes);
    uint8_t *memory = w->private_memory + (size_t)i * m->private_size + place;
    uint32_t held[4] = {words[0][i], words[1][i], words[2][i], words[3][i]};
    if (in->store) copy_bytes(memory, held, in->bytes);
    else load_bytes(held, memory, in->bytes);
    for (int k = 0; k < 4; k++) words[k][i] = held[k];
  }
  if (!in->store) scatter(w, in, data, mask, m->lanes, words);
  return 0;
}

static int run_access(Machine *m, Wave *w, const Instruction *in) {
  switch (in->space) {
  case IN_GLOBAL: return run_global(m, w, in);
  case IN_BUFFER: return run_buffer(m, w, in);
  case IN_LOCAL: return run_local(m, w, in);
  case IN_PRIVATE: return run_private(m, w, in);
  default: return run_scalar_load(m, w, in);
  }
}
