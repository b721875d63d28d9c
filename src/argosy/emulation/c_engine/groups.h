/* Global memory: which of it may be touched, and races between workgroups. Each byte has the marks of who wrote and who read it in this launch.

   Two workgroups race where one changes what the other touches. A workgroup that took the result of an atomic operation
   may know by it that others are done, so that what it touches from then on is not judged. Marks are numbers of
   workgroups, modulo what 16 bits hold. Workgroups that run at the same time, on other threads, may miss each other's
   marks of the same moment, as they may in hardware. */

enum { BY_MANY = 0xFFFF };

static int inside(Machine *m, uint64_t address, uint64_t size) {
  if (address >= m->last.start && address + size <= m->last.end) return 1;
  int low = 0, high = m->range_count;
  while (low < high) {
    int middle = (low + high) / 2;
    if (m->ranges[middle].start <= address) low = middle + 1;
    else high = middle;
  }
  if (low == 0) return 0;
  Range found = m->ranges[low - 1];
  if (address + size > found.end || address + size < address) return 0;
  m->last = found;
  return 1;
}

static inline uint64_t marks_at(const Machine *m, uint64_t address) { return m->last.marks + (address - m->last.start); }

static inline __attribute__((always_inline)) int marked_read(uint16_t *readers, const uint16_t *writers, uint16_t mark, int bytes) {
  uint16_t others = 0;
  for (int b = 0; b < bytes; b++) {
    others |= (uint16_t)((writers[b] != 0) & (writers[b] != mark));
    readers[b] = (readers[b] == 0) | (readers[b] == mark) ? mark : BY_MANY;
  }
  return others;
}

static int mark_read(Machine *m, uint64_t address, int bytes) {
  if (m->twins || m->met || !inside(m, address, (uint64_t)bytes)) return 0;
  uint64_t at = marks_at(m, address);
  uint16_t *readers = m->readers + at, *writers = m->writers + at;
  switch (bytes) { /* loops of known lengths become a few wide instructions */
  case 2: return marked_read(readers, writers, m->mark, 2);
  case 4: return marked_read(readers, writers, m->mark, 4);
  case 8: return marked_read(readers, writers, m->mark, 8);
  case 16: return marked_read(readers, writers, m->mark, 16);
  default: return marked_read(readers, writers, m->mark, bytes);
  }
}

static inline __attribute__((always_inline)) int marked_write(uint16_t *readers, uint16_t *writers, uint16_t mark,
                                                              const uint8_t *new, const uint8_t *old, int bytes) {
  uint16_t wrong = 0;
  for (int b = 0; b < bytes; b++) {
    int others = (writers[b] != 0) & (writers[b] != mark), read = (readers[b] != 0) & (readers[b] != mark);
    wrong |= (uint16_t)((others | read) & (new[b] != old[b]));
    writers[b] = others ? BY_MANY : mark;
  }
  return wrong;
}

static int mark_write(Machine *m, uint64_t address, int bytes, const void *from) {
  if (m->twins || m->met || !inside(m, address, (uint64_t)bytes)) return 0;
  uint64_t at = marks_at(m, address);
  uint16_t *readers = m->readers + at, *writers = m->writers + at;
  const uint8_t *old = (const uint8_t *)address;
  switch (bytes) {
  case 2: return marked_write(readers, writers, m->mark, from, old, 2);
  case 4: return marked_write(readers, writers, m->mark, from, old, 4);
  case 8: return marked_write(readers, writers, m->mark, from, old, 8);
  case 16: return marked_write(readers, writers, m->mark, from, old, 16);
  default: return marked_write(readers, writers, m->mark, from, old, bytes);
  }
}
