/* Sums over the columns of an input, with the same bits for dense and sparse input.

   Sums skip zeros, so that both kinds of input add the same numbers in the same order, and the work is proportional to
   the entries of a sparse input. A dense input is Z, (rows, columns). A sparse one has compressed columns: entries
   indptr[j] .. indptr[j + 1] - 1 are those of column j, in ascending rows `indices`; both have any unsigned type.

   A standardised value is u = (z - center) * inv_scale, 0 if missing. `zero` is the standardised 0, so that for
   instance U V = 1 (zero V) + (U - zero) V. The caller adds the first part. */

#include "boostbp.h"
#include "stages.h"

/* Compressed columns of a sparse input. */
#define ENTRIES const void *indptr, int64_t ptr_bytes, const void *indices, int64_t bytes, const double *data

static inline double standardised(double z, const double *scaling)
{
    double u = (z - scaling[CENTER]) * scaling[INV_SCALE];
    return u == u ? u : 0.0;
}

/* ------------------------------------------------------------------------------------------- sums of each column */

/* Adds one entry to the sums of a column: smallest and largest value, sum(w z), weight of the missing values, weight
   and number of all but zeros. */
static inline void add_entry(double z, double w, double *sums)
{
    int known = z == z;
    sums[0] = lesser(sums[0], z); /* all comparisons of a missing value are false */
    sums[1] = greater(sums[1], z);
    if (known)
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
    for (int64_t row = 0; row < rows; row++, Z += columns)
        for (int64_t j = 0; j < columns; j++)
            if (Z[j] != 0.0)
                add_entry(Z[j], weight[row], sums + 6 * j);
    return 0;
}

API int64_t boostbp_column_sums_sparse(ENTRIES, const double *weight, double *sums, int64_t columns, int64_t entries)
{
    for (int64_t j = 0; j < columns; j++) {
        int64_t end = leaf_at(indptr, ptr_bytes, j + 1);
        double of_column[6];
        memcpy(of_column, sums + 6 * j, sizeof of_column);
        for (int64_t k = leaf_at(indptr, ptr_bytes, j); k < end; k++)
            if (data[k] != 0.0)
                add_entry(data[k], weight[leaf_at(indices, bytes, k)], of_column);
        memcpy(sums + 6 * j, of_column, sizeof of_column);
    }
    return 0;
}

/* Adds sum(weight u^2) of each column to `out`. */
API int64_t boostbp_column_squares(const double *Z, const double *weight, const double *scaling, double *restrict out,
                                   int64_t rows, int64_t columns)
{
    for (int64_t row = 0; row < rows; row++, Z += columns)
        for (int64_t j = 0; j < columns; j++)
            if (Z[j] != 0.0) {
                double u = standardised(Z[j], scaling + 4 * j);
                out[j] += weight[row] * (u * u);
            }
    return 0;
}

API int64_t boostbp_column_squares_sparse(ENTRIES, const double *weight, const double *scaling, double *out,
                                          int64_t columns, int64_t entries)
{
    for (int64_t j = 0; j < columns; j++) {
        int64_t end = leaf_at(indptr, ptr_bytes, j + 1);
        double total = out[j];
        for (int64_t k = leaf_at(indptr, ptr_bytes, j); k < end; k++)
            if (data[k] != 0.0) {
                double u = standardised(data[k], scaling + 4 * j);
                total += weight[leaf_at(indices, bytes, k)] * (u * u);
            }
        out[j] = total;
    }
    return 0;
}

/* ----------------------------------------------------------------- products of some columns, as `column` lists them */

enum { MANY = 16 }; /* row length from which the loop for this processor's registers is faster; arbitrary */

WIDE static void add_many(double *restrict to, double factor, const double *restrict from, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] += factor * from[i];
}

static inline void add_few(double *restrict to, double factor, const double *restrict from, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] += factor * from[i];
}

/* Adds `factor` times one row of numbers to another. */
static inline void add_row(double *to, double factor, const double *from, int64_t n)
{
    if (n >= MANY)
        add_many(to, factor, from, n);
    else
        add_few(to, factor, from, n);
}

/* Adds one row of U - zero, column by column, times MANY or more numbers of `from`, a step apart, to those of `to`. */
WIDE static void add_columns(const double *Z, const int32_t *column, const double *scaling, const double *zero,
                             int64_t columns, const double *from, int64_t from_step, double *to, int64_t to_step,
                             int64_t n)
{
    for (int64_t j = 0; j < columns; j++, from += from_step, to += to_step) {
        double z = Z[column[j]];
        if (z != 0.0) {
            const double *restrict one = from;
            double *restrict other = to, factor = standardised(z, scaling + 4 * j) - zero[j];
            for (int64_t i = 0; i < n; i++)
                other[i] += factor * one[i];
        }
    }
}

/* Adds (U - zero) V to `out`, (rows, outputs). */
API int64_t boostbp_add_products(const double *Z, const int32_t *column, const double *scaling, const double *zero,
                                 const double *V, double *out, int64_t rows, int64_t all_columns, int64_t columns,
                                 int64_t outputs)
{
    for (int64_t row = 0; row < rows; row++, Z += all_columns, out += outputs) {
        if (outputs >= MANY)
            add_columns(Z, column, scaling, zero, columns, V, outputs, out, 0, outputs);
        for (int64_t j = 0; j < columns && outputs < MANY; j++) {
            double z = Z[column[j]];
            if (z != 0.0)
                add_few(out, standardised(z, scaling + 4 * j) - zero[j], V + j * outputs, outputs);
        }
    }
    return 0;
}

API int64_t boostbp_add_products_sparse(ENTRIES, const int32_t *column, const double *scaling, const double *zero,
                                        const double *V, double *out, int64_t all_columns, int64_t entries,
                                        int64_t columns, int64_t outputs)
{
    for (int64_t j = 0; j < columns; j++) {
        int64_t end = leaf_at(indptr, ptr_bytes, column[j] + 1);
        for (int64_t k = leaf_at(indptr, ptr_bytes, column[j]); k < end; k++)
            if (data[k] != 0.0)
                add_row(out + leaf_at(indices, bytes, k) * outputs, standardised(data[k], scaling + 4 * j) - zero[j],
                        V + j * outputs, outputs);
    }
    return 0;
}

/* Adds (U - zero)' G to `out`, (columns, outputs). */
API int64_t boostbp_add_moments(const double *Z, const int32_t *column, const double *scaling, const double *zero,
                                const double *G, double *out, int64_t rows, int64_t all_columns, int64_t columns,
                                int64_t outputs)
{
    for (int64_t row = 0; row < rows; row++, Z += all_columns, G += outputs) {
        if (outputs >= MANY)
            add_columns(Z, column, scaling, zero, columns, G, 0, out, outputs, outputs);
        for (int64_t j = 0; j < columns && outputs < MANY; j++) {
            double z = Z[column[j]];
            if (z != 0.0)
                add_few(out + j * outputs, standardised(z, scaling + 4 * j) - zero[j], G, outputs);
        }
    }
    return 0;
}

API int64_t boostbp_add_moments_sparse(ENTRIES, const int32_t *column, const double *scaling, const double *zero,
                                       const double *G, double *out, int64_t all_columns, int64_t entries,
                                       int64_t columns, int64_t outputs)
{
    for (int64_t j = 0; j < columns; j++) {
        int64_t end = leaf_at(indptr, ptr_bytes, column[j] + 1);
        for (int64_t k = leaf_at(indptr, ptr_bytes, column[j]); k < end; k++)
            if (data[k] != 0.0)
                add_row(out + j * outputs, standardised(data[k], scaling + 4 * j) - zero[j],
                        G + leaf_at(indices, bytes, k) * outputs, outputs);
    }
    return 0;
}

/* Writes some columns of rows begin .. end - 1 into `out`, (rows, columns), which is zero. */
API int64_t boostbp_fill(ENTRIES, const int64_t *column, int64_t begin, int64_t end, double *out, int64_t all_columns,
                         int64_t entries, int64_t columns)
{
    for (int64_t j = 0; j < columns; j++) {
        int64_t k = leaf_at(indptr, ptr_bytes, column[j]), last = leaf_at(indptr, ptr_bytes, column[j] + 1);
        for (int64_t behind = last; k < behind;) { /* the first entry of these rows, by bisection */
            int64_t middle = k + (behind - k) / 2;
            if (leaf_at(indices, bytes, middle) < begin)
                k = middle + 1;
            else
                behind = middle;
        }
        for (; k < last && leaf_at(indices, bytes, k) < end; k++)
            out[(leaf_at(indices, bytes, k) - begin) * columns + j] = data[k];
    }
    return 0;
}
