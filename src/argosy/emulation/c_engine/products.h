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

/* A field of up to 16 bits of a row of words. */
static inline uint32_t field_of(const uint32_t *words, int place, int bits) {
  int bit = place * bits;
  uint64_t wide = words[bit >> 5] | (uint64_t)words[(bit >> 5) + 1] << 32;
  return (uint32_t)(wide >> (bit & 31)) & ((1u << bits) - 1);
}

static void factor(const Machine *m, const Wave *w, const Operand *o, const Factor *f, int kind, int depth, double *to) {
  double table[256];
  if (kind >= E4M3)
    for (uint32_t i = 0; i < 1u << f->bits; i++) table[i] = short_float(i, kind);
  for (int i = 0; i < m->lanes; i++) {
    uint32_t words[17] = {0};
    for (int k = 0; k < f->elements * f->bits / 32; k++) words[k] = word_at(w, o, k, i);
    for (int e = 0; e < f->elements; e++) {
      const uint8_t *place = f->places + 2 * (i * f->elements + e);
      double value;
      switch (kind) {
      case F16: value = half_value(((const uint16_t *)words)[e]); break;
      case BF16: value = bits_u32_f32((uint32_t)((const uint16_t *)words)[e] << 16); break;
      case F32: value = bits_u32_f32(words[e]); break;
      case F64: value = bits_u64_f64(words[2 * e] | (uint64_t)words[2 * e + 1] << 32); break;
      case I8: value = ((const int8_t *)words)[e]; break;
      case U8: value = ((const uint8_t *)words)[e]; break;
      default: value = table[field_of(words, e, f->bits)];
      }
      to[place[0] * depth + place[1]] = value;
    }
  }
}

/* Multiply by powers of two: byte of lane `row + rows * block` is the exponent plus 127 of a block of a row. */
static void scale_factor(const Machine *m, const Wave *w, const Operand *o, const Shape *s, int byte, double *to) {
  for (int i = 0; i < m->lanes; i++) {
    uint32_t power = word_at(w, o, 0, i) >> (8 * byte) & 0xFF;
    double by = power == 0xFF ? __builtin_nan("") : scale_f64(1, (int32_t)power - 127);
    double *first = to + i % s->rows * s->k + i / s->rows * s->block;
    for (int k = 0; k < s->block; k++) first[k] *= by;
  }
}

static void run_matrix(Machine *m, Wave *w, const Instruction *in) {
  const Shape *s = &m->shapes[in->what];
  double a[32 * 64], b[32 * 64], d[32 * 32];
  int rows = s->rows, depth = s->k;
  factor(m, w, &in->source[0], &s->a, s->a.kind == U8 && in->neg_lo & 1 ? I8 : s->a.kind, depth, a);
  factor(m, w, &in->source[1], &s->b, s->b.kind == U8 && in->neg_lo & 2 ? I8 : s->b.kind, depth, b);
  if (s->block) {
    scale_factor(m, w, &in->source[3], s, (in->op_sel & 1) + 2 * (in->op_sel_hi & 1), a);
    scale_factor(m, w, &in->source[4], s, (in->op_sel >> 1 & 1) + (in->op_sel_hi & 2), b);
  }
  double turned[64 * 32];
  for (int j = 0; j < rows; j++)
    for (int k = 0; k < depth; k++) turned[k * rows + j] = b[j * depth + k];
  for (int i = 0; i < rows; i++) {
    double sum[32] = {0};
    for (int k = 0; k < depth; k++) {
      double left = a[i * depth + k];
      for (int j = 0; j < rows; j++) sum[j] += left * turned[k * rows + j];
    }
    for (int j = 0; j < rows; j++) d[i * rows + j] = sum[j];
  }
  const Operand *c = &in->source[2], *result = &in->result[0];
  uint32_t made[32][LANES];
  for (int r = 0; r < s->registers; r++)
    for (int i = 0; i < m->lanes; i++) {
      const uint8_t *place = s->places + 2 * (i * s->registers + r);
      double total = d[place[0] * rows + place[1]];
      uint32_t word = c->kind == OF_CONSTANT ? (uint32_t)c->value : word_at(w, c, s->out == F64 ? 2 * r : r, i);
      switch (s->out) {
      case F32: made[r][i] = bits_f32_u32((float)(total + bits_u32_f32(word))); break;
      case I32:
        total += (int32_t)word;
        if (in->clamp) total = total > 2147483647.0 ? 2147483647.0 : total < -2147483648.0 ? -2147483648.0 : total;
        made[r][i] = (uint32_t)(int64_t)total;
        break;
      case F16: made[r][i] = half_bits(double_to_half(total + half_value((uint16_t)word))); break;
      case BF16: {
        uint32_t bits = bits_f32_u32((float)(total + bits_u32_f32(word << 16)));
        made[r][i] = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
        break;
      }
      default: {
        uint64_t wide = word;
        if (c->kind != OF_CONSTANT) wide |= (uint64_t)word_at(w, c, 2 * r + 1, i) << 32;
        else wide = c->value;
        uint64_t bits = bits_f64_u64(total + bits_u64_f64(wide));
        made[2 * r][i] = (uint32_t)bits, made[2 * r + 1][i] = (uint32_t)(bits >> 32);
      }
      }
    }
  int words = s->out == F64 ? 2 * s->registers : s->registers;
  for (int r = 0; r < words; r++) {
    if (s->out == F16 || s->out == BF16) {
      Operand one = *result;
      one.number += (uint16_t)r;
      uint16_t halves[LANES];
      for (int i = 0; i < m->lanes; i++) halves[i] = (uint16_t)made[r][i];
      store_half(m, w, &one, halves, every_lane(m), 0, 0);
    } else {
      store_word(m, w, result, r, made[r], every_lane(m));
    }
  }
}
