/* Selection and sorting for one type of item. Linear time to select for all but contrived input, masses of equal items
 * included, and never worse than a heap sort.
 * Template. Needs: base/common.h, and ITEM, the type; BEFORE(a, b), the order; ORDER(x), the name of function x. */

static inline void ORDER(insertion_sort)(ITEM *a, int64_t n)
{
    for (int64_t i = 1; i < n; i++) {
        ITEM moving = a[i];
        int64_t j = i;
        for (; j > 0 && BEFORE(moving, a[j - 1]); j--) a[j] = a[j - 1];
        a[j] = moving;
    }
}

static inline void ORDER(sift_down)(ITEM *heap, int64_t n, int64_t at)
{
    ITEM moving = heap[at];
    for (int64_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && BEFORE(heap[child], heap[child + 1])) child++;
        if (!BEFORE(moving, heap[child])) break;
        heap[at] = heap[child];
    }
    heap[at] = moving;
}

static inline void ORDER(heap_sort)(ITEM *a, int64_t n)
{
    for (int64_t i = n / 2 - 1; i >= 0; i--) ORDER(sift_down)(a, n, i);
    for (int64_t i = n - 1; i > 0; i--) {
        ITEM top = a[0];
        a[0] = a[i], a[i] = top;
        ORDER(sift_down)(a, i, 0);
    }
}

/* A pivot for [lo, hi): from an evenly spread sample, a little beyond `rank` on its far side, so that most of the
 * time the next range is the small one (Floyd and Rivest, CACM 18(3), 1975). */
static inline ITEM ORDER(pivot)(const ITEM *a, int64_t lo, int64_t hi, int64_t rank)
{
    enum { LARGEST = 64 };
    ITEM sample[LARGEST];
    int64_t length = hi - lo, size = length < 512 ? 5 : length < 8192 ? 16 : LARGEST;
    int64_t margin = size < 16 ? 0 : size / 16 + 1, at = (int64_t)((double)size * (double)(rank - lo) / (double)length);
    for (int64_t s = 0; s < size; s++) sample[s] = a[lo + length * (2 * s + 1) / (2 * size)];
    ORDER(insertion_sort)(sample, size);
    at += rank - lo < length / 2 ? margin : -margin;
    return sample[mf_max(0, mf_min(at, size - 1))];
}

/* Rearranges so that a[rank] is what sorting would put there, with nothing greater before and nothing less after. */
static inline void ORDER(select)(ITEM *a, int64_t n, int64_t rank)
{
    enum { SMALL = MF_LIMIT(24, 5) };
    int64_t lo = 0, hi = n, work = 0;
    while (hi - lo > SMALL) {
        work += hi - lo;
        if (work > 16 * n) {
            ORDER(heap_sort)(a + lo, hi - lo);
            return;
        }
        ITEM pivot = ORDER(pivot)(a, lo, hi, rank);
        int64_t middle = lo;
        for (int64_t i = lo; i < hi; i++) { /* no branch depends on a comparison */
            ITEM moving = a[i];
            a[i] = a[middle];
            a[middle] = moving;
            middle += BEFORE(moving, pivot);
        }
        if (rank < middle) {
            hi = middle;
            continue;
        }
        /* Hardly anything precedes the pivot: it may be the least, or one of many equals. Step over those. */
        if (middle - lo < (hi - lo) / 8) {
            int64_t upper = middle;
            for (int64_t i = middle; i < hi; i++) {
                ITEM moving = a[i];
                a[i] = a[upper];
                a[upper] = moving;
                upper += !BEFORE(pivot, moving);
            }
            if (rank < upper) return;
            middle = upper;
        }
        lo = middle;
    }
    ORDER(insertion_sort)(a + lo, hi - lo);
}

/* Halves by selection: the recursion is log2(n) deep whatever the input. */
static inline void ORDER(sort)(ITEM *a, int64_t n)
{
    enum { SMALL = MF_LIMIT(24, 5) };
    while (n > SMALL) {
        ORDER(select)(a, n, n / 2);
        ORDER(sort)(a, n / 2);
        a += n / 2, n -= n / 2;
    }
    ORDER(insertion_sort)(a, n);
}
