/* What runs under the emulator: maps the memory that it shares with the test, then calls what it is told to call.
 *
 * Arguments: a file descriptor, the address and the size of the memory. Each message on standard input is a function and
 * its argument, 8 bytes each; the answer is 8 bytes. Freestanding, so that nothing needs to be built for the target first.
 */
#include <stdint.h>

enum { READ = 63, WRITE = 64, EXIT = 93, MMAP = 222 };
enum { READ_WRITE_EXECUTE = 7, SHARED_FIXED = 0x11 };

static int64_t system_call(int64_t number, int64_t a, int64_t b, int64_t c, int64_t d, int64_t e, int64_t f) {
    register int64_t x8 __asm__("x8") = number;
    register int64_t x0 __asm__("x0") = a;
    register int64_t x1 __asm__("x1") = b;
    register int64_t x2 __asm__("x2") = c;
    register int64_t x3 __asm__("x3") = d;
    register int64_t x4 __asm__("x4") = e;
    register int64_t x5 __asm__("x5") = f;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return x0;
}

static int64_t number(const char *text) {
    int64_t value = 0;
    while (*text) value = 10 * value + *text++ - '0';
    return value;
}

__attribute__((used)) static void serve(int64_t *stack) {
    const char **arguments = (const char **)(stack + 1);
    int64_t file = number(arguments[1]), address = number(arguments[2]), size = number(arguments[3]);
    int64_t message[2] = {0, 0};
    if (system_call(MMAP, address, size, READ_WRITE_EXECUTE, SHARED_FIXED, file, 0) != address)
        system_call(EXIT, 2, 0, 0, 0, 0, 0);
    while (system_call(READ, 0, (int64_t)message, sizeof message, 0, 0, 0) == sizeof message) {
        ((void (*)(int64_t))message[0])(message[1]);
        system_call(WRITE, 1, (int64_t)message, 8, 0, 0, 0);
    }
    system_call(EXIT, 0, 0, 0, 0, 0, 0);
}

__asm__(".globl _start\n_start:\n  mov x0, sp\n  and sp, x0, #-16\n  bl serve\n");
