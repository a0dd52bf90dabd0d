/* Routing: the leaf that a row reaches under each tree, and the columns on the path to each leaf.

   A split sends a row left if x_feature <= threshold, if its set of categories contains x_feature, or if x_feature is
   missing and missing values go left. Numbers of children count within a tree; ~l is leaf l. */

#include "boostbp.h"

enum { FEW = 16 };                                    /* up to so many rows, a flat copy of the tree does not pay */
enum { FEATURE, MISSING_LEFT, RIGHT, LEFT, OF_NODE }; /* numbers of a node in a flat tree */

/* A numeric tree whose leaves are splits with themselves as children, so that each row takes the same number of steps.
   */
typedef struct {
    uint32_t *node;    /* OF_NODE numbers of each node, splits first, then leaves */
    double *threshold; /* of each node */
    uint32_t *todo;    /* scratch: nodes, each followed by its depth */
} flat_t;

/* Writes a tree to `flat`; returns the number of steps to its deepest leaf. */
static int64_t flatten(const nodes_t *nodes, int64_t first, int64_t n_splits, const flat_t *flat)
{
    for (int64_t i = 0, split = first; i < 2 * n_splits + 1; i++, split++) {
        uint32_t *node = flat->node + OF_NODE * i;
        int64_t is_split = i < n_splits, left = is_split ? nodes->left[split] : ~(i - n_splits);
        int64_t right = is_split ? nodes->right[split] : left;
        node[FEATURE] = is_split ? (uint32_t)nodes->feature[split] : 0;
        node[MISSING_LEFT] = is_split && nodes->missing_left[split];
        node[RIGHT] = (uint32_t)(right >= 0 ? right : n_splits + ~right);
        node[LEFT] = (uint32_t)(left >= 0 ? left : n_splits + ~left);
        flat->threshold[i] = is_split ? nodes->threshold[split] : 0.0;
    }
    uint32_t *todo = flat->todo;
    int64_t n_todo = 1, steps = 0;
    todo[0] = todo[1] = 0;
    while (n_todo > 0) { /* parents may come after their children */
        n_todo--;
        uint32_t node = todo[2 * n_todo], depth = todo[2 * n_todo + 1];
        if (depth > steps)
            steps = depth;
        for (int side = RIGHT; side <= LEFT && node < n_splits; side++, n_todo++) {
            todo[2 * n_todo] = flat->node[OF_NODE * (int64_t)node + side];
            todo[2 * n_todo + 1] = depth + 1;
        }
    }
    return steps;
}

/* Moves `n` rows one split down, without a branch on the data. */
WIDE static void step(const uint32_t *restrict node, const double *restrict threshold, const double *restrict X,
                 int64_t n_columns, int64_t n, uint32_t *restrict at)
{
    for (int64_t i = 0; i < n; i++, X += n_columns) {
        const uint32_t *here = node + OF_NODE * (size_t)at[i];
        double value = X[here[FEATURE]];
        uint32_t left = (value <= threshold[at[i]]) | ((value != value) & here[MISSING_LEFT]);
        at[i] = here[RIGHT + left];
    }
}

static int is_numeric(const nodes_t *nodes, int64_t first, int64_t last)
{
    for (int64_t i = first; i < last; i++)
        if (nodes->cat_start[i] >= 0)
            return 0;
    return last > first;
}

/* Writes the leaf of rows begin .. end - 1 under each tree to `leaf`, (trees, rows).

   Rows are processed in 32 tiles, which stay in cache while they pass through all trees. */
API int64_t boostbp_route(const nodes_t *nodes, const int64_t *tree_split, const double *X, int64_t begin, int64_t end,
                          void *leaf, int64_t bytes, int64_t n_trees, int64_t n_rows, int64_t n_columns)
{
    SCRATCH scratch = {0};
    int64_t n_nodes = 2 * largest_part(tree_split, n_trees) + 1;
    flat_t flat = {take(&scratch, OF_NODE * n_nodes, sizeof(uint32_t)), take(&scratch, n_nodes, sizeof(double)),
                   take(&scratch, 2 * n_nodes, sizeof(uint32_t))};
    uint32_t at[TILE]; /* current node of each row of a tile */
    if (scratch.is_lacking)
        return LACKS_MEMORY;
    for (int64_t first_row = begin; first_row < end; first_row += 32 * TILE) {
        int64_t last_row = least_of(end, first_row + 32 * TILE);
        for (int64_t tree = 0; tree < n_trees; tree++) {
            int64_t first = tree_split[tree], n_splits = tree_split[tree + 1] - first, place = tree * n_rows;
            if (last_row - first_row <= FEW || !is_numeric(nodes, first, first + n_splits)) {
                for (int64_t row = first_row; row < last_row; row++) { /* split by split */
                    int64_t node = n_splits > 0 ? 0 : ~INT64_C(0);
                    while (node >= 0) {
                        int64_t split = first + node;
                        node = goes_left(nodes, split, X + row * n_columns) ? nodes->left[split] : nodes->right[split];
                    }
                    put_leaf(leaf, bytes, place + row, ~node);
                }
                continue;
            }
            int64_t steps = flatten(nodes, first, n_splits, &flat);
            for (int64_t top = first_row; top < last_row; top += TILE) {
                int64_t n = least_of(last_row - top, TILE);
                memset(at, 0, n * sizeof *at);
                for (int64_t i = 0; i < steps; i++)
                    step(flat.node, flat.threshold, X + top * n_columns, n_columns, n, at);
                for (int64_t i = 0; i < n; i++)
                    put_leaf(leaf, bytes, place + top + i, at[i] - n_splits);
            }
        }
    }
    return 0;
}

/* Writes the numeric features from a split up to the root to `features`, ascending, each once; returns how many. */
static int64_t ascending(const nodes_t *nodes, int64_t first, const int32_t *parent, int64_t split, int32_t *features)
{
    int64_t n_features = 0;
    for (; split >= 0; split = parent[split]) {
        int32_t feature = nodes->feature[first + split];
        int64_t at = n_features;
        if (nodes->cat_start[first + split] >= 0)
            continue;
        while (at > 0 && features[at - 1] > feature)
            at--;
        if (at > 0 && features[at - 1] == feature)
            continue;
        memmove(features + at + 1, features + at, (n_features - at) * sizeof *features);
        features[at] = feature;
        n_features++;
    }
    return n_features;
}

/* Writes the columns on the path to each leaf of each tree, ascending, to `column`, and the first place of each leaf to
   `start`, (leaves of all trees + 1,). A numeric feature j has columns j * per_feature .. (j + 1) * per_feature - 1.

   Columns that do not fit `column` are not written; the last number of `start` is the length that is needed. */
API int64_t boostbp_paths_of(const nodes_t *nodes, const int64_t *tree_split, int64_t per_feature, int64_t *start,
                             int32_t *column, int64_t n_trees, int64_t n_leaves, int64_t room)
{
    SCRATCH scratch = {0};
    int64_t most = largest_part(tree_split, n_trees) + 1;
    int32_t *parent = take(&scratch, most, sizeof *parent), *leaf_parent = take(&scratch, most, sizeof *leaf_parent);
    int32_t *features = take(&scratch, most, sizeof *features);
    if (scratch.is_lacking)
        return LACKS_MEMORY;
    *start = 0;
    for (int64_t tree = 0; tree < n_trees; tree++) {
        int64_t first = tree_split[tree], n_splits = tree_split[tree + 1] - first;
        parent[0] = leaf_parent[0] = -1; /* of the root, which is leaf 0 if there are no splits */
        for (int64_t i = 0; i < n_splits; i++) {
            int32_t children[] = {nodes->left[first + i], nodes->right[first + i]};
            for (int side = 0; side < 2; side++)
                *(children[side] >= 0 ? parent + children[side] : leaf_parent + ~children[side]) = (int32_t)i;
        }
        for (int64_t leaf = 0; leaf <= n_splits; leaf++, start++) {
            int64_t n_features = ascending(nodes, first, parent, leaf_parent[leaf], features);
            start[1] = *start + n_features * per_feature;
            if (start[1] > room)
                continue;
            int32_t *out = column + *start;
            for (int64_t j = 0; j < n_features; j++)
                for (int64_t q = 0; q < per_feature; q++)
                    *out++ = (int32_t)(features[j] * per_feature + q);
        }
    }
    return 0;
}
