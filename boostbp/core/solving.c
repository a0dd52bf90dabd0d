/* Ridge regressions of leaves: solution of the normal equations of each leaf, and changes of units of weights.

   w = (G + penalty I)^-1 b, with G = sum h phi phi' (p, p) and b = -sum phi grad' (p, m) of the p terms phi of a leaf
   and its m outputs: the paper's solution for the target -grad / h. The terms are a constant, the k path columns of
   the leaf, and for degree 2 their squares. */

#include "boostbp.h"

static const double LEAST_PIVOT = 1e-12; /* relative to a term's sum of squares; smaller pivots are rounding errors */

/* Writes the Cholesky factor L, A = L L', over the lower triangle of A; a term that earlier ones determine gets 0.

   L_jj^2 = A_jj - sum_k<j L_jk^2 is the part of a term's sum of squares that earlier terms do not explain. Below
   LEAST_PIVOT of the sum, the term is a combination of them. Rows are too short for vector instructions to gain. */
static void factor(double *a, int64_t p)
{
    for (int64_t j = 0; j < p; j++) {
        double *row = a + j * p, size = row[j], pivot = size;
        for (int64_t k = 0; k < j; k++)
            pivot -= row[k] * row[k];
        if (pivot > LEAST_PIVOT * size && pivot > 0.0) {
            double root = sqrt(pivot), inverse = 1.0 / root;
            row[j] = root;
            for (int64_t i = j + 1; i < p; i++) {
                double total = a[i * p + j];
                for (int64_t k = 0; k < j; k++)
                    total -= a[i * p + k] * row[k];
                a[i * p + j] = total * inverse;
            }
        } else { /* clear the row, too, as it may contain overflowed numbers */
            for (int64_t i = 0; i < j; i++)
                row[i] = 0.0;
            for (int64_t i = j; i < p; i++)
                a[i * p + j] = 0.0;
        }
    }
}

/* Subtracts `factor` times a row of m numbers from another row. */
static inline void subtract(double *restrict row, double factor, const double *restrict other, int64_t m)
{
    for (int64_t output = 0; output < m; output++)
        row[output] -= factor * other[output];
}

/* Divides a row of m numbers by a pivot; without one, the term of the row gets 0. */
static inline void divide(double *row, double pivot, int64_t m)
{
    for (int64_t output = 0; output < m; output++)
        row[output] = pivot > 0.0 ? row[output] / pivot : 0.0;
}

/* Solves L L' w = b in place, w (p, m): y_i = (b_i - sum_j<i L_ij y_j) / L_ii, w_i = (y_i - sum_j>i L_ji w_j) / L_ii.

   Terms are subtracted one by one from each number, so that versions for all vector widths give the same bits. */
static inline void substitute(const double *a, double *w, int64_t p, int64_t m)
{
    for (int64_t i = 0; i < p; i++) {
        for (int64_t j = 0; j < i; j++)
            subtract(w + i * m, a[i * p + j], w + j * m, m);
        divide(w + i * m, a[i * p + i], m);
    }
    for (int64_t i = p - 1; i >= 0; i--) {
        for (int64_t j = p - 1; j > i; j--)
            subtract(w + i * m, a[j * p + i], w + j * m, m);
        divide(w + i * m, a[i * p + i], m);
    }
}

/* Replaces the moments b of one leaf, `w` (p, m), by its ridge weights times `scale`.

   `a`, at least (p, p), is scratch: its lower triangle becomes the Cholesky factor of the penalised Gram matrix. */
void solve_leaf(const double *gram, double *w, int64_t p, int64_t m, double penalty, int64_t penalize_constant,
                double scale, double *a)
{
    for (int64_t i = 0; i < p; i++) {
        for (int64_t j = 0; j <= i; j++)
            a[i * p + j] = gram[i * p + j];
        if (i > 0 || penalize_constant)
            a[i * p + i] += penalty;
    }
    factor(a, p);
    if (m == 1)
        substitute(a, w, p, 1); /* a constant for the compiler */
    else
        substitute(a, w, p, m);
    for (int64_t i = 0; i < p * m; i++)
        w[i] *= scale;
}

/* Writes the ridge weights of each leaf over its moments in `weight`. Leaves have the same order in `gram`. */
API int64_t boostbp_solve_leaves(const int64_t *path_start, int64_t degree, int64_t n_outputs, const double *gram,
                                 double *weight, double penalty, int64_t penalize_constant, double scale,
                                 int64_t n_leaves)
{
    SCRATCH scratch = {0};
    int64_t most = 1 + degree * largest_part(path_start, n_leaves);
    double *a = take(&scratch, most * most, sizeof *a);
    if (scratch.is_lacking)
        return LACKS_MEMORY;
    for (int64_t leaf = 0; leaf < n_leaves; leaf++) {
        int64_t p = 1 + degree * (path_start[leaf + 1] - path_start[leaf]);
        solve_leaf(gram, weight, p, n_outputs, penalty, penalize_constant, scale, a);
        gram += p * p;
        weight += p * n_outputs;
    }
    return 0;
}

/* Rewrites weights of values z, in the user's units, as weights of u = (z - c) / d, in place.

   With z = c + d u: a + b z + q z^2 = (a + b c + q c^2) + (b + 2 q c) d u + q d^2 u^2. */
API int64_t boostbp_scale_weights(const int64_t *path_start, int64_t degree, int64_t n_outputs, const double *scaling,
                                  double *weight, int64_t n_leaves, int64_t n_paths)
{
    for (int64_t leaf = 0; leaf < n_leaves; leaf++) {
        int64_t k = path_start[leaf + 1] - path_start[leaf];
        const double *of_leaf = scaling + 4 * path_start[leaf];
        for (int64_t output = 0; output < n_outputs; output++) {
            double *w = weight + output;
            for (int64_t j = 0; j < k; j++) {
                double center = of_leaf[4 * j + CENTER], inverse = of_leaf[4 * j + INV_SCALE];
                double width = inverse > 0.0 ? 1.0 / inverse : 0.0;
                double *linear = w + (1 + j) * n_outputs, slope = *linear;
                w[0] += slope * center;
                if (degree == 2) {
                    double *square = linear + k * n_outputs, curve = *square;
                    w[0] += curve * center * center;
                    slope += 2.0 * curve * center;
                    *square = curve * width * width;
                }
                *linear = slope * width;
            }
        }
        weight += (1 + degree * k) * n_outputs;
    }
    return 0;
}
