/* A driver without a device, for tests: it checks the order, sizes and lifetimes of all that it is asked for, and does
 * the work of toy kernels on the host as late as a driver may: when somebody waits for it. What is wrong is written
 * down (`fake_said`) and refused. The two interfaces are thin layers over this file, which include the vendors' headers.
 *
 * REACHES_HOST says whether kernels may work on memory of the host that the driver gave.
 *
 * A code object is text: "argosy-fake", then lines of an entry, a toy kernel and the bytes of its parameters. */
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OK = 0, INVALID = 1, NO_MEMORY = 2, MOST = 1 << 16, DEVICES = 4 };
typedef enum { MEMORY, HOST, STREAM, EVENT, MODULE, FUNCTION, GRAPH, EXECUTABLE, KINDS } Kind;
static const char *const NAMES[] = {"memory", "host", "stream", "event", "module", "function", "graph", "executable"};

typedef struct Object Object;
typedef struct {
    enum { COPY, FILL, KERNEL, REPLAY, RECORD, WAIT } what;
    char *to, *from;
    int to_host, from_host;
    size_t size;
    Object *object; /* function, executable, or the stream that is waited for */
    long position;
    unsigned char parameters[256];
} Work;
typedef struct { Work *items; long count, done, room; } Queue;
struct Object {
    Kind kind;
    int alive, device, capturing;
    size_t size;
    char *base;
    Queue queue;           /* stream: what is to be done; graph, executable: what it holds */
    Object *owner;         /* function: its module; event: the stream of its last record */
    Object *graph;         /* stream: what is captured */
    pthread_t thread;
    long position;
    char entry[64], op[32];
    size_t parameter_bytes;
    int shared;
};
typedef struct { char name[64], arch[64], pci[16]; int units, wave; } Device;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Object *objects[MOST];
static int object_count, device_count = 1, version, calls_count, launches_count;
static Device devices[DEVICES] = {{"Fake GPU", "gfx942", "0000:01:00.0", 4, 64}};
static size_t used, limit = 64 << 20;
static char said[1 << 16];
static __thread int current = -1;
static int contexts[DEVICES];
static const char *fail_next;
static int fail_code, fail_after;

static int wrong(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    size_t at = strlen(said);
    vsnprintf(said + at, sizeof said - at - 2, format, arguments);
    va_end(arguments);
    strcat(said, "\n");
    return INVALID;
}
#define EXPORT __attribute__((visibility("default")))
EXPORT const char *fake_said(void) { return said; }
EXPORT void fake_limit(size_t bytes) { limit = bytes; }
EXPORT void fake_version(int number) { version = number; }
EXPORT int fake_launches(void) { return launches_count; }
EXPORT int fake_calls(void) { return calls_count; }
EXPORT void fake_fail(const char *function, int code, int after) { fail_next = function, fail_code = code, fail_after = after; }
EXPORT void fake_device(int index, const char *name, const char *arch, const char *pci, int units, int wave) {
    Device *device = &devices[index];
    snprintf(device->name, sizeof device->name, "%s", name);
    snprintf(device->arch, sizeof device->arch, "%s", arch);
    snprintf(device->pci, sizeof device->pci, "%s", pci);
    device->units = units, device->wave = wave;
    if (index >= device_count) device_count = index + 1;
}
static int is_default(const Object *object);
EXPORT int fake_alive(const char *kind) {
    int count = 0;
    for (int i = 0; i < object_count; ++i) count += objects[i]->alive && !strcmp(NAMES[objects[i]->kind], kind) && !is_default(objects[i]);
    return count;
}

static Object *made(Kind kind, size_t size) {
    Object *object = calloc(1, sizeof *object);
    object->kind = kind, object->alive = 1, object->device = current, object->size = size;
    objects[object_count++ % MOST] = object;
    return object;
}
/* Handle 0 is the default stream of the current device; it is made when it is first used, and not counted. */
static Object *default_streams[DEVICES];
static Object *known(const void *handle, Kind kind) {
    if (!handle && kind == STREAM && current >= 0) {
        if (!default_streams[current]) {
            default_streams[current] = made(STREAM, 0);
        }
        return default_streams[current];
    }
    for (int i = 0; i < object_count; ++i)
        if ((void *)objects[i] == handle && objects[i]->kind == kind && objects[i]->alive) return objects[i];
    wrong("%p is no %s that lives", handle, NAMES[kind]);
    return NULL;
}
static Object *block(const char *at, size_t size, Kind kind) {
    for (int i = object_count - 1; i >= 0; --i) {
        Object *o = objects[i];
        if (o->kind == kind && at >= o->base && at < o->base + o->size) {
            if (!o->alive) { wrong("%zu bytes of %s are used after it was freed", size, NAMES[kind]); return NULL; }
            if (at + size > o->base + o->size) { wrong("%zu bytes leave %s of %zu", size, NAMES[kind], o->size); return NULL; }
            return o;
        }
    }
    return NULL;
}
/* Device memory must be one block that lives; the host's may be anything, but what was freed. */
static int reachable(char *at, size_t size, int host, int device) {
    int before = strlen(said);
    Object *o = block(at, size, host ? HOST : MEMORY);
    if (o) return host || o->device == device ? 1 : (wrong("memory of device %d is used on %d", o->device, device), 0);
    if (!host && (int)strlen(said) == before) wrong("%p is no device memory", at);
    return host && (int)strlen(said) == before;
}
static int is_default(const Object *object) {
    for (int i = 0; i < DEVICES; ++i)
        if (default_streams[i] == object) return 1;
    return 0;
}

static void push(Queue *queue, Work work) {
    if (queue->count == queue->room)
        queue->items = realloc(queue->items, (queue->room = queue->room * 2 + 8) * sizeof(Work));
    queue->items[queue->count++] = work;
}

static void kernel(Object *function, const unsigned char *block_, int device) {
    const int64_t *word = (const int64_t *)block_;
    ++launches_count;
    if (!function->alive || !function->owner->alive) { wrong("%s runs after its module went", function->entry); return; }
    if (!strcmp(function->op, "add")) { /* a, b, y, n */
        float *a = (float *)word[0], *b = (float *)word[1], *y = (float *)word[2];
        size_t bytes = 4 * word[3];
        if (bytes && reachable((char *)a, bytes, 0, device) && reachable((char *)b, bytes, 0, device) && reachable((char *)y, bytes, 0, device))
            for (int64_t i = 0; i < word[3]; ++i) y[i] = a[i] + b[i];
    } else if (!strcmp(function->op, "scale")) { /* x, y, n, factor */
        float *x = (float *)word[0], *y = (float *)word[1];
        size_t bytes = 4 * word[2];
        if (bytes && reachable((char *)x, bytes, 0, device) && reachable((char *)y, bytes, 0, device))
            for (int64_t i = 0; i < word[2]; ++i) y[i] = x[i] * (float)word[3];
    } else if (!strcmp(function->op, "least")) { /* x, word of faults: no element may be negative */
        float *x = (float *)word[0];
        int64_t *fault = (int64_t *)word[1];
        if (reachable((char *)x, 4, 0, device) && ((REACHES_HOST && block((char *)fault, 8, HOST)) || reachable((char *)fault, 8, 0, device)) && x[0] < 0)
            *fault = ((int64_t)1 << 56) | (((int64_t)x[0]) & (((int64_t)1 << 56) - 1));
    } else
        wrong("%s is no toy kernel", function->op);
}

static void run_until(Object *stream, long position);
static void perform(Work *work, int device) {
    switch (work->what) {
    case COPY:
        if (reachable(work->to, work->size, work->to_host, device) && reachable(work->from, work->size, work->from_host, device))
            memmove(work->to, work->from, work->size);
        break;
    case FILL:
        if (reachable(work->to, work->size, 0, device)) memset(work->to, work->position, work->size);
        break;
    case KERNEL: kernel(work->object, work->parameters, device); break;
    case REPLAY:
        if (!work->object->alive) wrong("a graph is destroyed before its work is done");
        else for (long i = 0; i < work->object->queue.count; ++i) perform(&work->object->queue.items[i], device);
        break;
    case WAIT: run_until(work->object, work->position); break;
    case RECORD: break;
    }
}
static void run_until(Object *stream, long position) {
    while (stream->queue.done < position) perform(&stream->queue.items[stream->queue.done++], stream->device);
}
static void finish_all(void) {
    for (int i = 0; i < object_count; ++i)
        if (objects[i]->kind == STREAM && objects[i]->alive) run_until(objects[i], objects[i]->queue.count);
}
static int pending_on(const Object *host) { /* whether work that is not done copies from or to a block of the host */
    for (int i = 0; i < object_count; ++i)
        if (objects[i]->kind == STREAM && objects[i]->alive)
            for (long j = objects[i]->queue.done; j < objects[i]->queue.count; ++j) {
                Work *w = &objects[i]->queue.items[j];
                if ((w->to_host && w->to >= host->base && w->to < host->base + host->size) ||
                    (w->from_host && w->from >= host->base && w->from < host->base + host->size)) return 1;
            }
    return 0;
}
static int capturing_here(void) {
    for (int i = 0; i < object_count; ++i)
        if (objects[i]->kind == STREAM && objects[i]->alive && objects[i]->capturing && pthread_equal(objects[i]->thread, pthread_self()))
            return 1;
    return 0;
}
static int enqueue(const void *handle, Work work) {
    Object *stream = known(handle, STREAM);
    if (!stream) return INVALID;
    if (stream->device != current) return wrong("a stream of device %d is used with the context of %d", stream->device, current);
    push(stream->capturing ? &stream->graph->queue : &stream->queue, work);
    return OK;
}

/* Every function begins with one of these: a context must be current, and some may not be called while capturing. */
static int enter(const char *function, int needs_context, int while_capturing) {
    pthread_mutex_lock(&lock);
    ++calls_count;
    if (fail_next && !strcmp(fail_next, function) && fail_after-- == 0) { fail_next = NULL; return fail_code; }
    if (needs_context && current < 0) return wrong("%s without a context", function);
    if (!while_capturing && capturing_here()) return wrong("%s during a capture", function);
    return OK;
}
static int leave(int code) {
    pthread_mutex_unlock(&lock);
    return code;
}
EXPORT void fake_reset(void) {
    for (int i = 0; i < object_count; ++i) {
        if (objects[i]->kind == MEMORY || objects[i]->kind == HOST) free(objects[i]->base);
        free(objects[i]->queue.items);
        free(objects[i]);
    }
    object_count = launches_count = calls_count = 0, device_count = 1, used = 0, limit = 64 << 20, said[0] = 0, fail_next = NULL;
    current = -1, version = 0;
    memset(default_streams, 0, sizeof default_streams);
    fake_device(0, "Fake GPU", "gfx942", "0000:01:00.0", 4, 64);
}

static int core_allocate(Kind kind, void **at, size_t size) {
    if (!size) return wrong("no bytes are asked for");
    if (kind == MEMORY && used + size > limit) return NO_MEMORY;
    Object *object = made(kind, size);
    object->base = aligned_alloc(256, (size + 255) / 256 * 256);
    memset(object->base, 0xCD, size);
    if (kind == MEMORY) used += size;
    *at = object->base;
    return OK;
}
static int core_free(Kind kind, char *at) {
    for (int i = object_count - 1; i >= 0; --i) {
        Object *o = objects[i];
        if (o->kind != kind || o->base != at) continue;
        if (!o->alive) return wrong("%s is freed twice", NAMES[kind]);
        if (kind == MEMORY) finish_all(), used -= o->size; /* drivers wait here */
        else if (pending_on(o)) return wrong("memory of the host is freed before a copy has ended");
        o->alive = 0; /* the address is not used again, so that a use after this is seen */
        return OK;
    }
    return wrong("%p was never allocated as %s", at, NAMES[kind]);
}
static int core_destroy(const void *handle, Kind kind) {
    Object *object = known(handle, kind);
    if (!object) return INVALID;
    if (kind == STREAM) {
        if (object->capturing) return wrong("a stream is destroyed while it captures");
        run_until(object, object->queue.count);
    }
    object->alive = 0;
    return OK;
}
static int core_load(Object **module, const char *text) {
    if (strncmp(text, "argosy-fake\n", 12)) return 200;
    Object *o = made(MODULE, strlen(text) + 1);
    o->base = strcpy(malloc(o->size), text);
    *module = o;
    return OK;
}
static int core_function(Object **function, const void *handle, const char *entry) {
    Object *module = known(handle, MODULE);
    if (!module) return INVALID;
    for (char *line = strchr(module->base, '\n'); line && line[1]; line = strchr(line + 1, '\n')) {
        char name[64], op[32];
        size_t bytes;
        if (sscanf(line + 1, "%63s %31s %zu", name, op, &bytes) == 3 && !strcmp(name, entry)) {
            Object *o = made(FUNCTION, 0);
            strcpy(o->entry, name), strcpy(o->op, op);
            o->owner = module, o->parameter_bytes = bytes, o->shared = 48 << 10;
            *function = o;
            return OK;
        }
    }
    return 500;
}
static int core_launch(const void *handle, const unsigned *grid, const unsigned *threads, unsigned shared, const void *stream, void **extra, void *end) {
    Object *function = known(handle, FUNCTION);
    if (!function || !function->owner->alive) return wrong("a function of a module that went is launched");
    if (!grid[0] || !grid[1] || !grid[2] || grid[1] > 65535 || grid[2] > 65535) return wrong("a grid of %u x %u x %u", grid[0], grid[1], grid[2]);
    if (!threads[0] || threads[0] * threads[1] * threads[2] > 1024) return wrong("%u threads", threads[0]);
    if ((int)shared > function->shared) return wrong("%u bytes of shared memory, %d were asked for", shared, function->shared);
    if (extra[0] != (void *)1 || extra[2] != (void *)2 || extra[4] != end) return wrong("launch options that are none");
    size_t size = *(size_t *)extra[3];
    if (size != function->parameter_bytes || size > 256) return wrong("%zu bytes of parameters, %s takes %zu", size, function->entry, function->parameter_bytes);
    Work work = {.what = KERNEL, .object = function};
    memcpy(work.parameters, extra[1], size);
    return enqueue(stream, work);
}
static int core_begin(const void *handle, int mode) {
    Object *stream = known(handle, STREAM);
    if (!stream) return INVALID;
    if (stream->capturing || mode != 1) return wrong("a capture begins in mode %d", mode);
    stream->capturing = 1, stream->thread = pthread_self(), stream->graph = made(GRAPH, 0);
    return OK;
}
static int core_end(const void *handle, Object **graph) {
    Object *stream = known(handle, STREAM);
    if (!stream || !stream->capturing || !pthread_equal(stream->thread, pthread_self())) return wrong("a capture ends that did not begin here");
    stream->capturing = 0;
    *graph = stream->graph;
    return OK;
}
static int core_instantiate(Object **executable, const void *handle) {
    Object *graph = known(handle, GRAPH);
    if (!graph) return INVALID;
    Object *o = made(EXECUTABLE, 0);
    for (long i = 0; i < graph->queue.count; ++i) push(&o->queue, graph->queue.items[i]);
    *executable = o;
    return OK;
}
static int core_synchronize(const void *handle) {
    Object *stream = known(handle, STREAM);
    if (!stream) return INVALID;
    if (stream->capturing) return wrong("a stream that captures is waited for");
    run_until(stream, stream->queue.count);
    return OK;
}
static int core_record(const void *event, const void *handle) {
    Object *mark = known(event, EVENT), *stream = known(handle, STREAM);
    if (!mark || !stream) return INVALID;
    int code = enqueue(stream, (Work){.what = RECORD});
    mark->owner = stream, mark->position = stream->queue.count;
    return code;
}
static int core_elapsed(float *milliseconds, const void *first, const void *last) {
    Object *from = known(first, EVENT), *to = known(last, EVENT);
    if (!from || !to) return INVALID;
    if (from->size || to->size) return wrong("a time is asked of events that have none");
    if (!from->owner || from->owner != to->owner) return wrong("a time is asked between events of different streams");
    if (to->owner->queue.done < to->position) return wrong("a time is asked before the event has passed");
    *milliseconds = 0.001f * (float)(to->position - from->position); /* a microsecond for each piece of work */
    return OK;
}
static int core_wait(const void *handle, const void *event) {
    Object *mark = known(event, EVENT);
    if (!mark) return INVALID;
    return mark->owner ? enqueue(handle, (Work){.what = WAIT, .object = mark->owner, .position = mark->position}) : OK;
}
