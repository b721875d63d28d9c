/* Arithmetic of the meanings in semantics/, one value at a time. Freestanding: what a library would do comes in Math. */

typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
typedef __SIZE_TYPE__ size_t;

typedef struct {
  double (*exp2)(double);
  double (*log2)(double);
  double (*sin)(double);
  double (*tanh)(double);
} Math;

static Math math_;

void *memcpy(void *to, const void *from, size_t n) {
  char *t = to;
  const char *f = from;
  for (size_t i = 0; i < n; i++) t[i] = f[i];
  return to;
}

void *memset(void *to, int value, size_t n) {
  char *t = to;
  for (size_t i = 0; i < n; i++) t[i] = (char)value;
  return to;
}

#define BITS(from, to, F, T)                   \
  static inline T bits_##from##_##to(F value) { \
    union {                                     \
      F f;                                      \
      T t;                                      \
    } both = {value};                           \
    return both.t;                              \
  }
BITS(f32, u32, float, uint32_t)
BITS(f32, i32, float, int32_t)
BITS(u32, f32, uint32_t, float)
BITS(i32, f32, int32_t, float)
BITS(f64, u64, double, uint64_t)
BITS(f64, i64, double, int64_t)
BITS(u64, f64, uint64_t, double)
BITS(i64, f64, int64_t, double)

/* A float16 is kept as a float. */
static inline float half_value(uint16_t bits) {
  union {
    uint16_t u;
    _Float16 h;
  } both = {bits};
  return (float)both.h;
}

static inline uint16_t half_bits(float value) {
  union {
    _Float16 h;
    uint16_t u;
  } both = {(_Float16)value};
  return both.u;
}

static inline float rounded_half(float value) { return half_value(half_bits(value)); }

/* A double as a float whose last bit says that something was lost, so that the next rounding is right. */
static inline float odd_float(double value) {
  float near = (float)value;
  uint32_t bits = bits_f32_u32(near);
  double back = near;
  if (back == value || value != value || (bits & 1)) return near;
  return bits_u32_f32(__builtin_fabs(value) > __builtin_fabs(back) ? bits + 1 : bits - 1);
}

static inline float double_to_half(double value) { return rounded_half(odd_float(value)); }

static inline double fused_f64(double a, double b, double c) { return __builtin_fma(a, b, c); }
static inline float fused_f32(float a, float b, float c) { return __builtin_fmaf(a, b, c); }

static inline float fused_f16(float a, float b, float c) {
  double product = (double)a * b, other = c, total = product + other;
  double back = total - product, error = (product - (total - back)) + (other - back);
  uint64_t bits = bits_f64_u64(total);
  if (error != 0 && error == error && !(bits & 1) && total - total == 0)
    bits += (error > 0) == (total > 0) ? 1 : -1;
  return double_to_half(bits_u64_f64(bits));
}

#define ORDERS(kind, T)                                                        \
  static inline T least_##kind(T a, T b) { return a < b ? a : b; }             \
  static inline T greatest_##kind(T a, T b) { return a > b ? a : b; }
ORDERS(u16, uint16_t)
ORDERS(i16, int16_t)
ORDERS(u32, uint32_t)
ORDERS(i32, int32_t)
ORDERS(u64, uint64_t)
ORDERS(i64, int64_t)

#define FLOATS(kind, T, U, AS_U, AS_T, F)                                                       \
  static inline uint8_t is_nan_##kind(T a) { return a != a; }                                   \
  static inline T least_##kind(T a, T b) {                                                      \
    T picked = a < b ? a : b;                                                                   \
    picked = a == 0 && b == 0 ? AS_T(AS_U(a) | AS_U(b)) : picked;                               \
    return a != a ? b : b != b ? a : picked;                                                    \
  }                                                                                             \
  static inline T greatest_##kind(T a, T b) {                                                   \
    T picked = a > b ? a : b;                                                                   \
    picked = a == 0 && b == 0 ? AS_T(AS_U(a) & AS_U(b)) : picked;                               \
    return a != a ? b : b != b ? a : picked;                                                    \
  }                                                                                             \
  static inline T round_down_##kind(T a) { return __builtin_floor##F(a); }                      \
  static inline T round_up_##kind(T a) { return __builtin_ceil##F(a); }                         \
  static inline T towards_zero_##kind(T a) { return __builtin_trunc##F(a); }                    \
  static inline T nearest_##kind(T a) { return __builtin_rint##F(a); }
FLOATS(f32, float, uint32_t, bits_f32_u32, bits_u32_f32, f)
FLOATS(f16, float, uint32_t, bits_f32_u32, bits_u32_f32, f)
FLOATS(f64, double, uint64_t, bits_f64_u64, bits_u64_f64, )

static inline float square_root_f32(float a) { return __builtin_sqrtf(a); }
static inline double square_root_f64(double a) { return __builtin_sqrt(a); }
static inline float square_root_f16(float a) { return rounded_half(__builtin_sqrtf(a)); }
static inline float invert_f32(float a) { return 1 / a; }
static inline double invert_f64(double a) { return 1 / a; }
static inline float invert_f16(float a) { return double_to_half(1 / (double)a); }

static inline double part_of_turn(double a) { return __builtin_fabs(a) - __builtin_floor(__builtin_fabs(a)); }
static inline double sine_of_turns(double a) {
  double turn = part_of_turn(a), half = turn >= 0.5 ? turn - 0.5 : turn;
  double size = math_.sin(6.283185307179586 * (half > 0.25 ? 0.5 - half : half));
  return a == 0 ? a : ((turn >= 0.5) != (a < 0) ? -size : size) + 0.0;
}
static inline double cosine_of_turns(double a) {
  return math_.sin(6.283185307179586 * (__builtin_fabs(part_of_turn(a) - 0.5) - 0.25));
}
static inline float power_f32(float a) { return (float)math_.exp2(a); }
static inline float power_f16(float a) { return double_to_half(math_.exp2(a)); }
static inline float logarithm_f32(float a) { return (float)math_.log2(a); }
static inline float logarithm_f16(float a) { return double_to_half(math_.log2(a)); }
static inline float hyperbolic_f32(float a) { return (float)math_.tanh(a); }
static inline float sine_f32(float a) { return (float)sine_of_turns(a); }
static inline float sine_f16(float a) { return double_to_half(sine_of_turns(a)); }
static inline float cosine_f32(float a) { return (float)cosine_of_turns(a); }
static inline float cosine_f16(float a) { return double_to_half(cosine_of_turns(a)); }

static inline double scale_f64(double a, int32_t by) {
  by = by > 5000 ? 5000 : by < -5000 ? -5000 : by;
  for (; by > 1023; by -= 1023) a *= 0x1p1023;
  /* Steps that leave 53 bits until the last, so that a subnormal result is rounded once. */
  for (; by < -1022; by += 969) a *= 0x1p-969;
  return a * bits_u64_f64((uint64_t)(by + 1023) << 52);
}
static inline float scale_f32(float a, int32_t by) {
  by = by > 600 ? 600 : by < -600 ? -600 : by;
  return (float)((double)a * bits_u64_f64((uint64_t)(by + 1023) << 52));
}
static inline float scale_f16(float a, int32_t by) {
  by = by > 600 ? 600 : by < -600 ? -600 : by;
  return double_to_half((double)a * bits_u64_f64((uint64_t)(by + 1023) << 52));
}

static inline int32_t exponent_f64(double a) {
  if (a == 0 || a - a != 0) return 0;
  int32_t power = (int32_t)((bits_f64_u64(a) >> 52) & 0x7FF);
  if (power == 0) return (int32_t)((bits_f64_u64(a * 0x1p54) >> 52) & 0x7FF) - 1022 - 54;
  return power - 1022;
}
static inline double mantissa_f64(double a) {
  return a == 0 || a - a != 0 ? a : scale_f64(a, -exponent_f64(a));
}
static inline int32_t exponent_f32(float a) { return exponent_f64(a); }
static inline int32_t exponent_f16(float a) { return exponent_f64(a); }
static inline float mantissa_f32(float a) { return (float)mantissa_f64(a); }
static inline float mantissa_f16(float a) { return (float)mantissa_f64(a); }
static inline int32_t next_power_f32(float a) { return (int32_t)((bits_f32_u32(a) >> 23) & 0xFF); }
static inline int32_t next_power_f64(double a) { return (int32_t)((bits_f64_u64(a) >> 52) & 0x7FF); }

static inline float truncated_half_f32(float a) {
  float near = rounded_half(a);
  if (a - a == 0 && __builtin_fabsf(near) > __builtin_fabsf(a)) return half_value(half_bits(near) - 1);
  return near;
}

/* 53 bits of 2 / pi, whose bits behind the point TURNS holds, the first one highest. */
static inline double segment(double a, uint32_t which) {
  static const uint32_t turns_[] = {TURNS};
  int32_t power = (int32_t)((bits_f64_u64(a) >> 52) & 0x7FF);
  int32_t shift = 53 * (int32_t)(which & 31) + (power > 1077 ? power - 1077 : 0);
  uint64_t found = 0;
  for (int32_t place = shift; place < shift + 53; place++)
    found = found << 1 | (place < 1201 ? turns_[place >> 5] >> (31 - (place & 31)) & 1 : 0);
  return scale_f64((double)found, -53 - shift + (power >= 1968 ? 128 : 0));
}

#define INTEGERS(kind, T, least_one, greatest_one)                                   \
  static inline T to_##kind(double a) {                                              \
    if (a != a) return 0;                                                            \
    return a <= (double)(least_one) ? (least_one) : a >= (double)(greatest_one) ? (greatest_one) : (T)a; \
  }
INTEGERS(i16, int16_t, -32767 - 1, 32767)
INTEGERS(u16, uint16_t, 0, 65535)
INTEGERS(i32, int32_t, -2147483647 - 1, 2147483647)
INTEGERS(u32, uint32_t, 0, 4294967295u)

static inline uint32_t count_ones_u32(uint32_t a) { return (uint32_t)__builtin_popcount(a); }
static inline uint32_t count_ones_u64(uint64_t a) { return (uint32_t)__builtin_popcountll(a); }
static inline uint32_t count_trailing_u32(uint32_t a) { return a ? (uint32_t)__builtin_ctz(a) : ~0u; }
static inline uint32_t count_trailing_u64(uint64_t a) { return a ? (uint32_t)__builtin_ctzll(a) : ~0u; }
static inline uint32_t count_leading_u32(uint32_t a) { return a ? (uint32_t)__builtin_clz(a) : ~0u; }
static inline uint32_t count_leading_u64(uint64_t a) { return a ? (uint32_t)__builtin_clzll(a) : ~0u; }
static inline uint32_t reverse_u32(uint32_t a) { return __builtin_bitreverse32(a); }
static inline uint64_t reverse_u64(uint64_t a) { return __builtin_bitreverse64(a); }
