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

/* Derivatives of the pairs of a cell with those `from` to `to` places behind; adds those of the latter to `grad`, `hess`.

   A pair is weighted by its gap of gains times front - chance * discount. Derivatives are divided by
   offset + slope * distance. Writes gradient and hessian of the cell from each other one to `of_cell`, (2, cells). */
WIDE static void pairs_of_cell(const double *restrict score, const double *restrict gain,
                               const double *restrict discount, const double *restrict size, int64_t from,
                               int64_t to, double front, double chance, double inverse, double sigmoid, double slope, double offset,
                               double *restrict of_cell, int64_t cells, double *restrict grad, double *restrict hess)
{
    double s = score[0], own = gain[0], rows = size[0];
    for (int64_t j = from; j <= to; j++) {
        double distance = s - score[j], gap = own - gain[j], x = sigmoid * distance;
        double weight = fabs(gap) * (front - chance * discount[j]) * inverse;
        double e = exp_of_minus(x < 700.0 ? x : 700.0), share = 1.0 / (1.0 + e);
        double pull = sigmoid * weight * share / (offset + slope * distance), curvature = sigmoid * pull * (e * share);
        double right = pull * e; /* the more relevant row is in front, or else behind */
        pull = gap > 0.0 ? right : -pull;
        of_cell[j] = size[j] * pull;
        of_cell[cells + j] = size[j] * curvature;
        grad[j] += rows * pull;
        hess[j] += rows * curvature;
    }
}

/* Cells: rows of a query with one score and one gain, `size` of them. `tie` is equal for those of one score. front,
   chance, discount and within are means over the places of the tied rows; see `_Places` in boostbp/losses. */
typedef struct {
    const int64_t *tie;
    const double *score, *gain, *front, *chance, *discount, *within, *size;
    int64_t n_cells;
} cells_t;

/* Gradients and hessians of LightGBM's lambdarank, its `GetGradientsForOneQuery`, as means over the orders of ties.

   Cells of a query are together, the highest score first. inverse: 1 over the best DCG of each query, 0 if it has none.
   `normalised` divides the derivatives of a pair by the distance of its scores, and scales those of a query by the
   logarithm of their sum. */
API int64_t boostbp_lambdas(const int64_t *bounds, const cells_t *of, const double *inverse, double sigmoid,
                            int64_t normalised, double *space, double *grad, double *hess, int64_t queries)
{
    const double *score = of->score, *gain = of->gain, *discount = of->discount, *size = of->size;
    int64_t cells = of->n_cells;
    memset(grad, 0, cells * sizeof *grad);
    memset(hess, 0, cells * sizeof *hess);
    for (int64_t q = 0; q < queries; q++) {
        int64_t first = bounds[q], end = bounds[q + 1], last_tied = first;
        double total = 0.0;
        int64_t by_distance = normalised && score[first] != score[end - 1];
        double slope = by_distance ? 1.0 : 0.0, offset = by_distance ? 0.01 : 1.0;
        for (int64_t i = first; i < end && of->chance[i] > 0.0 && inverse[q] > 0.0; i++) {
            double sum = 0.0, curvature = 0.0;
            while (last_tied < end - 1 && of->tie[last_tied + 1] == of->tie[i])
                last_tied++;
            int64_t tied = last_tied - i;
            pairs_of_cell(score + i, gain + i, discount + i, size + i, 1, tied, of->within[i], 0.0, inverse[q],
                          sigmoid, slope, offset, space, cells, grad + i, hess + i);
            pairs_of_cell(score + i, gain + i, discount + i, size + i, tied + 1, end - 1 - i, of->front[i],
                          of->chance[i], inverse[q], sigmoid, slope, offset, space, cells, grad + i, hess + i);
            for (int64_t j = 1; j < end - i; j++) {
                sum += space[j];
                curvature += space[cells + j];
                total += 2.0 * size[i] * fabs(space[j]);
            }
            grad[i] -= sum;
            hess[i] += curvature;
        }
        double factor = normalised && total > 0.0 ? log2(1.0 + total) / total : 1.0;
        for (int64_t i = first; i < end; i++) {
            grad[i] *= factor;
            hess[i] *= factor;
        }
    }
    return 0;
}

/* Derivatives of n pairs of rows: of row i * step with row j = i, from pointers to the first of each.

   Writes value, gradient and hessian of the former to `of_pair`, (3, longest), and adds those of the latter. */
static inline void pairs_of_rows(const double *restrict score, const double *restrict relevance, int64_t step,
                                 const double *restrict other_score, const double *restrict other_relevance, int64_t n,
                                 double weight, double sigmoid, double *restrict of_pair, int64_t longest,
                                 double *restrict grad, double *restrict hess)
{
    for (int64_t j = 0; j < n; j++) {
        double distance = score[j * step] - other_score[j], gap = relevance[j * step] - other_relevance[j];
        double x = sigmoid * fabs(distance), pair = gap != 0.0 ? weight : 0.0;
        double e = exp_of_minus(x < 700.0 ? x : 700.0), share = 1.0 / (1.0 + e);
        double wrong = sigmoid * pair * share, curvature = sigmoid * wrong * (e * share), right = wrong * e;
        int in_order = (gap > 0.0) == (distance > 0.0); /* of equal scores, e is 1 and x is 0 */
        double pull = in_order ? right : wrong;
        pull = gap > 0.0 ? pull : -pull;
        of_pair[j] = pair * (log_of_1_plus(e) + (in_order ? 0.0 : x));
        of_pair[longest + j] = -pull;
        of_pair[2 * longest + j] = curvature;
        grad[j] += pull;
        hess[j] += curvature;
    }
}

/* All pairs of a query, row by row in the order of the scores. */
WIDE static void all_pairs(const double *score, const double *relevance, int64_t n, double sigmoid, double *space,
                           int64_t longest, double *value, double *grad, double *hess)
{
    for (int64_t i = 0; i < n - 1; i++) {
        double loss = 0.0, sum = 0.0, curvature = 0.0;
        pairs_of_rows(score + i, relevance + i, 0, score + i + 1, relevance + i + 1, n - 1 - i, 1.0, sigmoid, space,
                      longest, grad + i + 1, hess + i + 1);
        for (int64_t j = 0; j < n - 1 - i; j++) {
            loss += space[j];
            sum += space[longest + j];
            curvature += space[2 * longest + j];
        }
        value[i] = loss;
        grad[i] += sum;
        hess[i] += curvature;
    }
}

/* Pairs of each row with `partners` rows of another relevance, as an estimate of the sum over all pairs.

   Rows are in the order of relevance, those of one relevance [a, b) in a random order. Their others are the rows from b
   on and, at the end, from 0 on. Partners are evenly spaced there, and one further for each next row of [a, b). A row
   has a share of others / partners / 2 of the pairs of each, as a pair may be drawn from either side. */
WIDE static void some_pairs(const double *score, const double *relevance, int64_t n, int64_t partners, double sigmoid,
                            double *space, int64_t longest, double *value, double *grad, double *hess)
{
    for (int64_t a = 0, b = 0; a < n; a = b) {
        while (b < n && relevance[b] == relevance[a])
            b++;
        int64_t others = n - (b - a), drawn = others < partners ? others : partners;
        for (int64_t k = 0; k < drawn; k++) {
            double golden = 0.6180339887498949 * (double)a; /* rows with one relevance each have other partners */
            int64_t shift = (int64_t)(((double)k + (golden - floor(golden))) * (double)others / (double)drawn);
            double weight = 0.5 * (double)others / (double)drawn;
            for (int64_t i = a, run; i < b; i += run) {
                int64_t j = (b + (shift + i - a) % others) % n;
                run = j >= b ? n - j : a - j;
                run = run < b - i ? run : b - i;
                pairs_of_rows(score + i, relevance + i, 1, score + j, relevance + j, run, weight, sigmoid,
                              space, longest, grad + j, hess + j);
                for (int64_t r = 0; r < run; r++) {
                    value[i + r] += space[r];
                    grad[i + r] += space[longest + r];
                    hess[i + r] += space[2 * longest + r];
                }
            }
        }
    }
}

/* The logistic loss of pairs of rows of a query, with gradients and hessians.

   Rows of a query are together: of up to 2 * partners rows, the highest score first, and of more, the least relevant. */
API int64_t boostbp_pairs(const int64_t *bounds, const double *score, const double *relevance, int64_t partners,
                          double sigmoid, double *space, double *value, double *grad, double *hess, int64_t queries,
                          int64_t rows, int64_t longest)
{
    memset(value, 0, rows * sizeof *value);
    memset(grad, 0, rows * sizeof *grad);
    memset(hess, 0, rows * sizeof *hess);
    for (int64_t q = 0; q < queries; q++) {
        int64_t first = bounds[q], n = bounds[q + 1] - first;
        const double *s = score + first, *r = relevance + first;
        if (n <= 2 * partners)
            all_pairs(s, r, n, sigmoid, space, longest, value + first, grad + first, hess + first);
        else
            some_pairs(s, r, n, partners, sigmoid, space, longest, value + first, grad + first, hess + first);
    }
    return 0;
}
