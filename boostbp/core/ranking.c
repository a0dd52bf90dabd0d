/* Lambdas of LambdaMART (Burges 2010): derivatives of pairs of rows of a query, of which one is more relevant. */

#include "boostbp.h"

/* exp(-x) for 0 <= x <= 700, by a reduction to |r| <= log(2) / 2 and a Taylor series: the same bits on each processor,
   in registers of any width. Adding SHIFT rounds to a whole number, in the lowest bits of the sum. */
static inline double exp_of_minus(double x)
{
    const double SHIFT = 0x1.8p52;
    union { double number; uint64_t bits; } shifted = {.number = x * 0x1.71547652b82fep0 + SHIFT}, scale;
    double k = shifted.number - SHIFT, r = k * 0x1.62e42fefa38p-1 - x + k * 0x1.ef35793c7673p-45;
    double odd = 1.0 / 6227020800.0, even = 1.0 / 479001600.0, s = r * r; /* powers of r, over 13! and 12! */
    odd = ((((odd * s + 1.0 / 39916800.0) * s + 1.0 / 362880.0) * s + 1.0 / 5040.0) * s + 1.0 / 120.0) * s + 1.0 / 6.0;
    even = ((((even * s + 1.0 / 3628800.0) * s + 1.0 / 40320.0) * s + 1.0 / 720.0) * s + 1.0 / 24.0) * s + 0.5;
    scale.bits = ((uint64_t)1023 << 52) - (shifted.bits << 52); /* 2^-k */
    return scale.number * (1.0 + (r + s * (even + r * odd)));
}

/* log(1 + e) for 0 <= e <= 1, as 2 atanh(e / (2 + e)). */
static inline double log_of_1_plus(double e)
{
    double u = e / (2.0 + e), v = u * u, series = 1.0 / 31.0;
    series = (((series * v + 1.0 / 29.0) * v + 1.0 / 27.0) * v + 1.0 / 25.0) * v + 1.0 / 23.0;
    series = (((series * v + 1.0 / 21.0) * v + 1.0 / 19.0) * v + 1.0 / 17.0) * v + 1.0 / 15.0;
    series = (((series * v + 1.0 / 13.0) * v + 1.0 / 11.0) * v + 1.0 / 9.0) * v + 1.0 / 7.0;
    return 2.0 * u * (((series * v + 1.0 / 5.0) * v + 1.0 / 3.0) * v + 1.0);
}

/* Derivatives of the pairs of row i with the n rows behind it; adds those of the other rows to `grad` and `hess`.

   score, gain and discount begin at row i. The weight of a pair is divided by offset + slope * distance in derivatives.
   Writes value, gradient and hessian of row i from each pair to `of_row`, (3, longest). */
WIDE static void pairs_of_row(const double *restrict score, const double *restrict gain, const double *restrict discount,
                              int64_t n, double inverse, double sigmoid, double slope, double offset, double unweighted,
                              double *restrict of_row, int64_t longest, double *restrict grad, double *restrict hess)
{
    double s = score[0], own = gain[0], d = discount[0];
    for (int64_t j = 1; j <= n; j++) {
        double distance = s - score[j], gap = own - gain[j], x = sigmoid * distance;
        double weight = fabs(gap) * (d - discount[j]) * inverse;
        weight += gap != 0.0 ? unweighted : 0.0;
        double e = exp_of_minus(x < 700.0 ? x : 700.0), share = 1.0 / (1.0 + e);
        double pull = sigmoid * weight * share / (offset + slope * distance), curvature = sigmoid * pull * (e * share);
        pull = gap > 0.0 ? pull * e : -pull; /* the more relevant row is in front, or behind */
        of_row[j] = weight * (log_of_1_plus(e) + (gap > 0.0 ? 0.0 : x));
        of_row[longest + j] = pull;
        of_row[2 * longest + j] = curvature;
        grad[j] += pull;
        hess[j] += curvature;
    }
}

/* Gradients and hessians of LightGBM's lambdarank, its `GetGradientsForOneQuery`, or of unweighted pairs.

   Rows of a query are together, the highest score first. discount: of the places 0, 1, ... of a query. inverse: 1 over
   the best DCG of each query, 0 if it has none. Pairs have a row among the `top` first. `normalised` divides the
   derivatives of a pair by the distance of its scores, and scales those of a query by the logarithm of their sum. The
   value of unweighted pairs is their logistic loss, at the row in front; otherwise each row has a share of 1 - NDCG. */
API int64_t boostbp_lambdas(const int64_t *bounds, const double *score, const double *gain, const double *discount,
                            const double *inverse, int64_t top, double sigmoid, int64_t normalised, int64_t weighted,
                            double *space, double *value, double *grad, double *hess, int64_t queries, int64_t rows,
                            int64_t longest)
{
    memset(value, 0, rows * sizeof *value);
    memset(grad, 0, rows * sizeof *grad);
    memset(hess, 0, rows * sizeof *hess);
    for (int64_t q = 0; q < queries; q++) {
        int64_t first = bounds[q], n = bounds[q + 1] - first;
        double *g = grad + first, *h = hess + first, total = 0.0, inverse_of_query = weighted ? inverse[q] : 0.0;
        if (weighted && inverse_of_query == 0.0)
            continue;
        for (int64_t i = 0; weighted && i < n; i++)
            value[first + i] = 1.0 / n - (i < top ? gain[first + i] * discount[i] * inverse_of_query : 0.0);
        int64_t by_distance = normalised && score[first] != score[first + n - 1];
        for (int64_t i = 0; i < n - 1 && i < top; i++) {
            double loss = 0.0, sum = 0.0, curvature = 0.0;
            pairs_of_row(score + first + i, gain + first + i, discount + i, n - 1 - i, inverse_of_query, sigmoid,
                         by_distance, by_distance ? 0.01 : 1.0, !weighted, space, longest, g + i, h + i);
            for (int64_t j = 1; j < n - i; j++) {
                loss += space[j];
                sum += space[longest + j];
                curvature += space[2 * longest + j];
                total += 2.0 * fabs(space[longest + j]);
            }
            if (!weighted)
                value[first + i] = loss;
            g[i] -= sum;
            h[i] += curvature;
        }
        double factor = normalised && total > 0.0 ? log2(1.0 + total) / total : 1.0;
        for (int64_t i = 0; i < n; i++) {
            g[i] *= factor;
            h[i] *= factor;
        }
    }
    return 0;
}
