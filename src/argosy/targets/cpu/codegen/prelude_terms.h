/* Coefficients of the float64 functions, the constant term first.
 *
 * Minimax polynomials by Remez' exchange in 50 digits, rounded to float64; the error that remains, weighted with the
 * term's share of the result, is stated in powers of two.
 */

/* (exp(r) - 1 - r) / r^2 on |r| <= 0.35; 2^-61 */
static const float64 EXP_TERMS[] = {
    0x1.0000000000000p-1, 0x1.5555555555557p-3, 0x1.5555555555558p-5, 0x1.111111110ff87p-7,
    0x1.6c16c16c14fdbp-10, 0x1.a01a01aca0237p-13, 0x1.a01a01adc35cbp-16, 0x1.71ddffef5f645p-19,
    0x1.27e4caecb7ee5p-22, 0x1.af5290f0a9869p-26, 0x1.1f8e737f73dcep-29,
};
/* ((log(1 + s) - log(1 - s)) / s - 2) / s^2 in z = s^2 <= 0.0296; 2^-61 */
static const float64 LOG_TERMS[] = {
    0x1.5555555555555p-1, 0x1.9999999999c46p-2, 0x1.2492492446ab5p-2, 0x1.c71c723e67d04p-3,
    0x1.745ce53a7b9b9p-3, 0x1.3b1fa3abf1d67p-3, 0x1.0f710aaf9a981p-3, 0x1.0ec0db2c62429p-3,
};
/* ((atanh(s) / s - 1) / s^2 - 1/3) / s^2 in z = s^2 <= 0.0296; 2^-67 */
static const float64 LOG_TAIL_TERMS[] = {
    0x1.999999999999ap-3, 0x1.249249249252ap-3, 0x1.c71c71c6e8388p-4, 0x1.745d177c9814fp-4,
    0x1.3b13950431cccp-4, 0x1.1118f24b77bb0p-4, 0x1.df74222474b97p-5, 0x1.e0870909b84b3p-5,
};
/* (sin(r) / r - 1) / r^2 in z = r^2, |r| <= 0.794; 2^-62 */
static const float64 SIN_TERMS[] = {
    -0x1.5555555555555p-3, 0x1.1111111111059p-7, -0x1.a01a019ffa6a8p-13, 0x1.71de3a2e26868p-19,
    -0x1.ae64252b43444p-26, 0x1.61055e6ae1e0ep-33, -0x1.9df53443c4ccdp-41,
};
/* (cos(r) - 1 + r^2 / 2) / r^4 in z = r^2, |r| <= 0.794; 2^-59 */
static const float64 COS_TERMS[] = {
    0x1.5555555555555p-5, -0x1.6c16c16c165b1p-10, 0x1.a01a019ea4d7bp-16, -0x1.27e4f967abc06p-22,
    0x1.1eead01bbf5fbp-29, -0x1.901f59ffe2562p-37,
};
/* (atan(t) / t - 1) / t^2 in z = t^2 <= 0.25; 2^-58 */
static const float64 ATAN_TERMS[] = {
    -0x1.5555555555555p-2, 0x1.9999999999674p-3, -0x1.2492492472ddcp-3, 0x1.c71c71b60e89cp-4,
    -0x1.745d14b7e7f09p-4, 0x1.3b137478c563ep-4, -0x1.110d536643582p-4, 0x1.e190b043f8636p-5,
    -0x1.acbd37c1dff3ep-5, 0x1.790b3d926f062p-5, -0x1.3299eb0e3876bp-5, 0x1.8a784de3f84c0p-6,
    -0x1.1a7e8ff122f7fp-7,
};
/* (asin(t) / t - 1) / t^2 in z = t^2 <= 0.25; 2^-58 */
static const float64 ASIN_TERMS[] = {
    0x1.555555555555ap-3, 0x1.33333333317d3p-4, 0x1.6db6db6fc463cp-5, 0x1.f1c71b5fbbfa1p-6,
    0x1.6e8bca36d12f7p-6, 0x1.1c4b4a9c4188bp-6, 0x1.ca011be1538fap-7, 0x1.7670a1fff1625p-7,
    0x1.5c5b2f40eefbfp-7, 0x1.16135dde23c9fp-8, 0x1.4f37dd781daadp-6, -0x1.3c56629d6c8bfp-6,
    0x1.02f7fd0b503c7p-5,
};
/* (sinh(x) / x - 1) / x^2 in z = x^2 <= 1; 2^-61 */
static const float64 SINH_TERMS[] = {
    0x1.5555555555556p-3, 0x1.1111111111014p-7, 0x1.a01a01a038b52p-13, 0x1.71de3a399ec48p-19,
    0x1.ae6471233f628p-26, 0x1.61167cc0e0578p-33, 0x1.b5ecf377b83b8p-41,
};
/* (tanh(x) / x - 1) / x^2 in z = x^2 <= 0.3025; 2^-59 */
static const float64 TANH_TERMS[] = {
    -0x1.5555555555554p-2, 0x1.1111111110d10p-3, -0x1.ba1ba1b9c2747p-5, 0x1.664f4867394a2p-6,
    -0x1.226e30afb3aedp-7, 0x1.d6d2d778760efp-9, -0x1.7d92a287295b8p-10, 0x1.349965c42f463p-11,
    -0x1.ea40ddd08a423p-13, 0x1.5fae82aa2859cp-14, -0x1.4c526b6b9d5ecp-16,
};
/* erf(x) / x - 1 in z = x^2 <= 1.5625; 2^-60 */
static const float64 ERF_TERMS[] = {
    0x1.06eba8214db69p-3, -0x1.812746b0379e7p-2, 0x1.ce2f21a042c0ep-4, -0x1.b82ce31289651p-6,
    0x1.565bcd0e7ff51p-8, -0x1.c02db4034ab2cp-11, 0x1.f9a3273c1e6cfp-14, -0x1.f4d25fa6bc8d0p-17,
    0x1.b9e6e03a0a844p-20, -0x1.5f7402026c63bp-23, 0x1.fcb289325a206p-27, -0x1.51183d3510aebp-30,
    0x1.960fc2f7af266p-34, -0x1.9f1042e4fd26cp-38, 0x1.0dc0fafbed603p-42,
};
#define ERF_FIRST_LOW -0x1.ca38add6025p-57 /* what the first lacks */
/* erfc(x) exp(x^2) (x + 2) in t = (x - 4) / (x + 4), 1 <= x <= 6.1; 2^-60 */
static const float64 ERFC_TERMS[] = {
    0x1.a4dcc1e8d52acp-1, -0x1.d56a1ef27a87ap-2, 0x1.57d3eb460465ep-2, -0x1.b2de5e6584202p-3,
    0x1.ce8ab27a40a3ep-4, -0x1.8789e79e55d73p-5, 0x1.c3a9fdb0e24b9p-7, -0x1.6512798bfcaa5p-11,
    -0x1.06db5fe636408p-9, 0x1.5ae23520db369p-10, -0x1.a749f0877499fp-12, 0x1.99168ecd33c30p-16,
    0x1.5301cb16375ebp-15, -0x1.6c6f95ea5e50ap-16, -0x1.fa08cc181f7b4p-18,
};

/* 2 / pi: 64 zeros before its point, then its bits. */
static const uint32 TWO_OVER_PI[] = {
    0, 0, 0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041,
    0xfe5163ab, 0xdebbc561, 0xb7246e3a, 0x424dd2e0, 0x06492eea, 0x09d1921c, 0xfe1deb1c, 0xb129a73e,
    0xe88235f5, 0x2ebb4484, 0xe99c7026, 0xb45f7e41, 0x3991d639, 0x835339f4, 0x9c845f8b, 0xbdf9283b,
    0x1ff897ff, 0xde05980f, 0xef2f118b, 0x5a0a6d1f, 0x6d367ecf, 0x27cb09b7, 0x4f463f66, 0x9e5fea2d,
    0x7527bac7, 0xebe5f17b, 0x3d0739f7, 0x8a5292ea, 0x6bfb5fb1, 0x1f8d5d08, 0x56033046, 0xfc7b6bab,
    0xf0cfbc20, 0x9af4361d,
};
