/* Local memory: races between the waves of a workgroup. Each byte has who touched it last, and between which barriers.

   Two waves race where one writes what the other touches with no barrier in between; both may write equal bytes. Atomic
   operations are no race among themselves, and one is with any other access. A wave that took the result of one may
   know by it that others are done, so that what it touches up to the next barrier is not judged. */

static int shadow_store(Machine *m, const Wave *w, uint64_t place, int bytes, const uint8_t *from) {
  if (m->twins || w->met == m->barriers) return 0;
  for (int b = 0; b < bytes; b++) {
    Shadow *s = &m->shadow[place + b];
    int changes = m->lds[place + b] != from[b], others = s->written == m->barriers && s->writer != w->number;
    if ((others && (changes || s->atomic)) || (s->read == m->barriers && s->reader != w->number)) return FAULT_RACE;
    s->writer = others ? MANY : (uint8_t)w->number;
    s->written = m->barriers, s->atomic = 0;
  }
  return 0;
}

static int shadow_load(Machine *m, const Wave *w, uint64_t place, int bytes) {
  if (m->twins || w->met == m->barriers) return 0;
  for (int b = 0; b < bytes; b++) {
    Shadow *s = &m->shadow[place + b];
    if (s->written == m->barriers && s->writer != w->number && (s->writer != MANY || s->atomic)) return FAULT_RACE;
    s->reader = s->read == m->barriers && s->reader != w->number ? MANY : (uint8_t)w->number;
    s->read = m->barriers;
  }
  return 0;
}

static int shadow_atomic(Machine *m, const Wave *w, uint64_t place, int bytes) {
  if (m->twins || w->met == m->barriers) return 0;
  for (int b = 0; b < bytes; b++) {
    Shadow *s = &m->shadow[place + b];
    int before = s->written == m->barriers, others = before && s->writer != w->number;
    if ((others && !s->atomic) || (s->read == m->barriers && s->reader != w->number)) return FAULT_RACE;
    s->writer = others ? MANY : (uint8_t)w->number;
    s->written = m->barriers, s->atomic = !before || s->atomic;
  }
  return 0;
}
