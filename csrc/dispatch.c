/* Which instruction set runs here, and what this library was built with. */
#include <string.h>
#include "base/common.h"

extern const mf_table mf_table_baseline;
#ifdef MF_BUILD_WIDE
extern const mf_table mf_table_wide;
#endif
#ifdef MF_BUILD_SMALL
extern const mf_table mf_table_small;
#endif

#ifdef MF_BUILD_X86
#include <cpuid.h>
extern const mf_table mf_table_avx2, mf_table_avx512;

/* What the operating system saves of the wide registers: XCR0, or 0 where there is no way to ask. By hand:
 * __builtin_cpu_supports needs a runtime library that clang-cl does not link. */
static unsigned saved_registers(void)
{
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE)) return 0;
    __asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
    return a;
}

static const char *why_not(unsigned features, unsigned registers)
{
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_FMA) || !(c & bit_AVX) ||
        !__get_cpuid_count(7, 0, &a, &b, &c, &d) || (b & features) != features)
        return "the processor lacks it";
    return (saved_registers() & registers) == registers ? NULL : "the operating system does not save its registers";
}

static const char *why_not_avx2(void) { return why_not(bit_AVX2, 0x06); } /* bits of XCR0: SSE, AVX */

static const char *why_not_avx512(void) /* and the masks, and both halves of the 512-bit registers */
{
    return why_not(bit_AVX2 | bit_AVX512F | bit_AVX512DQ | bit_AVX512BW | bit_AVX512VL, 0xe6);
}
#endif

static const char *runs_anywhere(void) { return NULL; }

/* Best first. `wide` and `small` are for tests: they come after what runs everywhere, so nobody gets them unasked. */
static const struct {
    const char *name;
    const mf_table *table;
    const char *(*why_not)(void);
} levels[] = {
#ifdef MF_BUILD_X86
    {"avx512", &mf_table_avx512, why_not_avx512},
    {"avx2", &mf_table_avx2, why_not_avx2},
#endif
    {"baseline", &mf_table_baseline, runs_anywhere},
#ifdef MF_BUILD_WIDE
    {"wide", &mf_table_wide, runs_anywhere},
#endif
#ifdef MF_BUILD_SMALL
    {"small", &mf_table_small, runs_anywhere},
#endif
};
enum { LEVELS = sizeof(levels) / sizeof(levels[0]) };

const char *mf_level_name(int level) { return level < LEVELS ? levels[level].name : NULL; }
const char *mf_level_why_not(int level) { return levels[level].why_not(); }

const mf_table *mf_find_table(const char *name)
{
    for (int level = 0; level < LEVELS; level++)
        if (strcmp(levels[level].name, name) == 0) return levels[level].why_not() ? NULL : levels[level].table;
    return NULL;
}

const mf_table *mf_best_table(void)
{
    int level = 0;
    while (levels[level].why_not()) level++; /* the baseline runs anywhere */
    return levels[level].table;
}

void mf_prepared_free(mf_prepared *operand)
{
    if (!operand) return;
    operand->close(operand);
    mf_release(operand);
}

int64_t mf_prepared_bytes(const mf_prepared *operand) { return operand->bytes; }

int mf_openmp_version(void)
{
#ifdef _OPENMP
    return _OPENMP;
#else
    return 0;
#endif
}

int mf_max_threads(void) { return omp_in_parallel() ? 1 : omp_get_max_threads(); }

const char *mf_compiler(void)
{
#if defined(__clang__)
    return "clang " __clang_version__;
#else
    return "gcc " __VERSION__;
#endif
}

const char *mf_version(void) { return MF_VERSION; }
