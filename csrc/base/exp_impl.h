/* exp(x) for x <= 0, lane by lane: x = n ln2 + r, a polynomial in r, and 2^n in two factors, so that results become
 * subnormal and then 0 as x falls. Computed in the dtype; the polynomial's relative error is 1.3e-17 for double and
 * 7.8e-9 for float, well below an ulp.
 * Template. Needs: base/dtype_impl.h. */

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
