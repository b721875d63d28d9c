/* Copies into local memory past registers: a wave waits for its own by a counter, and tells others by a barrier.

   A byte that a copy fills holds whose it is, by which counter, and how many the wave had asked for by it. Copies are done
   here where they are asked for; what touches such a byte must come after a wait that is sufficient: of the wave that asked,
   or of another one in front of a barrier in between. Copies are done in order, so that all but the last n are once the
   counter is at most n. */

enum { NO_WAIT = 0xFFFF, ASKED_BITS = 25 };

static void raise_counter(Wave *w, const Instruction *in) {
  if (in->raises) w->counters[in->raises - 1].raised++;
}

static void wait_for(Wave *w, const Instruction *in) {
  uint32_t most[2] = {in->what, in->second};
  for (int c = 0; c < 2; c++) {
    Counter *counter = &w->counters[c];
    if (most[c] != NO_WAIT && counter->raised > most[c] && counter->raised - most[c] > counter->done)
      counter->done = counter->raised - most[c];
  }
}

/* At a barrier, or at its signal: what the wave knows to be done. */
static void offer(Wave *w) {
  for (int c = 0; c < 2; c++) w->counters[c].offered = w->counters[c].done;
}

/* Past it, all know. */
static void learn(Wave *w) {
  for (int c = 0; c < 2; c++) w->counters[c].known = w->counters[c].offered;
}

static void mark_copy(Machine *m, const Wave *w, const Instruction *in, uint64_t place, int bytes) {
  uint32_t counter = in->raises - 1u;
  uint32_t mark = (1u + (uint32_t)w->number) << (ASKED_BITS + 1) | counter << ASKED_BITS | w->counters[counter].raised;
  for (int b = 0; b < bytes; b++) m->copying[place + (uint64_t)b] = mark;
}

static inline int copy_outstanding(const Machine *m, const Wave *w, uint64_t place, int bytes) {
  if (!m->copying || m->twins) return 0;
  for (int b = 0; b < bytes; b++) {
    uint32_t mark = m->copying[place + (uint64_t)b];
    if (!mark) continue;
    const Wave *owner = &m->waves[(mark >> (ASKED_BITS + 1)) - 1];
    const Counter *counter = &owner->counters[mark >> ASKED_BITS & 1];
    if ((mark & ((1u << ASKED_BITS) - 1)) > (owner->number == w->number ? counter->done : counter->known)) return FAULT_COPY;
  }
  return 0;
}
