/* What all kernels share: stand-ins where OpenMP is missing, the question whether to stop (Ctrl-C), memory aligned to
 * cache lines, and a few functions of integers. Nothing here depends on a dtype. */
#ifndef MF_BASE_COMMON_H
#define MF_BASE_COMMON_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "manifast.h"

#ifdef _WIN32
#include <malloc.h>
__declspec(dllimport) void __stdcall Sleep(unsigned long milliseconds); /* windows.h makes `near` and `far` macros */
#else
#include <time.h>
#endif
#ifdef __linux__
#include <sys/mman.h>
#endif

#ifdef _OPENMP
#include <omp.h>
#else
#include <time.h>
static inline int omp_get_thread_num(void) { return 0; }
static inline int omp_get_ancestor_thread_num(int level) { return (void)level, 0; }
static inline int omp_get_num_threads(void) { return 1; }
static inline int omp_get_max_threads(void) { return 1; }
static inline int omp_in_parallel(void) { return 0; }
static inline double omp_get_wtime(void) { return (double)clock() / CLOCKS_PER_SEC; }
#endif

#define MF_JOIN2(a, b) a##_##b
#define MF_JOIN(a, b) MF_JOIN2(a, b)

#define MF_ALIGN 64

/* Sizes of blocks, chunks and lists: they change the speed, and bits only where a block is part of the order of a sum.
 * The level `small`, for tests, has tiny ones: a few rows reach the boundaries that otherwise take thousands. */
#ifdef MF_SMALL
#define MF_LIMIT(usual, small) (small)
#else
#define MF_LIMIT(usual, small) (usual)
#endif

static inline int64_t mf_min(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t mf_max(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t mf_ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
static inline int64_t mf_round_up(int64_t a, int64_t b) { return mf_ceil_div(a, b) * b; }

/* True once the call is to end. Every thread asks between pieces of work; the calling thread also asks Python. */
static inline int mf_poll(mf_run *run)
{
    int stop;
#pragma omp atomic read
    stop = run->stop;
    if (stop || !run->interrupted || omp_get_thread_num() != 0) return stop;
    if (omp_get_ancestor_thread_num(1) > 0) return 0; /* the only thread of a team that another thread has made */
    double now = omp_get_wtime();
    if (run->last_poll == 0) run->last_poll = now; /* a short call never asks: Python's lock may take long to get */
    if (now - run->last_poll <= run->pause) return 0;
    run->last_poll = now;
    if (!run->interrupted()) return 0;
#pragma omp atomic write
    run->stop = 1;
    return 1;
}

static inline void mf_stop(mf_run *run)
{
#pragma omp atomic write
    run->stop = 1;
}

/* Ends the work of all threads: one of them found no memory. */
static inline void mf_out_of_memory(int *no_memory, mf_run *run)
{
#pragma omp atomic write
    *no_memory = 1;
    mf_stop(run);
}

/* Sleeps for a millisecond: for a thread that has nothing to do but poll. */
static inline void mf_doze(void)
{
#ifdef _WIN32
    Sleep(1);
#else
    nanosleep(&(struct timespec){0, 1000000}, NULL);
#endif
}

/* Threads for a loop of about `work` multiply-adds: one where starting a team costs more than it saves. */
static inline int mf_worth_threads(int64_t work, const mf_run *run)
{
    return work < MF_LIMIT(200000, 2000) ? 1 : run->n_threads;
}

/* Memory aligned to a cache line; NULL when there is none or the size overflows. Freed by mf_release. */
static inline void *mf_alloc(int64_t count, size_t size)
{
    if (count < 0 || (uint64_t)count > (SIZE_MAX - MF_ALIGN) / size) return NULL;
    size_t bytes = (size_t)count * size;
    if (bytes == 0) bytes = 1;
#ifdef _WIN32
    return _aligned_malloc(bytes, MF_ALIGN);
#else
    void *memory;
    if (posix_memalign(&memory, MF_ALIGN, bytes)) return NULL;
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    /* As NumPy does: first touches of large memory cost a fault per 2 MB instead of one per 4 KB, where allowed. */
    if (bytes >= (size_t)1 << 22) {
        uintptr_t page = 4096, begin = ((uintptr_t)memory + page - 1) / page * page;
        madvise((void *)begin, ((uintptr_t)memory + bytes - begin) / page * page, MADV_HUGEPAGE);
    }
#endif
    return memory;
#endif
}

/* How every prepared operand begins. The rest belongs to its kernel. */
struct mf_prepared {
    void (*close)(mf_prepared *self); /* releases what the rest points to */
    int64_t bytes;                    /* that it holds */
};

static inline void mf_release(void *memory)
{
#ifdef _WIN32
    _aligned_free(memory);
#else
    free(memory);
#endif
}

#endif
