/* Any float32 angle as n pi/2 + r, without a branch: for loops over scalars, which then become vector code.
 *
 * x = m 2^k with |m| < 2^24, k >= 0; m is whole where k is above 0, so of 2^k 2/pi only what is left modulo 4 counts. Row k
 * has that in two numbers, the first of 29 bits, so that its product with m is exact.
 */
static const float64 TURNS[][2] = {
    {0x1.45f306dp-1, 0x1.9391054a7f09dp-30}, {0x1.45f306cp+0, 0x1.c9c882a53f84fp-28}, {0x1.45f306dp+1, 0x1.9391054a7f09dp-28},
    {0x1.17cc1b6p+0, 0x1.27220a94fe13bp-28}, {0x1.17cc1b7p+1, 0x1.391054a7f09d6p-30}, {0x1.7cc1b7p-2, 0x1.391054a7f09d6p-29},
    {0x1.7cc1b7p-1, 0x1.391054a7f09d6p-28}, {0x1.7cc1b72p+0, 0x1.c882a53f84ebp-30}, {0x1.7cc1b72p+1, 0x1.c882a53f84ebp-29},
    {0x1.f306dc8p+0, 0x1.c882a53f84ebp-28}, {0x1.f306dc9p+1, 0x1.91054a7f09d5fp-28}, {0x1.e60db93p+1, 0x1.220a94fe13abfp-28},
    {0x1.cc1b727p+1, 0x1.1054a7f09d5f4p-30}, {0x1.9836e4ep+1, 0x1.1054a7f09d5f4p-29}, {0x1.306dc9cp+1, 0x1.1054a7f09d5f4p-28},
    {0x1.836e4e4p-1, 0x1.054a7f09d5f48p-31}, {0x1.836e4e4p+0, 0x1.054a7f09d5f48p-30}, {0x1.836e4e4p+1, 0x1.054a7f09d5f48p-29},
    {0x1.06dc9c8p+1, 0x1.054a7f09d5f48p-28}, {0x1.b72722p-4, 0x1.529fc2757d1f5p-33}, {0x1.b72722p-3, 0x1.529fc2757d1f5p-32},
    {0x1.b72722p-2, 0x1.529fc2757d1f5p-31}, {0x1.b72722p-1, 0x1.529fc2757d1f5p-30}, {0x1.b72722p+0, 0x1.529fc2757d1f5p-29},
    {0x1.b72722p+1, 0x1.529fc2757d1f5p-28}, {0x1.6e4e441p+1, 0x1.4a7f09d5f47d5p-29}, {0x1.b939104p+0, 0x1.4a7f09d5f47d5p-28},
    {0x1.b939105p+1, 0x1.29fc2757d1f53p-29}, {0x1.727220ap+1, 0x1.29fc2757d1f53p-28}, {0x1.c9c882ap+0, 0x1.4fe13abe8fa9ap-30},
    {0x1.c9c882ap+1, 0x1.4fe13abe8fa9ap-29}, {0x1.9391054p+1, 0x1.4fe13abe8fa9ap-28}, {0x1.27220a9p+1, 0x1.3f84eafa3ea6ap-29},
    {0x1.3910548p-1, 0x1.3f84eafa3ea6ap-28}, {0x1.391054ap+0, 0x1.fc2757d1f534ep-30}, {0x1.391054ap+1, 0x1.fc2757d1f534ep-29},
    {0x1.c882a5p-1, 0x1.fc2757d1f534ep-28}, {0x1.c882a52p+0, 0x1.f84eafa3ea69cp-28}, {0x1.c882a53p+1, 0x1.f09d5f47d4d37p-28},
    {0x1.91054a7p+1, 0x1.e13abe8fa9a6fp-28}, {0x1.220a94fp+1, 0x1.c2757d1f534dep-28}, {0x1.1054a7cp-1, 0x1.84eafa3ea69bcp-28},
    {0x1.1054a7ep+0, 0x1.09d5f47d4d377p-28}, {0x1.1054a7fp+1, 0x1.3abe8fa9a6eep-32}, {0x1.054a7fp-2, 0x1.3abe8fa9a6eep-31},
    {0x1.054a7fp-1, 0x1.3abe8fa9a6eep-30}, {0x1.054a7fp+0, 0x1.3abe8fa9a6eep-29}, {0x1.054a7fp+1, 0x1.3abe8fa9a6eep-28},
    {0x1.529fc2p-4, 0x1.d5f47d4d37703p-30}, {0x1.529fc2p-3, 0x1.d5f47d4d37703p-29}, {0x1.529fc2p-2, 0x1.d5f47d4d37703p-28},
    {0x1.529fc24p-1, 0x1.abe8fa9a6ee07p-28}, {0x1.529fc26p+0, 0x1.57d1f534ddc0ep-28}, {0x1.529fc27p+1, 0x1.5f47d4d377037p-29},
    {0x1.4a7f09cp+0, 0x1.5f47d4d377037p-28}, {0x1.4a7f09dp+1, 0x1.7d1f534ddc0dbp-29}, {0x1.29fc274p+0, 0x1.7d1f534ddc0dbp-28},
    {0x1.29fc275p+1, 0x1.f47d4d377036ep-29}, {0x1.4fe13a8p-1, 0x1.f47d4d377036ep-28}, {0x1.4fe13aap+0, 0x1.e8fa9a6ee06dbp-28},
    {0x1.4fe13abp+1, 0x1.d1f534ddc0db6p-28}, {0x1.3f84eaep+0, 0x1.a3ea69bb81b6cp-28}, {0x1.3f84eafp+1, 0x1.47d4d377036d9p-28},
    {0x1.fc2757cp-1, 0x1.1f534ddc0db63p-29}, {0x1.fc2757cp+0, 0x1.1f534ddc0db63p-28}, {0x1.fc2757dp+1, 0x1.f534ddc0db629p-31},
    {0x1.f84eafap+1, 0x1.f534ddc0db629p-30}, {0x1.f09d5f4p+1, 0x1.f534ddc0db629p-29}, {0x1.e13abe8p+1, 0x1.f534ddc0db629p-28},
    {0x1.c2757d1p+1, 0x1.ea69bb81b6c53p-28}, {0x1.84eafa3p+1, 0x1.d4d377036d8a5p-28}, {0x1.09d5f47p+1, 0x1.a9a6ee06db14bp-28},
    {0x1.3abe8fp-3, 0x1.534ddc0db6296p-28}, {0x1.3abe8f8p-2, 0x1.4d377036d8a56p-29}, {0x1.3abe8f8p-1, 0x1.4d377036d8a56p-28},
    {0x1.3abe8fap+0, 0x1.34ddc0db6295ap-29}, {0x1.3abe8fap+1, 0x1.34ddc0db6295ap-28}, {0x1.d5f47d4p-1, 0x1.a6ee06db14acdp-30},
    {0x1.d5f47d4p+0, 0x1.a6ee06db14acdp-29}, {0x1.d5f47d4p+1, 0x1.a6ee06db14acdp-28}, {0x1.abe8fa9p+1, 0x1.4ddc0db629599p-28},
    {0x1.57d1f53p+1, 0x1.377036d8a5665p-29}, {0x1.5f47d4cp+0, 0x1.377036d8a5665p-28}, {0x1.5f47d4dp+1, 0x1.bb81b6c52b328p-30},
    {0x1.7d1f534p+0, 0x1.bb81b6c52b328p-29}, {0x1.7d1f534p+1, 0x1.bb81b6c52b328p-28}, {0x1.f47d4d2p+0, 0x1.77036d8a5664fp-28},
    {0x1.f47d4d3p+1, 0x1.dc0db6295993cp-29}, {0x1.e8fa9a6p+1, 0x1.dc0db6295993cp-28}, {0x1.d1f534dp+1, 0x1.b81b6c52b3279p-28},
    {0x1.a3ea69bp+1, 0x1.7036d8a5664f1p-28}, {0x1.47d4d37p+1, 0x1.c0db6295993c4p-29}, {0x1.1f534dcp+0, 0x1.c0db6295993c4p-28},
    {0x1.1f534ddp+1, 0x1.81b6c52b32788p-28}, {0x1.f534dd8p-2, 0x1.036d8a5664f11p-28}, {0x1.f534ddcp-1, 0x1.b6c52b3278872p-34},
    {0x1.f534ddcp+0, 0x1.b6c52b3278872p-33}, {0x1.f534ddcp+1, 0x1.b6c52b3278872p-32}, {0x1.ea69bb8p+1, 0x1.b6c52b3278872p-31},
    {0x1.d4d377p+1, 0x1.b6c52b3278872p-30}, {0x1.a9a6eep+1, 0x1.b6c52b3278872p-29}, {0x1.534ddcp+1, 0x1.b6c52b3278872p-28},
    {0x1.4d37702p+0, 0x1.6d8a5664f10e4p-28}, {0x1.4d37703p+1, 0x1.b6295993c439p-29}, {0x1.34ddc0cp+0, 0x1.b6295993c439p-28},
    {0x1.34ddc0dp+1, 0x1.6c52b32788721p-28},
};

INLINE pair_float32 reduce_any_angle(float32 x, int32 *n) {
    int32 bits = as_int(x), power = (bits >> 23 & 0xff) - 150;
    int32 k = power > 0 ? power : 0;
    float64 m = widen(as_float(bits - (k << 23)));
    float64 turns = m * TURNS[k][0];
    float64 shifted = muladd(m, TURNS[k][1], turns) + 0x1.8p52;
    float64 fraction = muladd(m, TURNS[k][1], turns - (shifted - 0x1.8p52));
    float64 r = fraction * 0x1.921fb54442d18p+0;
    float32 hi = narrow(r);
    *n = low_half(as_int(shifted));
    return (pair_float32){hi + (x - x), narrow(r - widen(hi))}; /* x - x is NaN where x is not finite */
}
