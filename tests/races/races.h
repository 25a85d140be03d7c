/* What the calls of races_impl.h share: memory that ends with the program, numbers, and the loop that runs a kernel
 * with one thread and with several, compares every byte and counts the threads that really worked. */
#ifndef RACES_H
#define RACES_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "manifast.h"

enum { TEAM = 4, ROUNDS = 3, PATIENCE = 200 };

extern const mf_table *kernels;
extern unsigned seen; /* threads of the team that got a piece of work, as bits */
extern int failures;
int never(void);
void fail(const char *name, const char *what);

/* Zeroed memory for the whole run of the program. */
void *room(int64_t count, size_t size);

/* A number in [0, 1) that depends on `at` only. */
static inline double number(uint64_t at)
{
    at = (at + 1) * 0x9E3779B97F4A7C15u;
    at = (at ^ (at >> 30)) * 0xBF58476D1CE4E5B9u;
    at = (at ^ (at >> 27)) * 0x94D049BB133111EBu;
    return (double)((at ^ (at >> 31)) >> 11) * 0x1p-53;
}

static inline mf_run team(int threads) { return (mf_run){.n_threads = threads, .interrupted = never, .pause = 1e9}; }

/* One call: a statement that works with `run` on `threads` threads and leaves its results in `out`. It runs once alone
 * and then with a team until at least two of its threads took part, and ROUNDS times at least. */
#define RACE(name, out, bytes, ...)                                                                                 \
    do {                                                                                                            \
        size_t size_ = (size_t)(bytes);                                                                             \
        void *alone_ = room(1, size_);                                                                              \
        unsigned together_ = 0;                                                                                     \
        for (int round_ = 0; round_ <= ROUNDS || (!(together_ & (together_ - 1)) && round_ < PATIENCE); round_++) { \
            mf_run context_ = team(round_ ? TEAM : 1), *run = &context_;                                            \
            mf_status status = MF_OK;                                                                               \
            memset(out, round_ & 1, size_);                                                                         \
            __atomic_store_n(&seen, 0, __ATOMIC_RELAXED);                                                           \
            __VA_ARGS__;                                                                                            \
            if (status != MF_OK) fail(name, "did not succeed");                                                     \
            if (round_ == 0) memcpy(alone_, out, size_);                                                            \
            else if (memcmp(alone_, out, size_)) fail(name, "gave other bits with a team");                         \
            if (round_) together_ |= __atomic_load_n(&seen, __ATOMIC_RELAXED);                                      \
        }                                                                                                           \
        if (!(together_ & (together_ - 1))) fail(name, "never had two threads at work");                            \
        else printf("%-28s %d threads\n", name, __builtin_popcount(together_));                                     \
    } while (0)

#endif
