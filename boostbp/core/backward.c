/* Backward pass: the gradient in the columns of a forest, from the gradient in its outputs (equation (1)).

   A row with the output gradient g contributes sum_o g_o (w_jo + 2 u_j w_jjo) / scale_j to column j of its leaf, if u_j
   is in the range where the leaf has a slope; see evaluation.c. Blocks of rows are stored column by column, and grouped
   by leaf for each tree, so that the weights of a leaf stay in registers. The rows of a leaf are gathered, multiplied
   without a branch, and added to their places. */

#include "boostbp.h"
#include "stages.h"

enum { MOST_ROWS = 2048, LEAST_ROWS = 256 }; /* of a block: the more columns, the fewer rows */
enum { CELLS = 1 << 20 };                    /* numbers in a block: 8 MB */

/* A block of rows, and those of one leaf among them. */
typedef struct {
    double *z, *total;  /* (columns, most rows): values, and the gradient so far */
    uint16_t *order;    /* (most rows,), grouped by leaf */
    double *g, *part;   /* (most rows,), of a leaf: gradients of an output, and a column */
    int64_t *row_start; /* (leaves + 1,) of a tree: first place of each leaf in `order` */
    int64_t most;
} block_t;

static void take_columns(const double *Z, int64_t n_rows, int64_t n_columns, const block_t *block)
{
    for (int64_t j = 0; j < n_columns; j++) {
        for (int64_t i = 0; i < n_rows; i++)
            block->z[j * block->most + i] = Z[i * n_columns + j];
        memset(block->total + j * block->most, 0, n_rows * sizeof(double));
    }
}

/* Adds g (linear + 2 u square) per_unit to the gradient of the rows of one leaf in one column, where u is in the range.

   Degree 1 has no `square`. Numbers of rows are volatile so that rows are copied one by one, which is faster than
   gather instructions. */
WIDE static void add_of_one_output(const uint16_t *order, int64_t n, const double *restrict g, const double *scaling,
                                   double lower, double upper, double linear, const double *square, double per_unit,
                                   const double *restrict z, double *restrict part, double *restrict total)
{
    const volatile uint16_t *rows = order;
    double center = scaling[CENTER], inverse = scaling[INV_SCALE], twice = square ? 2.0 * *square : 0.0;
#pragma GCC unroll 4
    for (int64_t i = 0; i < n; i++)
        part[i] = z[rows[i]];
    if (square)
        for (int64_t i = 0; i < n; i++) {
            double u = (part[i] - center) * inverse;
            part[i] = or_zero(g[i] * (linear + u * twice) * per_unit, (u >= lower) & (u <= upper));
        }
    else
        for (int64_t i = 0; i < n; i++) {
            double u = (part[i] - center) * inverse;
            part[i] = or_zero(g[i] * linear * per_unit, (u >= lower) & (u <= upper));
        }
#pragma GCC unroll 4
    for (int64_t i = 0; i < n; i++)
        total[rows[i]] += part[i];
}

/* Adds to the gradient of the rows of one leaf in one column for a tree that serves several outputs.

   Gradients and weights are multiplied first, as a slope may overflow float64 where the gradient is 0. */
static void add_of_several_outputs(const uint16_t *rows, int64_t n, const double *G, int64_t stride, int64_t m,
                                   const double *scaling, double lower, double upper, const double *linear,
                                   const double *square, double per_unit, const double *z, double *total)
{
    for (int64_t i = 0; i < n; i++) {
        const double *g = G + rows[i] * stride;
        double u = (z[rows[i]] - scaling[CENTER]) * scaling[INV_SCALE], product = 0.0, curved = 0.0;
        if (!(u >= lower && u <= upper))
            continue;
        for (int64_t o = 0; o < m; o++)
            product += linear[o] * g[o];
        product *= per_unit;
        for (int64_t o = 0; o < m && square; o++)
            curved += square[o] * g[o];
        if (curved != 0.0)
            product += 2.0 * u * per_unit * curved;
        total[rows[i]] += product;
    }
}

/* Adds to the gradient of the rows of one leaf; G points to the first row of the block and first output of the tree. */
static void add_leaf(const leaves_t *leaves, int64_t tree, int64_t number, const block_t *block, int64_t clip,
                     const double *G, int64_t stride, const double *unit)
{
    const uint16_t *rows = block->order + block->row_start[number];
    int64_t n = block->row_start[number + 1] - block->row_start[number], degree = leaves->tree_degree[tree];
    int64_t leaf = leaves->tree_leaf[tree] + number, m = leaves->tree_output[2 * tree + 1];
    int64_t path = leaves->start[leaf], k = leaves->start[leaf + 1] - path;
    const double *w = leaves->weight + leaves->weight_start[leaf];
    for (int64_t i = 0; i < n && m == 1; i++)
        block->g[i] = G[rows[i] * stride];
    for (int64_t j = 0; j < k; j++) {
        int64_t column = leaves->column[path + j];
        const double *scaling = leaves->scaling + 4 * (path + j), *linear = w + (1 + j) * m;
        const double *square = degree == 2 ? w + (1 + k + j) * m : NULL;
        double *z = block->z + column * block->most, *total = block->total + column * block->most;
        double lower = clip ? scaling[LOWER] : -INFINITY, upper = clip ? scaling[UPPER] : INFINITY;
        double per_unit = scaling[INV_SCALE] * unit[column];
        if (scaling[INV_SCALE] == 0.0 || !(lower < upper)) /* the column is constant in the leaf */
            continue;
        if (m > 1) {
            add_of_several_outputs(rows, n, G, stride, m, scaling, lower, upper, linear, square, per_unit, z, total);
            continue;
        }
        add_of_one_output(rows, n, block->g, scaling, lower, upper, *linear, square, per_unit, z, block->part, total);
    }
}

/* Writes J' G of rows begin .. end - 1 to `out`, (rows, columns), for G, (rows, outputs). J is the Jacobian in units of
   each column. */
API int64_t boostbp_vjp(const leaves_t *leaves, const void *leaf, int64_t bytes, const double *Z, int64_t clip,
                        const double *G, const double *unit, int64_t begin, int64_t end, double *out, int64_t n_trees,
                        int64_t n_leaves, int64_t n_paths, int64_t n_rows, int64_t n_columns, int64_t n_outputs)
{
    int64_t most = CELLS / (n_columns > 0 ? n_columns : 1);
    most = most > MOST_ROWS ? MOST_ROWS : most < LEAST_ROWS ? LEAST_ROWS : most;
    most = most > end - begin ? end - begin : most;
    size_t cells = (size_t)n_columns * (size_t)most + 1, rows = (size_t)most + 1;
    size_t most_leaves = (size_t)largest_part(leaves->tree_leaf, n_trees);
    block_t block = {malloc(cells * sizeof(double)), malloc(cells * sizeof(double)), malloc(rows * sizeof(uint16_t)),
                     malloc(rows * sizeof(double)), malloc(rows * sizeof(double)),
                     malloc((most_leaves + 1) * sizeof(int64_t)), most};
    int failed = !block.z || !block.total || !block.order || !block.g || !block.part || !block.row_start;
    for (int64_t top = begin; top < end && !failed; top += most) {
        int64_t n = end - top < most ? end - top : most;
        take_columns(Z + top * n_columns, n, n_columns, &block);
        for (int64_t tree = 0; tree < n_trees; tree++) {
            int64_t of_tree = leaves->tree_leaf[tree + 1] - leaves->tree_leaf[tree];
            const double *g = G + top * n_outputs + leaves->tree_output[2 * tree];
            sort_rows(leaf, bytes, tree * n_rows + top, n, of_tree, block.order, block.row_start);
            for (int64_t number = 0; number < of_tree; number++)
                add_leaf(leaves, tree, number, &block, clip, g, n_outputs, unit);
        }
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n_columns; j++)
                out[(top + i) * n_columns + j] = block.total[j * most + i];
    }
    free(block.z);
    free(block.total);
    free(block.order);
    free(block.g);
    free(block.part);
    free(block.row_start);
    return failed ? -1 : 0;
}
