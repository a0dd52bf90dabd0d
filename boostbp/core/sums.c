/* Sums over the rows of each leaf: ranges of its path columns, Gram matrices and moments of its terms.

   Terms phi of a leaf with k path columns, in this order: 1, u_1 .. u_k and, for degree 2, u_1^2 .. u_k^2, where
   u = (z - center) * inv_scale. The solution of its ridge regression (equation (13) of the paper) reads two sums:

       gram = sum over rows of h phi phi'  (terms, terms)        moment = -sum over rows of phi g'  (terms, outputs)

   with gradients g and hessians h of the loss. Rows of a leaf are processed BLOCK at a time. Their path columns are
   rows of a matrix, (columns, rows), along which every sum runs in eight lanes (see block_sums.h). */

#include "boostbp.h"

/* One block of rows of a leaf. */
typedef struct {
    const double *values;                    /* (k, n_rows), of which the block is the first n rows */
    int64_t n, n_rows, k, degree, p, m;      /* p = 1 + degree k terms, m targets */
    const double *center, *scale, *fill, *h; /* (k,), (k,), (k,), (n,); h is NULL if all are 1 */
    double *terms;                           /* (p + m + 4, BLOCK): phi, and the targets t = -g behind it */
    double *gram, *moment;
} block_t;

/* Keeps a number in a register: gcc would load it again for its second product, and loads are the bottleneck. */
#if defined(__x86_64__)
#define KEEP(number) __asm__("" : "+x"(number))
#else
#define KEEP(number)
#endif

typedef double pair_t __attribute__((vector_size(16)));
typedef double four_t __attribute__((vector_size(32)));

/* The order in which the partial sums of the lanes are added: halves, then quarters, then the last two. */
static inline double add_lanes(const double *lane)
{
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

/* Registers that any processor of this build has; arm64 holds four numbers in two of its 32. */
#if defined(__AVX512F__)
#define WIDTH 8
#define BASELINE {add_block_8, ends_8}
#elif defined(__AVX2__) || defined(__aarch64__)
#define WIDTH 4
#define BASELINE {add_block_4, ends_4}
#else
#define WIDTH 2
#define BASELINE {add_block_2, ends_2}
#endif
#define TARGET
#include "block_sums.h"
#if defined(__x86_64__) && !defined(BOOSTBP_ONE_VERSION)
#define WIDTH 4
#define TARGET __attribute__((target("avx2")))
#include "block_sums.h"
#define WIDTH 8
#define TARGET __attribute__((target("avx512f")))
#include "block_sums.h"
#endif

typedef struct {
    void (*add_block)(const block_t *);
    void (*ends)(const double *, const double *, int64_t, double *);
} loops_t;

/* Returns the loops for the widest registers of this processor. */
static loops_t loops(void)
{
#if defined(__x86_64__) && !defined(BOOSTBP_ONE_VERSION)
    if (__builtin_cpu_supports("avx512f"))
        return (loops_t){add_block_8, ends_8};
    if (__builtin_cpu_supports("avx2"))
        return (loops_t){add_block_4, ends_4};
#endif
    return (loops_t)BASELINE;
}

/* ------------------------------------------------------------------------------------------------------- ranges */

/* Whether one number comes before another; -0.0 comes before 0.0. */
static inline int before(double a, double b)
{
    return a < b || (a == b && signbit(a) > signbit(b));
}

/* Adds n values but those missing, row by row, to the sums of a range; writes their ends to sums[1] and sums[2]. */
static void add_known(const double *z, const double *h, int64_t n, double *range, double *sums)
{
    double lower = INFINITY, upper = -INFINITY, total = range[2], weight = range[3];
    for (int64_t i = 0; i < n; i++)
        if (z[i] == z[i]) {
            lower = lesser(lower, z[i]);
            upper = greater(upper, z[i]);
            total += h ? h[i] * z[i] : z[i];
            weight += h ? h[i] : 1.0;
        }
    sums[1] = lower, sums[2] = upper, range[2] = total, range[3] = weight;
}

/* Returns the first or last zero among n numbers, of which at least one is: -0.0 comes before 0.0. */
static double zero_of(const double *z, int64_t n, int is_first)
{
    int found = 0;
    for (int64_t i = 0; i < n; i++)
        found |= z[i] == 0.0 && (signbit(z[i]) != 0) == is_first;
    return found == is_first ? -0.0 : 0.0;
}

/* Writes the smallest and largest value, weighted sum and weight of each path column of each leaf to `out`.

   An empty `hess` means ones. `out` is (path columns, 4): lower, upper, sum of hess z, sum of hess, all without NaN. */
API int64_t boostbp_leaf_ranges(const leaf_rows_t *rows, const double *hess, double *out, int64_t n_weights,
                                int64_t n_paths)
{
    loops_t loop = loops();
    double of_block[BLOCK], *h = n_weights > 0 ? of_block : NULL;
    const double *values = rows->values;
    for (int64_t path = 0; path < n_paths; path++)
        memcpy(out + 4 * path, (double[]){INFINITY, -INFINITY, 0.0, 0.0}, 4 * sizeof *out);
    for (int64_t leaf = 0; leaf < rows->n_leaves; leaf++) {
        int64_t begin = rows->start[leaf], end = rows->start[leaf + 1], path = rows->path_start[leaf];
        int64_t k = rows->path_start[leaf + 1] - path;
        for (int64_t block = begin; block < end; block += BLOCK) {
            int64_t n = least_of(end - block, BLOCK);
            double sums[3], weight = (double)n; /* sum, smallest, largest */
            if (h) {
                for (int64_t i = 0; i < n; i++)
                    h[i] = hess[rows->first + rows->order[block + i]];
                loop.ends(h, NULL, n, sums);
                weight = sums[0];
            }
            for (int64_t j = 0; j < k; j++) {
                const double *z = values + j * (end - begin) + block - begin;
                double *range = out + 4 * (path + j);
                loop.ends(z, h, n, sums);
                if (sums[0] != sums[0]) /* some are missing */
                    add_known(z, h, n, range, sums);
                else
                    range[2] += sums[0], range[3] += weight;
                for (int i = 1; i <= 2; i++)
                    if (sums[i] == 0.0)
                        sums[i] = zero_of(z, n, i == 1);
                if (before(sums[1], range[0]))
                    range[0] = sums[1];
                if (before(range[1], sums[2]))
                    range[1] = sums[2];
            }
        }
        values += k * (end - begin);
    }
    return 0;
}

/* ------------------------------------------------------------------------------------- Gram matrices and moments */

/* Adds sums over the rows of each leaf; `grad` is (outputs, rows), an empty `hess` means ones.

   gram: (sum of terms^2,), lower triangles; moment: (sum of terms * outputs,). units: (3, paths), the center and inverse
   scale of each path column, and the u of a missing value. */
API int64_t boostbp_leaf_sums(const leaf_rows_t *rows, const double *units, int64_t degree, const double *grad,
                              const double *hess, double *gram, double *moment, int64_t n_paths, int64_t n_outputs,
                              int64_t n_rows, int64_t n_weights)
{
    SCRATCH scratch = {0};
    loops_t loop = loops();
    const double *values = rows->values;
    int64_t most = 1 + degree * largest_part(rows->path_start, rows->n_leaves) + n_outputs + 4; /* `tile` reads so far */
    char *memory = take(&scratch, most * BLOCK + LANES, sizeof(double));
    if (scratch.is_lacking)
        return LACKS_MEMORY;
    double *terms = memset(memory + (64 - (uintptr_t)memory % 64), 0, (size_t)(most * BLOCK) * sizeof(double));
    double h[BLOCK];
    for (int64_t output = 0; output < n_outputs; output++)
        fetch(grad + output * n_rows + rows->first, rows->n_grouped);
    for (int64_t leaf = 0; leaf < rows->n_leaves; leaf++) {
        int64_t path = rows->path_start[leaf], k = rows->path_start[leaf + 1] - path, p = 1 + degree * k;
        int64_t begin = rows->start[leaf], end = rows->start[leaf + 1];
        for (int64_t first = begin; first < end; first += BLOCK) {
            int64_t n = least_of(end - first, BLOCK), different = 0;
            const uint16_t *restrict row = rows->order + first;
            for (int64_t i = 0; i < n && n_weights > 0; i++) {
                h[i] = hess[rows->first + row[i]];
                different += h[i] != 1.0;
            }
            for (int64_t i = n; i % LANES; i++)
                h[i] = 0.0;
            for (int64_t output = 0; output < n_outputs; output++) {
                const double *restrict g = grad + output * n_rows + rows->first;
                double *restrict target = terms + (p + output) * BLOCK;
                for (int64_t i = 0; i < n; i++)
                    target[i] = -g[row[i]];
            }
            block_t block = {values + first - begin, n, end - begin, k, degree, p, n_outputs, units + path,
                             units + n_paths + path, units + 2 * n_paths + path, different ? h : NULL, terms, gram, moment};
            loop.add_block(&block);
        }
        values += k * (end - begin);
        gram += p * p;
        moment += p * n_outputs;
    }
    return 0;
}

/* Adds the sum over rows of phi(u) g' to `out`, in the places of `leaves->weight`; each tree serves all outputs.

   leaf: leaf numbers, (trees, rows); Z: (rows, columns), without clipping, u = 0 for missing values;
   G: (rows, outputs). */
API int64_t boostbp_term_moments(const leaves_t *leaves, const at_leaves_t *at, const double *G, double *out,
                                 int64_t n_outputs)
{
    int64_t m = n_outputs;
    for (int64_t tree = 0; tree < leaves->n_trees; tree++)
        for (int64_t row = 0; row < at->n_rows; row++) {
            regression_t r = regression_at(leaves, at, tree, row);
            double *restrict to = out + (r.constant - leaves->weight);
            const double *restrict g = G + row * m;
            for (int64_t output = 0; output < m; output++)
                to[output] += g[output];
            for (int64_t j = 0; j < r.k; j++) {
                double z = at->Z[row * at->n_columns + r.column[j]];
                double u = in_units(z, r.scaling[4 * j + CENTER], r.scaling[4 * j + INV_SCALE]), square = u * u;
                if (z != z)
                    continue;
                for (int64_t output = 0; output < m; output++)
                    to[(1 + j) * m + output] += u * g[output];
                for (int64_t output = 0; output < m && r.degree == 2; output++)
                    to[(1 + r.k + j) * m + output] += square * g[output];
            }
        }
    return 0;
}
