/* Fit of whole trees in one call: group, sum, solve and evaluate, block by block.

   The steps are those of the additive path (`leaf_ranges`, `leaf_sums`, `solve_leaves`, `add_values`), and blocks are
   added in the same order, so both give the same bits. */

#include "boostbp.h"
#include "stages.h"

static int is_one(const double *h, int64_t n)
{
    int64_t different = 0;
    for (int64_t i = 0; i < n; i++)
        different += h[i] != 1.0;
    return different == 0;
}

static void add_to(double *restrict total, const double *restrict part, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        total[i] += part[i];
}

static void add_ranges(double *restrict ranges, const double *restrict others, int64_t paths)
{
    for (int64_t i = 0; i < 4 * paths; i += 4) {
        ranges[i] = lesser(ranges[i], others[i]);
        ranges[i + 1] = greater(ranges[i + 1], others[i + 1]);
        ranges[i + 2] += others[i + 2];
        ranges[i + 3] += others[i + 3];
    }
}

/* Whether two trees of n splits, which begin at `first` and `other`, have the same structure. */
static int alike(const nodes_t *nodes, int64_t first, int64_t other, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t a = first + i, b = other + i;
        if (nodes->feature[a] != nodes->feature[b] || nodes->left[a] != nodes->left[b]
            || nodes->right[a] != nodes->right[b] || nodes->missing_left[a] != nodes->missing_left[b]
            || nodes->cat_start[a] != nodes->cat_start[b] || nodes->cat_words[a] != nodes->cat_words[b]
            || (nodes->threshold[a] != nodes->threshold[b] && nodes->cat_start[a] < 0)) /* it is NaN for a set */
            return 0;
    }
    return 1;
}

/* The current tree, and memory for the sums of any tree of the fit. */
typedef struct {
    int64_t n_leaves, n_paths, n_weights, n_gram;
    int64_t *row_start, *paths; /* (blocks, leaves + 1), (leaves + 1,) */
    double *ranges, *of_block;  /* (paths, 4), twice */
    double *center, *scale, *fill;
    double *gram, *part; /* Gram matrices; those of one block, with the moments behind them */
} tree_t;

/* Allocates memory for the largest of the trees; -1 if it is lacking. */
static int64_t open_tree(tree_t *tree, const int64_t *tree_split, const int64_t *start, int64_t trees, int64_t n_blocks,
                         int64_t degree)
{
    size_t leaves = 1, paths = 0, gram = 0;
    const int64_t *of_leaf = start;
    for (int64_t k = 0; k < trees; k++) {
        size_t n_leaves = (size_t)(tree_split[k + 1] - tree_split[k] + 1), n_paths, n_gram = 0;
        for (size_t leaf = 0; leaf < n_leaves; leaf++) {
            size_t p = (size_t)(1 + degree * (of_leaf[leaf + 1] - of_leaf[leaf]));
            n_gram += p * p;
        }
        n_paths = (size_t)(of_leaf[n_leaves] - of_leaf[0]);
        of_leaf += n_leaves;
        leaves = n_leaves > leaves ? n_leaves : leaves;
        paths = n_paths > paths ? n_paths : paths;
        gram = n_gram > gram ? n_gram : gram;
    }
    size_t weights = leaves + (size_t)degree * paths;
    tree->row_start = malloc(sizeof(int64_t) * (leaves + 1) * (size_t)(n_blocks + 1));
    tree->ranges = malloc(sizeof(double) * (11 * paths + 2 * gram + weights));
    if (!tree->row_start || !tree->ranges) {
        free(tree->row_start);
        free(tree->ranges);
        return -1;
    }
    tree->paths = tree->row_start + (leaves + 1) * (size_t)n_blocks;
    tree->of_block = tree->ranges + 4 * paths;
    tree->center = tree->of_block + 4 * paths;
    tree->scale = tree->center + paths;
    tree->fill = tree->scale + paths;
    tree->gram = tree->fill + paths;
    tree->part = tree->gram + gram;
    return 0;
}

/* Sets the current tree to that of some leaves. */
static void begin_tree(tree_t *tree, const int64_t *start, int64_t n_leaves, int64_t degree)
{
    tree->n_leaves = n_leaves;
    tree->n_paths = start[n_leaves] - start[0];
    tree->n_weights = n_leaves + degree * tree->n_paths;
    tree->n_gram = 0;
    for (int64_t leaf = 0; leaf <= n_leaves; leaf++)
        tree->paths[leaf] = start[leaf] - start[0];
    for (int64_t leaf = 0; leaf < n_leaves; leaf++) {
        int64_t p = 1 + degree * (start[leaf + 1] - start[leaf]);
        tree->n_gram += p * p;
    }
}

/* Writes the scaling of each path column, and the units in which the sums read it.

   Without `standardize`, weights are penalised in the user's units, as in the paper: the sums are in these units, and
   the solution is rescaled later. */
static void scale_paths(tree_t *tree, int64_t standardize, double *scaling)
{
    for (int64_t j = 0; j < tree->n_paths; j++, scaling += 4) {
        scaling_of(tree->ranges + 4 * j, standardize ? 0.0 : 1.0, scaling);
        tree->center[j] = standardize ? scaling[CENTER] : 0.0;
        tree->scale[j] = standardize ? scaling[INV_SCALE] : 1.0;
        tree->fill[j] = standardize ? 0.0 : scaling[CENTER];
    }
}

/* Fits the leaves of trees that serve one output each, and adds their values to the running fit.

   nodes, tree_split: splits of all trees, and the first of each; start, column: from `paths_of`; bins, lower, upper:
   from `put_in_bins`; grad: (trees, rows); hess: (trees, rows) or (1, rows); block_rows: rows whose sums are taken
   together, at most 2^16; order, (rows,), and values, (rows x most path columns of a leaf,): scratch. Written: scaling,
   (path columns, 4), and weight, (terms,), of the leaves of all trees, and leaf numbers, (trees, rows). Added to: out,
   (trees, rows). A tree with the structure of the previous one reuses its grouping of rows. */
API int64_t boostbp_fit_trees(const nodes_t *nodes, const int64_t *tree_split, const int64_t *start,
                              const int32_t *column, const uint8_t *bins, const double *lower, const double *upper,
                              const double *X, const double *Z, int64_t degree, const double *grad, const double *hess,
                              double penalty, int64_t penalize_constant, int64_t standardize, double learning_rate,
                              int64_t block_rows, uint16_t *order, double *values, double *scaling, double *weight,
                              void *leaf, int64_t bytes, double *out, int64_t splits, int64_t trees, int64_t leaves,
                              int64_t paths, int64_t features, int64_t rows, int64_t columns, int64_t hessians)
{
    grouping_t grouping = {.nodes = nodes, .bins = bins, .X = X, .Z = Z, .n_rows = rows, .n_features = features,
                           .n_columns = columns, .leaf = leaf, .bytes = bytes, .block_rows = block_rows};
    tree_t of;
    int64_t n_blocks = rows > 0 ? (rows + block_rows - 1) / block_rows : 1, failed = 0;
    int64_t most = largest_part(start, leaves);
    if (open_grouping(&grouping, largest_part(tree_split, trees)))
        return -1;
    if (open_tree(&of, tree_split, start, trees, n_blocks, degree)) {
        close_grouping(&grouping);
        return -1;
    }
    int unit = hessians == 1 && is_one(hess, rows);
    for (int64_t tree = 0; tree < trees && !failed; tree++) {
        int64_t first = tree_split[tree], n_splits = tree_split[tree + 1] - first;
        int64_t before = tree > 0 ? tree_split[tree - 1] : 0;
        begin_tree(&of, start, n_splits + 1, degree);
        if (hessians > 1)
            unit = is_one(hess + tree * rows, rows);
        const double *h = hess + (hessians > 1 ? tree * rows : 0);
        int64_t n_hess = unit ? 0 : rows;
        int grouped = tree > 0 && first - before == n_splits && alike(nodes, first, before, n_splits);
        if (grouped)
            memcpy((char *)leaf + tree * rows * bytes, (char *)leaf + (tree - 1) * rows * bytes,
                   (size_t)(rows * bytes));
        else
            sides(&grouping, first, n_splits, lower, upper);
        for (int64_t block = 0; block < n_blocks && !failed; block++) {
            int64_t top = block * block_rows, n = rows - top < block_rows ? rows - top : block_rows;
            int64_t *row_start = of.row_start + block * (of.n_leaves + 1);
            if (!grouped)
                group_tree(&grouping, first, n_splits, tree, top, n, of.paths, column + start[0], order + top,
                      values + top * most, row_start);
            failed |= boostbp_leaf_ranges(row_start, order + top, top, of.paths, values + top * most, h,
                                          block == 0 ? of.ranges : of.of_block, of.n_leaves, n, n_hess, of.n_paths);
            if (block > 0)
                add_ranges(of.ranges, of.of_block, of.n_paths);
        }
        scale_paths(&of, standardize, scaling);
        memset(of.gram, 0, sizeof *of.gram * (size_t)of.n_gram);
        memset(weight, 0, sizeof *weight * (size_t)of.n_weights);
        for (int64_t block = 0; block < n_blocks && !failed; block++) {
            int64_t top = block * block_rows, n = rows - top < block_rows ? rows - top : block_rows;
            double *gram = block == 0 ? of.gram : of.part, *moment = block == 0 ? weight : of.part + of.n_gram;
            if (block > 0)
                memset(of.part, 0, sizeof *of.part * (size_t)(of.n_gram + of.n_weights));
            failed |= boostbp_leaf_sums(of.row_start + block * (of.n_leaves + 1), order + top, top, of.paths,
                                        values + top * most, of.center, of.scale, of.fill, degree, grad + tree * rows,
                                        h, gram, moment, of.n_leaves, n, of.n_paths, 1, rows, n_hess);
            if (block > 0) {
                add_to(of.gram, gram, of.n_gram);
                add_to(weight, moment, of.n_weights);
            }
        }
        failed |= boostbp_solve_leaves(of.paths, degree, 1, of.gram, weight, penalty, penalize_constant, learning_rate,
                                       of.n_leaves);
        if (!standardize)
            failed |= boostbp_scale_weights(of.paths, degree, 1, scaling, weight, of.n_leaves, of.n_paths);
        for (int64_t block = 0; block < n_blocks && !failed; block++) {
            int64_t top = block * block_rows;
            boostbp_add_values(of.row_start + block * (of.n_leaves + 1), order + top, top, of.paths,
                               values + top * most, degree, scaling, weight, out + tree * rows, of.n_leaves, 1, rows);
        }
        start += of.n_leaves;
        scaling += 4 * of.n_paths;
        weight += of.n_weights;
    }
    free(of.row_start);
    free(of.ranges);
    close_grouping(&grouping);
    return failed ? -1 : 0;
}
