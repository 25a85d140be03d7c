/* Every kernel with a team of threads under ThreadSanitizer, on tiny data: the level `small` cuts them into pieces.
 * Ends with 0 where all results have the bits of one thread, at least two threads took part in every kernel, and the
 * sanitizer saw no race. `races planted` has a race on purpose: the sanitizer must find it. */
#include <omp.h>
#include <time.h>
#include "races.h"

extern const mf_table mf_table_small;
const mf_table *kernels = &mf_table_small;
unsigned seen;
int failures;

int never(void) { return 0; }

void fail(const char *name, const char *what)
{
    fprintf(stderr, "%s %s\n", name, what);
    failures++;
}

void *room(int64_t count, size_t size)
{
    void *memory = calloc((size_t)count + 1, size);
    if (!memory) abort();
    return memory;
}

/* Where the calling thread has got a piece of a loop. As long as it is the only one it lets others take the next. */
static void worked(void)
{
    unsigned all = __atomic_or_fetch(&seen, 1u << omp_get_thread_num(), __ATOMIC_RELAXED);
    if (omp_get_num_threads() > 1 && !(all & (all - 1))) nanosleep(&(struct timespec){0, 50000}, NULL);
}

typedef int32_t I4;
typedef int64_t I8;
typedef uint64_t I8u;

/* What clang makes of `omp for`, schedules static and dynamic: the linker (--wrap) puts these in between. */
#define WRAP(BITS)                                                                                              \
    void __real___kmpc_for_static_init_##BITS(void *, int32_t, int32_t, int32_t *, I##BITS *,                   \
                                              I##BITS *, I##BITS *, I##BITS, I##BITS);                          \
    void __wrap___kmpc_for_static_init_##BITS(void *place, int32_t thread, int32_t schedule, int32_t *last,     \
                                              I##BITS *lower, I##BITS *upper, I##BITS *stride,                  \
                                              I##BITS step, I##BITS chunk)                                      \
    {                                                                                                           \
        I##BITS end = *upper;                                                                                   \
        __real___kmpc_for_static_init_##BITS(place, thread, schedule, last, lower, upper, stride, step, chunk); \
        if (*lower <= *upper && *lower <= end) worked();                                                        \
    }                                                                                                           \
    int __real___kmpc_dispatch_next_##BITS(void *, int32_t, int32_t *, I##BITS *, I##BITS *,                    \
                                           I##BITS *);                                                          \
    int __wrap___kmpc_dispatch_next_##BITS(void *place, int32_t thread, int32_t *last, I##BITS *lower,          \
                                           I##BITS *upper, I##BITS *stride)                                     \
    {                                                                                                           \
        int got = __real___kmpc_dispatch_next_##BITS(place, thread, last, lower, upper, stride);                \
        if (got) worked();                                                                                      \
        return got;                                                                                             \
    }

WRAP(4)
WRAP(8)
WRAP(8u)

void mf_prepared_free(mf_prepared *operand) /* as in dispatch.c, which is for several levels */
{
    if (!operand) return;
    (*(void (**)(mf_prepared *))operand)(operand);
    free(operand);
}

#define REAL float
#define NAME(x) x##_f32
#define TITLE(x) x ", float32"
#include "races_impl.h"
#undef REAL
#undef NAME
#undef TITLE
#define REAL double
#define NAME(x) x##_f64
#define TITLE(x) x ", float64"
#include "races_impl.h"

/* The five-point graph of a square: shortest paths, Cholesky, hierarchy and blocks of vectors are for doubles alone. */
static void sparse(void)
{
    enum { SIDE = 18, N = SIDE * SIDE, SOURCES = 40, WIDTH = 8 };
    int64_t start[N + 1] = {0}, with_diagonal[N + 1] = {0}, sources[SOURCES], at = 0, filled = 0;
    int32_t column[4 * N], pattern[5 * N];
    double weight[4 * N], matrix[5 * N], *out = room(SOURCES * N, 8), *x = room(N * WIDTH, 8), scale[WIDTH];
    for (int i = 0; i < N; i++) {
        int u = i % SIDE, v = i / SIDE, near[5] = {v ? i - SIDE : -1, u ? i - 1 : -1, i, u < SIDE - 1 ? i + 1 : -1,
                                                   v < SIDE - 1 ? i + SIDE : -1};
        for (int e = 0; e < 5; e++) {
            if (near[e] < 0) continue;
            double w = near[e] == i ? 5 : 1 + number((uint64_t)(near[e] < i ? near[e] * N + i : i * N + near[e]));
            pattern[filled] = near[e], matrix[filled++] = near[e] == i ? 9 : -w;
            if (near[e] != i) column[at] = near[e], weight[at++] = w;
        }
        start[i + 1] = at, with_diagonal[i + 1] = filled;
    }
    for (int i = 0; i < N * WIDTH; i++) x[i] = number((uint64_t)i) - 0.5;
    for (int i = 0; i < SOURCES; i++) sources[i] = i * 3 % N;
    for (int i = 0; i < WIDTH; i++) scale[i] = 1;
    RACE("shortest_paths", out, SOURCES * N * 8,
         status = kernels->shortest_paths(N, start, column, weight, sources, SOURCES, out, run));
    RACE("cholesky", out, N * WIDTH * 8, {
        mf_cholesky *made = NULL;
        int64_t entries, bad = -1;
        double flops;
        int feasible = 0, flaws = 0;
        status = kernels->cholesky_analyse(N, filled, with_diagonal, pattern, 1e12, &made, &entries, &flops, &feasible,
                                           &flaws, run);
        if (status == MF_OK && feasible) status = kernels->cholesky_factor(made, matrix, 0.5, NULL, &bad, run);
        if (status == MF_OK) status = kernels->cholesky_solve(made, x, WIDTH, out, run);
        if (bad >= 0 || !feasible) fail("cholesky", "refused a positive definite matrix");
        kernels->cholesky_free(made);
    });
    RACE("multilevel", out, 4 * N * WIDTH * 8, {
        mf_multilevel *made = NULL;
        int64_t reached = 0;
        status = kernels->multilevel_begin(N, start, column, weight, &made, &reached, run);
        if (status == MF_OK) status = kernels->multilevel_product(made, 0, x, WIDTH, out, run);
        if (status == MF_OK)
            status = kernels->multilevel_precondition_f32(made, 0, x, WIDTH, scale, out + N * WIDTH, run);
        if (status == MF_OK)
            status = kernels->multilevel_precondition_f64(made, 0, x, WIDTH, scale, out + 2 * N * WIDTH, run);
        if (status == MF_OK) status = kernels->multilevel_prolong(made, 0, x, WIDTH, out + 3 * N * WIDTH, run);
        kernels->multilevel_free(made);
    });
    const double *parts[] = {x, x};
    int64_t widths[] = {WIDTH, WIDTH};
    double *mass = room(N, 8), *coef = room(2 * WIDTH * WIDTH, 8), *squares = room(WIDTH, 8);
    double *made = room(N * WIDTH, 8);
    for (int i = 0; i < N; i++) mass[i] = 1 + number((uint64_t)i);
    for (int i = 0; i < 2 * WIDTH * WIDTH; i++) coef[i] = number((uint64_t)i);
    RACE("tall_gram", out, 4 * WIDTH * WIDTH * 8,
         status = kernels->tall_gram(N, parts, widths, 2, x, x, WIDTH, mass, out, run));
    RACE("tall_update", out, N * WIDTH * 8,
         status = kernels->tall_update(N, parts, widths, 2, coef, &out, widths, 1, run));
    RACE("tall_residual", out, N * WIDTH * 8,
         status = kernels->tall_residual(N, x, x, WIDTH, mass, scale, out, squares, run));
    RACE("tall_center", made, N * WIDTH * 8, {
        memcpy(made, x, N * WIDTH * 8);
        status = kernels->tall_center(N, made, WIDTH, mass, run);
    });
}

static int planted(void)
{
    int64_t sum = 0;
#pragma omp parallel for num_threads(TEAM) schedule(static, 1)
    for (int i = 0; i < 1000; i++) sum += i; /* shared, not reduced */
    return printf("%lld\n", (long long)sum) < 0;
}

int main(int count, char **words)
{
    if (count > 1 && !strcmp(words[1], "planted")) return planted();
    all_f32();
    all_f64();
    sparse();
    return failures > 0;
}
