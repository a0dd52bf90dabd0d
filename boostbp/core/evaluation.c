/* Values and slopes of a forest's leaf regressions.

   A leaf's value is w_0 + sum_j u_j (w_j + u_j w_jj) of its path columns, without w_jj for degree 1, where
   u = (z - center) / scale. A missing value has u = 0, the leaf's training mean. The slope in column j is
   (w_j + 2 u_j w_jj) / scale, and 0 where an input is missing or clipped (section "Gradient of GBDT Layer"). */

#include "boostbp.h"
#include "stages.h"

/* Returns a value, or 0 where u is NaN: as bits, since compilers do not turn a choice of numbers into vectors. */
static inline double zero_if_missing(double value, double u)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits &= -(uint64_t)(u == u);
    memcpy(&value, &bits, sizeof bits);
    return value;
}

/* Writes the values of `n` rows, at most BLOCK, for one of `m` outputs of a leaf to `total`.

   Path column j of the rows is z + j * stride; w is the leaf's constant. The operations are those of `boostbp_evaluate`
   in the same order, for the same bits. */
WIDE static void leaf_values(const double *z, int64_t stride, int64_t n, int64_t k, int64_t degree,
                             const double *restrict scaling, const double *restrict w, int64_t m,
                             double *restrict total)
{
    for (int64_t i = 0; i < n; i++)
        total[i] = *w;
    for (int64_t j = 0; j < k; j++, z += stride, scaling += 4) {
        double center = scaling[CENTER], inverse = scaling[INV_SCALE], linear = w[(1 + j) * m];
        double square = degree == 2 ? w[(1 + k + j) * m] : 0.0;
        if (inverse == 0.0) /* the column does not vary */
            continue;
        if (degree == 2)
            for (int64_t i = 0; i < n; i++) {
                double u = (z[i] - center) * inverse, term = u * (linear + u * square);
                total[i] += zero_if_missing(term, u);
            }
        else
            for (int64_t i = 0; i < n; i++) {
                double u = (z[i] - center) * inverse, term = u * linear;
                total[i] += zero_if_missing(term, u);
            }
    }
}

void add_values(const int64_t *row_start, const uint16_t *order, int64_t first_row, const int64_t *path_start,
                const double *grouped, int64_t degree, const double *scaling, const double *weight, double *out,
                int64_t n_leaves, int64_t n_outputs, int64_t n_rows)
{
    double total[BLOCK];
    for (int64_t leaf = 0; leaf < n_leaves; leaf++) {
        int64_t k = path_start[leaf + 1] - path_start[leaf], begin = row_start[leaf], end = row_start[leaf + 1];
        for (int64_t block = begin; block < end; block += BLOCK) {
            int64_t n = end - block < BLOCK ? end - block : BLOCK;
            for (int64_t output = 0; output < n_outputs; output++) {
                leaf_values(grouped + (block - begin), end - begin, n, k, degree, scaling + 4 * path_start[leaf],
                            weight + output, n_outputs, total);
                double *of_block = out + output * n_rows + first_row;
                for (int64_t i = 0; i < n; i++)
                    of_block[order[block + i]] += total[i];
            }
        }
        grouped += k * (end - begin);
        weight += (1 + degree * k) * n_outputs;
    }
}

/* Adds the values of training rows, grouped by leaf, to `out`, (outputs, rows). */
API int64_t boostbp_add_values(const int64_t *row_start, const uint16_t *order, int64_t first_row,
                               const int64_t *path_start, const double *grouped, int64_t degree, const double *scaling,
                               const double *weight, double *out, int64_t n_leaves, int64_t n_outputs, int64_t n_rows)
{
    add_values(row_start, order, first_row, path_start, grouped, degree, scaling, weight, out, n_leaves, n_outputs,
               n_rows);
    return 0;
}
