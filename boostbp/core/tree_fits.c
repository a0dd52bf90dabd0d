/* Fit of whole trees in one call: group, sum, solve and evaluate, block by block.

   The steps are those of the additive path (`leaf_ranges`, `leaf_sums`, `solve_leaves`, `add_values`), and blocks are
   added in the same order, so both give the same bits. */

#include "boostbp.h"

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
    for (int64_t a = first, b = other; a < first + n; a++, b++)
        if (nodes->feature[a] != nodes->feature[b] || nodes->left[a] != nodes->left[b]
            || nodes->right[a] != nodes->right[b] || nodes->missing_left[a] != nodes->missing_left[b]
            || nodes->cat_start[a] != nodes->cat_start[b] || nodes->cat_words[a] != nodes->cat_words[b]
            || (nodes->threshold[a] != nodes->threshold[b] && nodes->cat_start[a] < 0)) /* it is NaN for a set */
            return 0;
    return 1;
}

/* Writes the scaling of each path column, and the units in which the sums read it: center, inverse scale, and the u of a
   missing value, (3, paths).

   Without `standardize`, weights are penalised in the user's units, as in the paper: the sums are in these units, and
   the solution is rescaled later. */
static void scale_paths(const double *ranges, int64_t paths, int64_t standardize, double *scaling, double *units)
{
    for (int64_t j = 0; j < paths; j++, scaling += 4) {
        scaling_of(ranges + 4 * j, standardize ? 0.0 : 1.0, scaling);
        units[j] = standardize ? scaling[CENTER] : 0.0;
        units[paths + j] = standardize ? scaling[INV_SCALE] : 1.0;
        units[2 * paths + j] = standardize ? 0.0 : scaling[CENTER];
    }
}

/* Writes where the leaves of a tree begin among its path columns; returns the size of their Gram matrices. */
static int64_t paths_of_tree(const int64_t *start, int64_t n_leaves, int64_t degree, int64_t *path_start)
{
    int64_t n_gram = 0;
    path_start[0] = 0;
    for (int64_t leaf = 0; leaf < n_leaves; leaf++) {
        int64_t p = 1 + degree * (start[leaf + 1] - start[leaf]);
        path_start[leaf + 1] = start[leaf + 1] - start[0];
        n_gram += p * p;
    }
    return n_gram;
}

/* Fits the leaves of trees that serve one output each, and adds their values to the running fit.

   nodes, tree_split: splits of all trees, and the first of each; leaves: from `paths_of`, their scalings and weights are
   written; derivatives: of one output for each tree. Written: leaf numbers, (trees, rows). Added to: out, (trees, rows).
   A tree with the structure of the previous one reuses its grouping of rows. */
int64_t fit_trees(const nodes_t *nodes, const int64_t *tree_split, const leaves_t *leaves, const binned_t *in,
                  const derivatives_t *derivatives, const ridge_t *ridge, const space_t *space, void *leaf,
                  int64_t bytes, double *out)
{
    SCRATCH scratch = {0};
    int64_t n_hess = 0, failed = 0, standardize = ridge->standardize, block_rows = ridge->block_rows;
    grouping_t grouping = {.nodes = nodes, .in = in, .leaf = leaf, .bytes = bytes};
    int64_t n_trees = leaves->n_trees, n_rows = in->n_rows, degree = n_trees > 0 ? *leaves->tree_degree : 1;
    int64_t n_blocks = most_of(1, (n_rows + block_rows - 1) / block_rows), most = largest_part(tree_split, n_trees) + 1;
    int64_t *path_start = take(&scratch, most + 1, sizeof *path_start), most_paths = 0, most_gram = 0;
    int64_t *row_start = take(&scratch, n_blocks * (most + 1), sizeof *row_start);
    leaf_rows_t *rows = take(&scratch, n_blocks, sizeof *rows);
    if (scratch.is_lacking)
        return LACKS_MEMORY;
    for (int64_t tree = 0; tree < n_trees; tree++) {
        int64_t n_leaves = tree_split[tree + 1] - tree_split[tree] + 1;
        most_gram = most_of(most_gram, paths_of_tree(leaves->start + leaves->tree_leaf[tree], n_leaves, degree,
                                                     path_start));
        most_paths = most_of(most_paths, path_start[n_leaves]);
    }
    double *ranges = take(&scratch, 4 * most_paths, sizeof *ranges), *others = take(&scratch, 4 * most_paths, 8);
    double *units = take(&scratch, 3 * most_paths, sizeof *units), *gram = take(&scratch, most_gram, sizeof *gram);
    double *part = take(&scratch, most_gram + most + degree * most_paths, sizeof *part); /* sums of one block */
    int64_t widest = largest_part(leaves->start, leaves->n_leaves);
    open_grouping(&grouping, &scratch, most - 1, block_rows, widest);
    if (scratch.is_lacking)
        return LACKS_MEMORY;
    for (int64_t block = 0; block < n_blocks; block++) {
        int64_t top = block * block_rows;
        rows[block] = (leaf_rows_t){.first = top, .order = space->order + top, .path_start = path_start,
                                    .values = space->values + top * widest,
                                    .n_grouped = least_of(n_rows - top, block_rows)};
    }
    for (int64_t tree = 0; tree < n_trees && !failed; tree++) {
        int64_t first = tree_split[tree], n_leaves = tree_split[tree + 1] - first + 1, of_first = leaves->tree_leaf[tree];
        int64_t before = tree > 0 ? tree_split[tree - 1] : 0, path = leaves->start[of_first];
        int64_t n_gram = paths_of_tree(leaves->start + of_first, n_leaves, degree, path_start);
        int64_t n_paths = path_start[n_leaves], n_weights = n_leaves + degree * n_paths;
        double *scaling = leaves->scaling + 4 * path, *weight = leaves->weight + leaves->weight_start[of_first];
        const double *h = derivatives->hess + (derivatives->n_hessians > 1 ? tree * n_rows : 0);
        const double *g = derivatives->grad + tree * n_rows;
        double *fit = out + tree * n_rows;
        if (tree == 0 || derivatives->n_hessians > 1)
            n_hess = is_one(h, n_rows) ? 0 : n_rows;
        int grouped = tree > 0 && first - before == n_leaves - 1 && alike(nodes, first, before, n_leaves - 1);
        if (grouped)
            memcpy((char *)leaf + tree * n_rows * bytes, (char *)leaf + (tree - 1) * n_rows * bytes,
                   (size_t)(n_rows * bytes));
        else
            find_moves(&grouping, first, n_leaves - 1);
        for (int64_t block = 0; block < n_blocks; block++) {
            rows[block].n_leaves = n_leaves;
            rows[block].start = row_start + block * (n_leaves + 1);
            if (!grouped)
                group_tree(&grouping, first, tree, leaves->column + path, rows + block);
            boostbp_leaf_ranges(rows + block, h, block > 0 ? others : ranges, n_hess, n_paths);
            if (block > 0)
                add_ranges(ranges, others, n_paths);
        }
        scale_paths(ranges, n_paths, standardize, scaling, units);
        memset(gram, 0, sizeof *gram * (size_t)n_gram);
        memset(weight, 0, sizeof *weight * (size_t)n_weights);
        for (int64_t block = 0; block < n_blocks; block++) {
            double *of_block = block > 0 ? part : gram, *moment = block > 0 ? part + n_gram : weight;
            if (block > 0)
                memset(part, 0, sizeof *part * (size_t)(n_gram + n_weights));
            failed |= boostbp_leaf_sums(rows + block, units, degree, g, h, of_block, moment, n_paths, 1, n_rows, n_hess);
            if (block > 0) {
                add_to(gram, part, n_gram);
                add_to(weight, part + n_gram, n_weights);
            }
        }
        failed |= boostbp_solve_leaves(path_start, degree, 1, gram, weight, ridge->penalty, ridge->penalize_constant,
                                       ridge->learning_rate, n_leaves);
        if (!standardize)
            boostbp_scale_weights(path_start, degree, 1, scaling, weight, n_leaves, n_paths);
        for (int64_t block = 0; block < n_blocks; block++)
            boostbp_add_values(rows + block, degree, scaling, weight, fit, 1, n_rows);
    }
    return failed ? LACKS_MEMORY : 0;
}
