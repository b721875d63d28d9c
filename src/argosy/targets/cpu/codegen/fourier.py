"""Fast Fourier transforms in C: mixed radix for lengths of small prime factors, Bluestein's convolution for others.

A transform works on several signals at once, the elements of each `lanes` apart, real and imaginary parts in
arrays of their own, all in float64. Stockham's form needs no reordering: each stage reads one pair of arrays and writes
the other, and its inner loops run over neighbouring numbers.

Bluestein: with k j = (k^2 + j^2 - (k - j)^2) / 2 a transform of n elements is a convolution with a chirp, which
transforms of any size from 2n - 1 on can do (L. Bluestein, A linear filtering approach to the computation of the
discrete Fourier transform, 1970).
"""

from __future__ import annotations

from typing import Final

from argosy.targets.cpu.codegen.kernel import ENTRY

__all__ = ["LANES", "TABLES", "TRANSFORM", "transform_size"]

LANES: Final = 8
"""Signals side by side, at most."""
_LARGEST: Final = 31
"""The largest prime factor for which stages of its own are faster than a convolution."""


def transform_size(length: int) -> int:
    """How many elements the transforms for signals of some length work on: `size_of` in C."""
    rest = length
    for factor in range(2, _LARGEST + 1):
        while rest > 1 and rest % factor == 0:
            rest //= factor
    return max(length, 1) if rest <= 1 else 1 << (2 * length - 2).bit_length()


_STAGES: Final = """
/* The factors of n, fours first; how many, or -1 where one is too large for a stage of its own. */
static int64 NAME_factors(int64 n, int64 *found) {
  int64 count = 0;
  for (; n > 1 && n % 4 == 0; n /= 4) found[count++] = 4;
  for (int64 p = 2; n > 1; ++p) {
    if (p > LARGEST) return -1;
    for (; n % p == 0; n /= p) found[count++] = p;
  }
  return count;
}

static int64 NAME_size_of(int64 n) {
  int64 found[64], size = 1;
  if (NAME_factors(n, found) >= 0) return max_int64(n, 1);
  while (size < 2 * n - 1) size *= 2;
  return size;
}

/* One stage of radix p: `width` numbers lie between elements, `part` elements between those that meet. */
static void NAME_stage(int64 n, int64 p, int64 before, int64 part, int64 width, const float64 *turns,
                       const float64 *restrict re, const float64 *restrict im,
                       float64 *restrict to_re, float64 *restrict to_im) {
  const int64 far = part * width;
  for (int64 j = 0; j < part; ++j) {
    const float64 *restrict a = re + j * width, *restrict b = im + j * width;
    float64 *restrict c = to_re + j * p * width, *restrict d = to_im + j * p * width;
    const float64 *w1 = turns + 2 * before * j;
    if (p == 2) {
      for (int64 i = 0; i < width; ++i) {
        const float64 x = a[i] - a[i + far], y = b[i] - b[i + far];
        c[i] = a[i] + a[i + far], d[i] = b[i] + b[i + far];
        c[i + width] = x * w1[0] - y * w1[1], d[i + width] = x * w1[1] + y * w1[0];
      }
    } else if (p == 4) {
      const float64 *w2 = turns + 4 * before * j, *w3 = turns + 6 * before * j;
      for (int64 i = 0; i < width; ++i) {
        const float64 even = a[i] + a[i + 2 * far], even_i = b[i] + b[i + 2 * far];
        const float64 odd = a[i + far] + a[i + 3 * far], odd_i = b[i + far] + b[i + 3 * far];
        const float64 less = a[i] - a[i + 2 * far], less_i = b[i] - b[i + 2 * far];
        /* -i times the difference */
        const float64 turned = b[i + far] - b[i + 3 * far], turned_i = a[i + 3 * far] - a[i + far];
        const float64 x1 = less + turned, y1 = less_i + turned_i;
        const float64 x2 = even - odd, y2 = even_i - odd_i;
        const float64 x3 = less - turned, y3 = less_i - turned_i;
        c[i] = even + odd, d[i] = even_i + odd_i;
        c[i + width] = x1 * w1[0] - y1 * w1[1], d[i + width] = x1 * w1[1] + y1 * w1[0];
        c[i + 2 * width] = x2 * w2[0] - y2 * w2[1], d[i + 2 * width] = x2 * w2[1] + y2 * w2[0];
        c[i + 3 * width] = x3 * w3[0] - y3 * w3[1], d[i + 3 * width] = x3 * w3[1] + y3 * w3[0];
      }
    } else {
      for (int64 t = 0; t < p; ++t) {
        const float64 *w = turns + 2 * before * j * t;
        for (int64 i = 0; i < width; ++i) c[i + t * width] = a[i], d[i + t * width] = b[i];
        for (int64 k = 1; k < p; ++k) {
          const float64 *v = turns + 2 * (n / p) * (k * t % p);
          for (int64 i = 0; i < width; ++i) {
            c[i + t * width] += a[i + k * far] * v[0] - b[i + k * far] * v[1];
            d[i + t * width] += a[i + k * far] * v[1] + b[i + k * far] * v[0];
          }
        }
        for (int64 i = 0; i < width; ++i) {
          const float64 x = c[i + t * width], y = d[i + t * width];
          c[i + t * width] = x * w[0] - y * w[1], d[i + t * width] = x * w[1] + y * w[0];
        }
      }
    }
  }
}

/* `parts`: real and imaginary parts, then room for as many; on return the first two are the result's. */
static void NAME_stages(int64 n, int64 lanes, const float64 *turns, float64 *parts[4]) {
  int64 found[64], before = 1, rest = n;
  const int64 count = NAME_factors(n, found);
  for (int64 number = 0; number < count; ++number) {
    const int64 p = found[number];
    rest /= p;
    NAME_stage(n, p, before, rest, before * lanes, turns, parts[0], parts[1], parts[2], parts[3]);
    before *= p;
    for (int64 part = 0; part < 2; ++part) {
      float64 *held = parts[part];
      parts[part] = parts[part + 2], parts[part + 2] = held;
    }
  }
}

static void NAME_swap(float64 *parts[4]) {
  for (int64 part = 0; part < 4; part += 2) {
    float64 *held = parts[part];
    parts[part] = parts[part + 1], parts[part + 1] = held;
  }
}

/* exp(-2 pi i turn / whole) */
static void NAME_turn(int64 turn, int64 whole, float64 *to) {
  const float64 angle = (float64)(2 * turn > whole ? turn - whole : turn) / (float64)whole * 0x1.921fb54442d18p+2;
  to[0] = cos_float64(angle), to[1] = -sin_float64(angle);
}
"""

_TABLES: Final = """
/* What transforms of n elements need: turns of `size`; where that is not n, the chirp and its transform over `size`. */
static void NAME_tables(int64 n, int64 size, float64 *tables, float64 *room) {
  float64 *chirp = tables + 2 * size, *filter = chirp + 2 * n;
  for (int64 k = 0; k < size; ++k) NAME_turn(k, size, tables + 2 * k);
  if (size == n) return;
  float64 *parts[4] = {room, room + size, room + 2 * size, room + 3 * size};
  for (int64 k = 0; k < 2 * size; ++k) room[k] = 0;
  for (int64 k = 0; k < n; ++k) {
    NAME_turn(k * k % (2 * n), 2 * n, chirp + 2 * k);
    const int64 mirrored = k ? size - k : 0;
    parts[0][k] = parts[0][mirrored] = chirp[2 * k];
    parts[1][k] = parts[1][mirrored] = -chirp[2 * k + 1];
  }
  NAME_stages(size, 1, tables, parts);
  for (int64 k = 0; k < size; ++k) {
    filter[2 * k] = parts[0][k] / (float64)size, filter[2 * k + 1] = parts[1][k] / (float64)size;
  }
}
"""

_WHOLE: Final = """
static void NAME_turned(int64 count, int64 lanes, const float64 *by, float64 *re, float64 *im) {
  for (int64 k = 0; k < count; ++k) {
    for (int64 i = k * lanes; i < (k + 1) * lanes; ++i) {
      const float64 x = re[i], y = im[i];
      re[i] = x * by[2 * k] - y * by[2 * k + 1], im[i] = x * by[2 * k + 1] + y * by[2 * k];
    }
  }
}

/* The transforms of `lanes` signals of n elements; as `stages`. */
static void NAME_transform(int64 n, int64 size, int64 lanes, const float64 *tables, float64 *parts[4]) {
  if (size == n) {
    NAME_stages(n, lanes, tables, parts);
    return;
  }
  const float64 *chirp = tables + 2 * size, *filter = chirp + 2 * n;
  NAME_turned(n, lanes, chirp, parts[0], parts[1]);
  for (int64 i = n * lanes; i < size * lanes; ++i) parts[0][i] = parts[1][i] = 0;
  NAME_stages(size, lanes, tables, parts);
  NAME_turned(size, lanes, filter, parts[0], parts[1]);
  NAME_swap(parts);
  NAME_stages(size, lanes, tables, parts);
  NAME_swap(parts);
  NAME_turned(n, lanes, chirp, parts[0], parts[1]);
}
"""


def _named(text: str) -> str:
    return text.strip("\n").replace("NAME", ENTRY).replace("LARGEST", str(_LARGEST)) + "\n"


TABLES: Final = _named(_STAGES + _TABLES)
"""`size_of(n)` and `tables(n, size, tables, room)`: 4 size + 2 n numbers of tables, room for 4 size."""
TRANSFORM: Final = _named(_STAGES + _WHOLE)
"""`size_of(n)` and `transform(n, size, lanes, tables, parts)`, each of the four parts size times lanes numbers."""
