/* Which instruction set runs here, and what this library was built with. */
#include <string.h>
#include "base/common.h"

extern const mf_table mf_table_baseline;
#ifdef MF_BUILD_AVX2
#include <cpuid.h>
extern const mf_table mf_table_avx2;

/* AVX2 and FMA in the processor, and an operating system that saves the wide registers (bits 1 and 2 of XCR0).
 * By hand: __builtin_cpu_supports needs a runtime library that clang-cl does not link. */
static int has_avx2(void)
{
    const unsigned needed = bit_FMA | bit_AVX | bit_OSXSAVE;
    unsigned a, b, c, d, saved;
    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & needed) != needed) return 0;
    __asm__ volatile("xgetbv" : "=a"(saved), "=d"(d) : "c"(0));
    return (saved & 6) == 6 && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_AVX2);
}
#endif

static const char *const levels[] = {
#ifdef MF_BUILD_AVX2
    "avx2",
#endif
    "baseline", NULL};

const char *const *mf_levels(void) { return levels; }

const mf_table *mf_find_table(const char *level)
{
#ifdef MF_BUILD_AVX2
    if (strcmp(level, "avx2") == 0) return has_avx2() ? &mf_table_avx2 : NULL;
#endif
    return strcmp(level, "baseline") == 0 ? &mf_table_baseline : NULL;
}

const mf_table *mf_best_table(void)
{
    for (const char *const *level = levels; *level; level++) {
        const mf_table *table = mf_find_table(*level);
        if (table) return table;
    }
    return &mf_table_baseline;
}

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
