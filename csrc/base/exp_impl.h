/* exp(x) for x <= 0, lane by lane, in the dtype; results become subnormal and then 0 as x falls.
 * Vectors of up to 32 bytes: x = n ln2 + r, a polynomial in r, and 2^n in two factors. The polynomial's relative error
 * is 1.3e-17 for double and 7.8e-9 for float, well below an ulp.
 * Vectors of 64 bytes hold a table of 2^(j / 16): x = (n + j / 16) ln2 + r with an r so small that half of the terms
 * are enough. Their relative error is 1.2e-17 and 1.6e-9; the rounding of the table counts too, and the result is
 * within 1.1 ulp.
 * Template. Needs: base/dtype_impl.h. */

#if MF_VBYTES == 64
static const REAL NAME(powers)[16] __attribute__((aligned(64))) = {
    (REAL)0x1.0000000000000p+0, (REAL)0x1.0b5586cf9890fp+0, (REAL)0x1.172b83c7d517bp+0, (REAL)0x1.2387a6e756238p+0,
    (REAL)0x1.306fe0a31b715p+0, (REAL)0x1.3dea64c123422p+0, (REAL)0x1.4bfdad5362a27p+0, (REAL)0x1.5ab07dd485429p+0,
    (REAL)0x1.6a09e667f3bcdp+0, (REAL)0x1.7a11473eb0187p+0, (REAL)0x1.8ace5422aa0dbp+0, (REAL)0x1.9c49182a3f090p+0,
    (REAL)0x1.ae89f995ad3adp+0, (REAL)0x1.c199bdd85529cp+0, (REAL)0x1.d5818dcfba487p+0, (REAL)0x1.ea4afa2a490dap+0};

MF_INLINE V NAME(exp)(V x)
{
#if MF_F32
    const REAL lowest = -120.0f, magic = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer */
    /* ln2 / 16 in two parts, the first so short that its products are exact */
    const REAL step_hi = 0x1.62e000p-5f, step_lo = 0x1.0bfbe8p-19f;
    static const REAL poly[] = {0.16666719f, 0.50001616f};
#else
    const REAL lowest = -800.0, magic = 6755399441055744.0; /* 1.5 * 2^52 */
    const REAL step_hi = 0x1.62e42fefa0000p-5, step_lo = 0x1.cf79abc9e3b3ap-44;
    static const REAL poly[] = {0.001388859406635611282, 0.00833347192078474175788, 0.0416666666932499169124,
                                0.166666666644179699168, 0.4999999999999960436382};
#endif
    x = VOP(max)(x, VOP(set)(lowest));
    V shifted = VOP(fma)(x, VOP(set)((REAL)0x1.71547652b82fep+4), VOP(set)(magic)); /* 16 / ln2 */
    V whole = shifted - magic;
    V r = VOP(fma)(whole, VOP(set)(-step_hi), x);
    r = VOP(fma)(whole, VOP(set)(-step_lo), r);
    V q = VOP(set)(poly[0]);
    for (size_t i = 1; i < sizeof(poly) / sizeof(poly[0]); i++) q = VOP(fma)(q, r, VOP(set)(poly[i]));
    V power = VOP(lookup)(NAME(powers), (VOP(mask))shifted);
    return VOP(scale)(VOP(fma)(power, VOP(fma)(q * r, r, r), power), whole * (REAL)0.0625);
}
#else
MF_INLINE V NAME(exp)(V x)
{
#if MF_F32
    const REAL lowest = -120.0f, magic = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer */
    const REAL ln2_hi = 0x1.62e400p-1f, ln2_lo = 0x1.7f7d1cp-20f, log2e = 0x1.715476p+0f;
    static const REAL poly[] = {0.00139261835877f, 0.00836317905272f, 0.0416665546172f, 0.166665769897f, 0.5f};
    enum { bits = 23, bias = 127 };
#else
    const REAL lowest = -800.0, magic = 6755399441055744.0; /* 1.5 * 2^52 */
    const REAL ln2_hi = 0x1.62e42fefa0000p-1, ln2_lo = 0x1.cf79abc9e3b39p-40, log2e = 0x1.71547652b82fep+0;
    static const REAL poly[] = {2.5100385495510319078e-8, 2.7620088445409748161e-7, 2.7557268459997064772e-6,
                                0.000024801521295954375131, 0.00019841269863053616878, 0.0013888888917213716901,
                                0.0083333333333300618325, 0.041666666666624127873, 0.16666666666666667453,
                                0.50000000000000010221};
    enum { bits = 52, bias = 1023 };
#endif
    x = VOP(max)(x, VOP(set)(lowest));
    V shifted = VOP(fma)(x, VOP(set)(log2e), VOP(set)(magic));
    VOP(mask) n = (VOP(mask))shifted - (VOP(mask))VOP(set)(magic);
    V whole = shifted - magic;
    V r = VOP(fma)(whole, VOP(set)(-ln2_hi), x);
    r = VOP(fma)(whole, VOP(set)(-ln2_lo), r);
    V q = VOP(set)(poly[0]);
    for (size_t i = 1; i < sizeof(poly) / sizeof(poly[0]); i++) q = VOP(fma)(q, r, VOP(set)(poly[i]));
    q = VOP(fma)(q * r, r, r) + 1;
    VOP(mask) half = n >> 1;
    V low = (V)((half + bias) << bits), high = (V)((n - half + bias) << bits);
    return q * low * high;
}
#endif
