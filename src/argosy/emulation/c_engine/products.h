/* Matrix instructions: sums in double precision, rounded once. */

enum { F16, BF16, F32, F64, I8, U8, E4M3, E5M2, E4M3FNUZ, E5M2FNUZ, E2M3, E3M2, E2M1, I32 };

static double short_float(uint32_t field, int form) {
  static const uint8_t exponents_[] = {4, 5, 4, 5, 2, 3, 2}, fractions_[] = {3, 2, 3, 2, 3, 2, 1};
  int exponents = exponents_[form - E4M3], fractions = fractions_[form - E4M3], alone = form == E4M3FNUZ || form == E5M2FNUZ;
  int bias = (1 << (exponents - 1)) - 1 + alone, top = (1 << exponents) - 1;
  int power = (int)(field >> fractions) & top, fraction = (int)field & ((1 << fractions) - 1);
  double size = power == 0 ? scale_f64(fraction, 1 - bias - fractions)
                           : scale_f64((1 << fractions) + fraction, power - bias - fractions);
  if (alone && field == 0x80) return __builtin_nan("");
  if (power == top) {
    if (form == E4M3 && fraction == 7) return __builtin_nan("");
    if (form == E5M2) size = fraction ? __builtin_nan("") : __builtin_inf();
  }
  return field >> (exponents + fractions) & 1 ? -size : size;
}

/* Fields of `bits` bits, one of each lane: those at `place` of the rows of an operand. */
static void fetch_field(const Wave *w, const Operand *o, int place, int bits, int n, uint32_t *to) {
  int bit = place * bits, shift = bit & 31;
  fetch_word(w, o, bit >> 5, n, to);
  for (int i = 0; i < n; i++) to[i] >>= shift;
  if (shift + bits > 32) {
    uint32_t next[LANES];
    fetch_word(w, o, (bit >> 5) + 1, n, next);
    for (int i = 0; i < n; i++) to[i] |= next[i] << (32 - shift);
  }
  if (bits < 32)
    for (int i = 0; i < n; i++) to[i] &= (1u << bits) - 1;
}

/* A factor as doubles; rows and elements of a row lie so far apart. */
static void factor(const Machine *m, const Wave *w, const Operand *o, const Factor *f, int kind, int rows_apart, int apart,
                   double *to) {
  double table[256];
  if (kind >= E4M3)
    for (uint32_t i = 0; i < 1u << f->bits; i++) table[i] = short_float(i, kind);
  int n = m->lanes;
  for (int e = 0; e < f->elements; e++) {
    uint32_t raw[LANES], high[LANES];
    double values[LANES];
    fetch_field(w, o, kind == F64 ? 2 * e : e, kind == F64 ? 32 : f->bits, n, raw);
    switch (kind) {
    case F16:
      for (int i = 0; i < n; i++) values[i] = half_value((uint16_t)raw[i]);
      break;
    case BF16:
      for (int i = 0; i < n; i++) values[i] = bits_u32_f32(raw[i] << 16);
      break;
    case F32:
      for (int i = 0; i < n; i++) values[i] = bits_u32_f32(raw[i]);
      break;
    case F64:
      fetch_word(w, o, 2 * e + 1, n, high);
      for (int i = 0; i < n; i++) values[i] = bits_u64_f64(raw[i] | (uint64_t)high[i] << 32);
      break;
    case I8:
      for (int i = 0; i < n; i++) values[i] = (int8_t)raw[i];
      break;
    case U8:
      for (int i = 0; i < n; i++) values[i] = (uint8_t)raw[i];
      break;
    default:
      for (int i = 0; i < n; i++) values[i] = table[raw[i]];
    }
    for (int i = 0; i < n; i++) {
      const uint8_t *place = f->places + 2 * (i * f->elements + e);
      to[place[0] * rows_apart + place[1] * apart] = values[i];
    }
  }
}

/* Multiply by powers of two: byte of lane `row + rows * block` is the exponent plus 127 of a block of a row. */
static void scale_factor(const Machine *m, const Wave *w, const Operand *o, const Shape *s, int byte, int rows_apart, int apart,
                         double *to) {
  for (int i = 0; i < m->lanes; i++) {
    uint32_t power = word_at(w, o, 0, i) >> (8 * byte) & 0xFF;
    double by = power == 0xFF ? __builtin_nan("") : scale_f64(1, (int32_t)power - 127);
    double *first = to + i % s->rows * rows_apart + i / s->rows * s->block * apart;
    for (int k = 0; k < s->block; k++) first[k * apart] *= by;
  }
}

/* Products of rows of one factor and columns of the other, each summed over k in its order. */
static inline __attribute__((always_inline)) void sum_products(const double *a, const double *b, int rows, int depth, double *d) {
  for (int i = 0; i < rows; i++) {
    double sum[32] = {0};
    for (int k = 0; k < depth; k++) {
      double left = a[i * depth + k];
      for (int j = 0; j < rows; j++) sum[j] += left * b[k * rows + j];
    }
    for (int j = 0; j < rows; j++) d[i * rows + j] = sum[j];
  }
}

static void run_matrix(Machine *m, Wave *w, const Instruction *in) {
  const Shape *s = &m->shapes[in->what];
  double a[32 * 64], b[64 * 32], d[32 * 32];
  int rows = s->rows, depth = s->k, n = m->lanes;
  factor(m, w, &in->source[0], &s->a, s->a.kind == U8 && in->neg_lo & 1 ? I8 : s->a.kind, depth, 1, a);
  factor(m, w, &in->source[1], &s->b, s->b.kind == U8 && in->neg_lo & 2 ? I8 : s->b.kind, 1, rows, b);
  if (s->block) {
    scale_factor(m, w, &in->source[3], s, (in->op_sel & 1) + 2 * (in->op_sel_hi & 1), depth, 1, a);
    scale_factor(m, w, &in->source[4], s, (in->op_sel >> 1 & 1) + (in->op_sel_hi & 2), 1, rows, b);
  }
  if (rows == 16) sum_products(a, b, 16, depth, d);
  else if (rows == 32) sum_products(a, b, 32, depth, d);
  else sum_products(a, b, rows, depth, d);
  const Operand *c = &in->source[2], *result = &in->result[0];
  int constant = c->kind == OF_CONSTANT, wide = s->out == F64;
  uint32_t made[32][LANES];
  for (int r = 0; r < s->registers; r++) {
    uint32_t words[LANES], high[LANES], *to = made[wide ? 2 * r : r];
    double total[LANES];
    fetch_word(w, c, constant ? 0 : wide ? 2 * r : r, n, words);
    for (int i = 0; i < n; i++) {
      const uint8_t *place = s->places + 2 * (i * s->registers + r);
      total[i] = d[place[0] * rows + place[1]];
    }
    switch (s->out) {
    case F32:
      for (int i = 0; i < n; i++) to[i] = bits_f32_u32((float)(total[i] + bits_u32_f32(words[i])));
      break;
    case I32:
      for (int i = 0; i < n; i++) {
        double sum = total[i] + (int32_t)words[i];
        if (in->clamp) sum = sum > 2147483647.0 ? 2147483647.0 : sum < -2147483648.0 ? -2147483648.0 : sum;
        to[i] = (uint32_t)(int64_t)sum;
      }
      break;
    case F16:
      for (int i = 0; i < n; i++) to[i] = half_bits(double_to_half(total[i] + half_value((uint16_t)words[i])));
      break;
    case BF16:
      for (int i = 0; i < n; i++) {
        uint32_t bits = bits_f32_u32((float)(total[i] + bits_u32_f32(words[i] << 16)));
        to[i] = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
      }
      break;
    default:
      fetch_word(w, c, constant ? 1 : 2 * r + 1, n, high);
      for (int i = 0; i < n; i++) {
        uint64_t bits = bits_f64_u64(total[i] + bits_u64_f64(words[i] | (uint64_t)high[i] << 32));
        to[i] = (uint32_t)bits, to[i + LANES] = (uint32_t)(bits >> 32);
      }
    }
  }
  int count = wide ? 2 * s->registers : s->registers;
  for (int r = 0; r < count; r++) {
    if (s->out == F16 || s->out == BF16) {
      Operand one = *result;
      one.number += (uint16_t)r;
      uint16_t halves[LANES];
      for (int i = 0; i < n; i++) halves[i] = (uint16_t)made[r][i];
      store_half(m, w, &one, halves, every_lane(m), 0, 0);
    } else {
      store_word(m, w, result, r, made[r], every_lane(m));
    }
  }
}
