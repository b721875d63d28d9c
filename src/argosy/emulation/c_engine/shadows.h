/* Local memory: races between the waves of a workgroup. Each byte has who touched it last, and between which barriers.

   Two waves race where one writes what the other touches with no barrier in between; both may write equal bytes. Atomic
   operations are no race among themselves, and one is with any other access. A wave that took the result of one may
   know by it that others are done, so that what it touches up to the next barrier is not judged.

   `now` is the count of barriers in its place: a touch less it is small where no barrier was in between. */

enum { RECENT = 1 << COUNTED };

static inline __attribute__((always_inline)) int raced_store(Touch *written, const Touch *read, Touch now, Touch mine,
                                                             const uint8_t *old, const uint8_t *new, int bytes) {
  int wrong = 0;
  for (int b = 0; b < bytes; b++) {
    Touch writer = written[b] - now, reader = read[b] - now;
    int others = (writer < RECENT) & ((writer & MANY) != mine), changes = old[b] != new[b];
    wrong |= (others & (changes | (writer >= ATOMIC))) | ((reader < RECENT) & (reader != mine));
    written[b] = now | (others ? MANY : mine);
  }
  return wrong;
}

static inline __attribute__((always_inline)) int raced_load(const Touch *written, Touch *read, Touch now, Touch mine, int bytes) {
  int wrong = 0;
  for (int b = 0; b < bytes; b++) {
    Touch writer = written[b] - now, reader = read[b] - now;
    wrong |= (writer < RECENT) & ((writer & MANY) != mine) & (writer != MANY);
    read[b] = now | ((reader < RECENT) & (reader != mine) ? MANY : mine);
  }
  return wrong;
}

/* Where these are called, `bytes` is a known number, and their loops become a few wide instructions. */
static inline __attribute__((always_inline)) int shadow_store(Machine *m, const Wave *w, uint64_t place, int bytes, const void *from) {
  if (m->twins || w->met == m->barriers) return 0;
  Touch now = m->barriers << COUNTED, mine = (Touch)w->number;
  return raced_store(m->written + place, m->read + place, now, mine, m->lds + place, from, bytes) * FAULT_RACE;
}

static inline __attribute__((always_inline)) int shadow_load(Machine *m, const Wave *w, uint64_t place, int bytes) {
  if (m->twins || w->met == m->barriers) return 0;
  Touch now = m->barriers << COUNTED, mine = (Touch)w->number;
  return raced_load(m->written + place, m->read + place, now, mine, bytes) * FAULT_RACE;
}

static int shadow_atomic(Machine *m, const Wave *w, uint64_t place, int bytes) {
  if (m->twins || w->met == m->barriers) return 0;
  Touch now = m->barriers << COUNTED, mine = (Touch)w->number;
  for (int b = 0; b < bytes; b++) {
    Touch writer = m->written[place + b] - now, reader = m->read[place + b] - now;
    int before = writer < RECENT, others = before && (writer & MANY) != mine, atomic = writer >= ATOMIC;
    if ((others && !atomic) || (reader < RECENT && reader != mine)) return FAULT_RACE;
    m->written[place + b] = now | (others ? MANY : mine) | (!before || atomic ? ATOMIC : 0);
  }
  return 0;
}
