/* Backward pass: the gradient in the columns of a forest, from the gradient in its outputs (equation (1)).

   A row with the output gradient g contributes sum_o g_o (w_jo + 2 u_j w_jjo) / scale_j to column j of its leaf, if u_j
   is in the range where the leaf has a slope; see evaluation.c. Blocks of rows are stored column by column, and grouped
   by leaf for each tree, so that the weights of a leaf stay in registers. The rows of a leaf are gathered, multiplied
   without a branch, and added to their places. */

#include "boostbp.h"

enum { MOST_ROWS = 2048, LEAST_ROWS = 256 }; /* of a block: the more columns, the fewer rows */
enum { CELLS = 1 << 20 };                    /* numbers in a block: 8 MB */

/* A column of the rows of one leaf. */
typedef struct {
    const uint16_t *rows; /* (n,) */
    int64_t n;
    const double *z; /* values of the rows of the block */
    double center, inverse, lower, upper, per_unit;
} column_t;

/* Adds g (linear + 2 u square) per_unit to the gradient of the rows of one leaf in one column, where u is in the range.

   Degree 1 has no `square`. Numbers of rows are volatile so that rows are copied one by one, which is faster than
   gather instructions. */
WIDE static void add_of_one_output(const column_t *column, const double *restrict g, double linear,
                                   const double *square, double *restrict part, double *restrict total)
{
    const volatile uint16_t *rows = column->rows;
    double center = column->center, inverse = column->inverse, lower = column->lower, upper = column->upper;
    double per_unit = column->per_unit, twice = square ? 2.0 * *square : 0.0;
    int64_t n = column->n;
#pragma GCC unroll 4
    for (int64_t i = 0; i < n; i++)
        part[i] = column->z[rows[i]];
    for (int64_t i = 0; i < n; i++) {
        double u = in_units(part[i], center, inverse), slope = square ? linear + u * twice : linear;
        part[i] = or_zero(g[i] * slope * per_unit, (u >= lower) & (u <= upper));
    }
#pragma GCC unroll 4
    for (int64_t i = 0; i < n; i++)
        total[rows[i]] += part[i];
}

/* Adds to the gradient of the rows of one leaf in one column for a tree that serves several outputs.

   Gradients and weights are multiplied first, as a slope may overflow float64 where the gradient is 0. */
static void add_of_several_outputs(const column_t *column, const double *G, int64_t stride, int64_t m,
                                   const double *linear, const double *square, double *total)
{
    for (int64_t i = 0; i < column->n; i++) {
        int64_t row = column->rows[i];
        const double *g = G + row * stride;
        double u = in_units(column->z[row], column->center, column->inverse), product = 0.0, curved = 0.0;
        if (!(u >= column->lower && u <= column->upper))
            continue;
        for (int64_t o = 0; o < m; o++)
            product += linear[o] * g[o];
        product *= column->per_unit;
        for (int64_t o = 0; o < m && square; o++)
            curved += square[o] * g[o];
        if (curved != 0.0)
            product += 2.0 * u * column->per_unit * curved;
        total[row] += product;
    }
}

/* Writes J' G of rows begin .. end - 1 to `out`, (rows, columns), for G, (rows, outputs). J is the Jacobian in units of
   each column. */
API int64_t boostbp_vjp(const leaves_t *leaves, const at_leaves_t *at, int64_t clip, const double *G,
                        const double *unit, int64_t begin, int64_t end, double *out, int64_t n_outputs)
{
    SCRATCH scratch = {0};
    int64_t n_columns = at->n_columns;
    int64_t most = least_of(most_of(least_of(CELLS / most_of(n_columns, 1), MOST_ROWS), LEAST_ROWS), end - begin);
    /* of a block: values and the gradient so far, (columns, most); rows grouped by leaf, and where each leaf begins */
    double *z = take(&scratch, n_columns * most, sizeof *z), *total = take(&scratch, n_columns * most, sizeof *total);
    uint16_t *order = take(&scratch, most, sizeof *order);
    int64_t *start = take(&scratch, largest_part(leaves->tree_leaf, leaves->n_trees) + 1, sizeof *start);
    double *g = take(&scratch, most, sizeof *g), *part = take(&scratch, most, sizeof *part); /* of one output, column */
    if (scratch.is_lacking)
        return LACKS_MEMORY;
    for (int64_t top = begin; top < end; top += most) {
        int64_t n = least_of(end - top, most);
        for (int64_t j = 0; j < n_columns; j++)
            for (int64_t i = 0; i < n; i++)
                z[j * most + i] = at->Z[(top + i) * n_columns + j];
        memset(total, 0, (size_t)(n_columns * most) * sizeof *total);
        for (int64_t tree = 0; tree < leaves->n_trees; tree++) {
            int64_t of_tree = leaves->tree_leaf[tree + 1] - leaves->tree_leaf[tree];
            const double *G_top = G + top * n_outputs + leaves->tree_output[2 * tree];
            sort_rows(at->leaf, at->bytes, tree * at->n_rows + top, n, of_tree, order, start);
            for (int64_t number = 0; number < of_tree; number++) {
                regression_t r = regression_of(leaves, tree, number);
                column_t column = {.rows = order + start[number], .n = start[number + 1] - start[number]};
                for (int64_t i = 0; i < column.n && r.m == 1; i++)
                    g[i] = G_top[column.rows[i] * n_outputs];
                for (int64_t j = 0; j < r.k; j++) {
                    const double *scaling = r.scaling + 4 * j, *square = r.degree == 2 ? r.square + j * r.m : NULL;
                    int64_t place = r.column[j];
                    column.z = z + place * most;
                    column.center = scaling[CENTER], column.inverse = scaling[INV_SCALE];
                    column.lower = clip ? scaling[LOWER] : -INFINITY;
                    column.upper = clip ? scaling[UPPER] : INFINITY;
                    column.per_unit = scaling[INV_SCALE] * unit[place];
                    if (column.inverse == 0.0 || !(column.lower < column.upper)) /* constant in the leaf */
                        continue;
                    if (r.m == 1)
                        add_of_one_output(&column, g, r.linear[j], square, part, total + place * most);
                    else
                        add_of_several_outputs(&column, G_top, n_outputs, r.m, r.linear + j * r.m, square,
                                               total + place * most);
                }
            }
        }
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n_columns; j++)
                out[(top + i) * n_columns + j] = total[j * most + i];
    }
    return 0;
}
