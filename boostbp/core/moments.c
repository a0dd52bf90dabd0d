/* Sums over the columns of an input, with the same bits for dense and sparse input.

   Sums skip zeros, so that both kinds of input add the same numbers in the same order, and the work is proportional to
   the entries of a sparse input. A dense input is Z, (rows, columns), and its loops go row by row; those of a sparse
   one go column by column.

   A standardised value is u = (z - center) * inv_scale, 0 if missing. `zero` is the standardised 0, so that for
   instance U V = 1 (zero V) + (U - zero) V. The caller adds the first part. Some functions read only the columns that
   `column` lists; `scaling` and `zero` are those of these columns. */

#include "boostbp.h"

/* A sparse input: entries indptr[j] .. indptr[j + 1] - 1 are those of column j, in ascending rows `indices`. Both are
   unsigned integers of some bytes. */
typedef struct {
    const void *indptr;
    int64_t ptr_bytes;
    const void *indices;
    int64_t bytes;
    const double *data;
    int64_t n_all_columns, n_entries;
} entries_t;

static inline int64_t first_of(const entries_t *Z, int64_t column)
{
    return leaf_at(Z->indptr, Z->ptr_bytes, column);
}

static inline double standardised(double z, const double *scaling)
{
    double u = in_units(z, scaling[CENTER], scaling[INV_SCALE]);
    return u == u ? u : 0.0;
}

/* The columns that a product reads. */
typedef struct {
    const int32_t *column; /* (columns,) their numbers */
    const double *scaling; /* (columns, 4) */
    const double *zero;    /* (columns,) */
    int64_t n_columns;
} columns_t;

/* Returns u - zero of a number in the j-th of these columns. */
static inline double factor_of(const columns_t *U, int64_t j, double z)
{
    return standardised(z, U->scaling + 4 * j) - U->zero[j];
}

/* Runs a statement for each number z but zeros, in column j and `row`. */
#define EACH_DENSE(statement) \
    for (int64_t row = 0; row < rows; row++, Z += columns) \
        for (int64_t j = 0; j < columns; j++) \
            if (Z[j] != 0.0) { \
                double z = Z[j]; \
                statement \
            }

/* Does the same for column number `of` of a sparse input. */
#define EACH_SPARSE(of, statement) \
    const entries_t in = *Z; \
    for (int64_t k = first_of(Z, of), last = first_of(Z, (of) + 1); k < last; k++) \
        if (in.data[k] != 0.0) { \
            double z = in.data[k]; \
            int64_t row = in.bytes == 4 ? ((const uint32_t *)in.indices)[k] : leaf_at(in.indices, in.bytes, k); \
            statement \
        }

/* ------------------------------------------------------------------------------------------- sums of each column */

/* Adds one entry to the sums of a column: smallest and largest value, sum(w z), weight of the missing values, weight
   and number of all but zeros. */
static inline void add_entry(double z, double w, double *sums)
{
    sums[0] = lesser(sums[0], z); /* all comparisons of a missing value are false */
    sums[1] = greater(sums[1], z);
    if (z == z)
        sums[2] += w * z;
    else
        sums[3] += w;
    sums[4] += w;
    sums[5] += 1.0;
}

/* Adds to the sums of each column, (columns, 6); see `add_entry`. */
API int64_t boostbp_column_sums(const double *Z, const double *weight, double *restrict sums, int64_t rows,
                                int64_t columns)
{
    EACH_DENSE(add_entry(z, weight[row], sums + 6 * j);)
    return 0;
}

API int64_t boostbp_column_sums_sparse(const entries_t *Z, const double *weight, double *restrict sums)
{
    for (int64_t j = 0; j < Z->n_all_columns; j++, sums += 6) {
        double of_column[6];
        memcpy(of_column, sums, sizeof of_column);
        EACH_SPARSE(j, add_entry(z, weight[row], of_column);)
        memcpy(sums, of_column, sizeof of_column);
    }
    return 0;
}

/* Adds weight u^2 of one entry. */
static inline void add_square(double z, double w, const double *scaling, double *out)
{
    double u = standardised(z, scaling);
    *out += w * (u * u);
}

/* Adds sum(weight u^2) of each column to `out`. */
API int64_t boostbp_column_squares(const double *Z, const double *weight, const double *scaling, double *restrict out,
                                   int64_t rows, int64_t columns)
{
    EACH_DENSE(add_square(z, weight[row], scaling + 4 * j, out + j);)
    return 0;
}

API int64_t boostbp_column_squares_sparse(const entries_t *Z, const double *weight, const double *scaling,
                                          double *restrict out)
{
    for (int64_t j = 0; j < Z->n_all_columns; j++) {
        double total = out[j];
        EACH_SPARSE(j, add_square(z, weight[row], scaling + 4 * j, &total);)
        out[j] = total;
    }
    return 0;
}

/* ------------------------------------------------------------------------------------------ products with columns */

enum { MANY = 16 }; /* row length from which the loop for this processor's registers is faster; arbitrary */

static inline __attribute__((always_inline)) void add_few(double *restrict to, double factor, const double *restrict from, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] += factor * from[i];
}

WIDE static void add_many(double *restrict to, double factor, const double *restrict from, int64_t n)
{
    add_few(to, factor, from, n);
}

/* Adds `factor` times one row of numbers to another. */
static inline void add_row(double *to, double factor, const double *from, int64_t n)
{
    if (n >= MANY)
        add_many(to, factor, from, n);
    else
        add_few(to, factor, from, n);
}

typedef double four_t __attribute__((vector_size(32), aligned(8), may_alias));

/* Adds one row of U - zero times 4 n columns of V to `out`; the sums stay in n = 1, 2 or 4 registers. */
static inline __attribute__((always_inline)) void add_tile(const double *Z, const columns_t *U, const double *V,
                                                           int64_t outputs, double *out, const int n)
{
    four_t *sum = (four_t *)out, a = sum[0], b = a, c = a, d = a;
    if (n > 1)
        b = sum[1];
    if (n > 2)
        c = sum[2], d = sum[3];
    for (int64_t j = 0; j < U->n_columns; j++, V += outputs) {
        double z = Z[U->column[j]], factor = factor_of(U, j, z);
        const four_t *v = (const four_t *)V;
        if (z == 0.0)
            continue;
        a += factor * v[0];
        if (n > 1)
            b += factor * v[1];
        if (n > 2)
            c += factor * v[2], d += factor * v[3];
    }
    sum[0] = a;
    if (n > 1)
        sum[1] = b;
    if (n > 2)
        sum[2] = c, sum[3] = d;
}

WIDE static void add_products(const double *Z, const columns_t *U, const double *V, int64_t outputs, double *out)
{
    int64_t o = 0;
    for (; o + 16 <= outputs; o += 16)
        add_tile(Z, U, V + o, outputs, out + o, 4);
    if (o + 8 <= outputs) {
        add_tile(Z, U, V + o, outputs, out + o, 2);
        o += 8;
    }
    if (o + 4 <= outputs) {
        add_tile(Z, U, V + o, outputs, out + o, 1);
        o += 4;
    }
    int64_t left = outputs - o; /* at most three sums, in registers, too */
    double a = left > 0 ? out[o] : 0.0, b = left > 1 ? out[o + 1] : 0.0, c = left > 2 ? out[o + 2] : 0.0;
    for (int64_t j = 0; j < U->n_columns && left > 0; j++) {
        double z = Z[U->column[j]], factor = factor_of(U, j, z);
        const double *v = V + j * outputs + o;
        if (z == 0.0)
            continue;
        a += factor * v[0];
        if (left > 1)
            b += factor * v[1];
        if (left > 2)
            c += factor * v[2];
    }
    memcpy(out + o, (double[]){a, b, c}, (size_t)left * sizeof *out);
}

/* Adds (U - zero) V to `out`, (rows, outputs). */
API int64_t boostbp_add_products(const double *Z, const columns_t *U, const double *V, double *out, int64_t rows,
                                 int64_t all_columns, int64_t outputs)
{
    for (int64_t row = 0; row < rows; row++)
        add_products(Z + row * all_columns, U, V, outputs, out + row * outputs);
    return 0;
}

API int64_t boostbp_add_products_sparse(const entries_t *Z, const columns_t *U, const double *V, double *out,
                                        int64_t outputs)
{
    const columns_t own = *U;
    for (int64_t j = 0; j < own.n_columns; j++) {
        EACH_SPARSE(own.column[j], add_row(out + row * outputs, factor_of(&own, j, z), V + j * outputs, outputs);)
    }
    return 0;
}

/* Adds one row of U - zero, column by column, times a row g. */
static inline __attribute__((always_inline)) void add_moments(const double *Z, const columns_t *U, const double *g,
                                                              int64_t outputs, double *out)
{
    for (int64_t j = 0; j < U->n_columns; j++)
        if (Z[U->column[j]] != 0.0)
            add_few(out + j * outputs, factor_of(U, j, Z[U->column[j]]), g, outputs);
}

WIDE static void add_many_moments(const double *Z, const columns_t *U, const double *g, int64_t outputs, double *out)
{
    const columns_t own = *U; /* in registers: `out` might overlap with what U points to */
    for (int64_t j = 0; j < own.n_columns; j++, out += outputs) {
        double z = Z[own.column[j]];
        if (z == 0.0)
            continue;
        const double *restrict from = g;
        double *restrict to = out, factor = factor_of(&own, j, z);
        for (int64_t i = 0; i < outputs; i++)
            to[i] += factor * from[i];
    }
}

/* Adds (U - zero)' G to `out`, (columns, outputs). */
API int64_t boostbp_add_moments(const double *Z, const columns_t *U, const double *G, double *out, int64_t rows,
                                int64_t all_columns, int64_t outputs)
{
    for (int64_t row = 0; row < rows; row++)
        (outputs >= MANY ? add_many_moments : add_moments)(Z + row * all_columns, U, G + row * outputs, outputs, out);
    return 0;
}

API int64_t boostbp_add_moments_sparse(const entries_t *Z, const columns_t *U, const double *G, double *out,
                                       int64_t outputs)
{
    const columns_t own = *U;
    for (int64_t j = 0; j < own.n_columns; j++) {
        EACH_SPARSE(own.column[j], add_row(out + j * outputs, factor_of(&own, j, z), G + row * outputs, outputs);)
    }
    return 0;
}

/* Writes some columns of rows begin .. end - 1 into `out`, (rows, columns), which is zero. */
API int64_t boostbp_fill(const entries_t *Z, const int64_t *column, int64_t begin, int64_t end, double *out,
                         int64_t columns)
{
    for (int64_t j = 0; j < columns; j++) {
        int64_t k = first_of(Z, column[j]), last = first_of(Z, column[j] + 1);
        for (int64_t behind = last; k < behind;) { /* the first entry of these rows, by bisection */
            int64_t middle = k + (behind - k) / 2;
            if (leaf_at(Z->indices, Z->bytes, middle) < begin)
                k = middle + 1;
            else
                behind = middle;
        }
        for (; k < last && leaf_at(Z->indices, Z->bytes, k) < end; k++)
            out[(leaf_at(Z->indices, Z->bytes, k) - begin) * columns + j] = Z->data[k];
    }
    return 0;
}
