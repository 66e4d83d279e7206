/* Counts the heap allocations of an unmodified program that is started with this library preloaded.
 *
 *   cc -O2 -shared -fPIC -o allocations.so allocations.c
 *   truncate -s 16 FILE; env LD_PRELOAD=./allocations.so ALLOCATIONS=FILE PROGRAM..
 *
 * FILE always has two native 64-bit numbers: calls, and requested bytes. Works with glibc, and with programs that link
 * it dynamically and use its allocator, as Rust programs do by default.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t), *__libc_memalign(size_t, size_t);

static _Atomic uint64_t unseen[2]; /* used until the file is mapped, and without ALLOCATIONS */
static _Atomic uint64_t *counts = unseen;

__attribute__((constructor)) static void begin(void) {
    const char *name = getenv("ALLOCATIONS");
    int fd = name ? open(name, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0) return;
    void *shared = mmap(NULL, sizeof unseen, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (shared != MAP_FAILED) counts = shared;
    close(fd);
}

static void count(size_t bytes) {
    atomic_fetch_add_explicit(&counts[0], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&counts[1], bytes, memory_order_relaxed);
}

void *malloc(size_t size) { count(size); return __libc_malloc(size); }
void *calloc(size_t n, size_t size) { count(n * size); return __libc_calloc(n, size); }
void *realloc(void *old, size_t size) { count(size); return __libc_realloc(old, size); }
void *memalign(size_t align, size_t size) { count(size); return __libc_memalign(align, size); }
void *aligned_alloc(size_t align, size_t size) { count(size); return __libc_memalign(align, size); }
int posix_memalign(void **out, size_t align, size_t size) {
    count(size);
    void *got = __libc_memalign(align, size);
    if (!got) return ENOMEM;
    *out = got;
    return 0;
}
