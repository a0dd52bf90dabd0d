/* Grouping of rows by leaf: bins of the input, partition of rows, and copies of path columns.

   The values of a column are in at most 255 ordered bins; bin MISSING is for NaN. `lower` and `upper`, (features, 256),
   are the smallest and the largest value in each bin. For most rows the bin, a single byte, decides the side of a
   split. Only for rows in the bin of the threshold is the value read, so routing is exact. */

#include "boostbp.h"
#include "stages.h"

enum { MISSING = 255, BINS = 256 };
enum { RIGHT = 0, LEFT = 1, ASK = 2 }; /* side to which a split sends a bin; ASK: read the value */
enum { BINNED = 512 };                 /* rows of a block, which is binned column by column; arbitrary */
enum { AT_ONCE = 8 };                  /* values whose bins are searched side by side */
enum { NEAR = 1 << 18 };               /* numbers that stay in the caches of a core: 2 MB */
enum { NARROW = 160 };                 /* most columns of which whole rows are read; measured: paths read too few of more */
enum { AHEAD = 16 };                   /* rows between one that is copied and one that is fetched from memory meanwhile */

/* Writes the bins of the values of X, (features, rows), and the ends of each bin.

   cuts: (features, 255), ascending, the last one infinite: the bin of a value is the number of cuts below it. */
API int64_t boostbp_put_in_bins(const double *X, const double *cuts, uint8_t *bins, double *lower, double *upper,
                                int64_t rows, int64_t features)
{
    for (int64_t i = 0; i < BINS * features; i++) {
        lower[i] = INFINITY;
        upper[i] = -INFINITY;
    }
    for (int64_t top = 0; top < rows; top += BINNED)
        for (int64_t j = 0; j < features; j++) {
            const double *of_column = cuts + MISSING * j;
            double *restrict low = lower + BINS * j, *restrict high = upper + BINS * j;
            uint8_t *restrict bin = bins + rows * j;
            for (int64_t row = top; row < top + BINNED && row < rows; row += AT_ONCE) {
                int64_t n = rows - row < AT_ONCE ? rows - row : AT_ONCE, number[AT_ONCE] = {0};
                double value[AT_ONCE];
                for (int64_t i = 0; i < AT_ONCE; i++)
                    value[i] = i < n ? X[(row + i) * features + j] : NAN;
                /* Several branch-free binary searches at a time, as each must wait for its last comparison. */
                for (int64_t step = 128; step > 0; step >>= 1)
                    for (int64_t i = 0; i < AT_ONCE; i++)
                        number[i] += step & -(int64_t)(of_column[number[i] + step - 1] < value[i]);
                for (int64_t i = 0; i < n; i++) {
                    int known = value[i] == value[i];
                    bin[row + i] = known ? (uint8_t)number[i] : MISSING;
                    low[number[i]] = lesser(low[number[i]], value[i]); /* of a missing value no comparison is true */
                    high[number[i]] = greater(high[number[i]], value[i]);
                }
            }
        }
    return 0;
}

void sides(const grouping_t *grouping, int64_t first, int64_t n_splits, const double *lower, const double *upper)
{
    const nodes_t *nodes = grouping->nodes;
    for (int64_t split = first; split < first + n_splits; split++) {
        uint8_t *to = grouping->to + BINS * (split - first);
        const double *low = lower + BINS * nodes->feature[split], *high = upper + BINS * nodes->feature[split];
        double threshold = nodes->threshold[split];
        if (nodes->cat_start[split] < 0)
            for (int bin = 0; bin < MISSING; bin++)
                to[bin] = high[bin] <= threshold ? LEFT : low[bin] > threshold ? RIGHT : ASK;
        else
            for (int bin = 0; bin < MISSING; bin++)
                to[bin] = low[bin] == high[bin] ? (uint8_t)sends_left(nodes, split, low[bin]) : ASK;
        to[MISSING] = nodes->missing_left[split];
    }
}

/* Groups n rows from `top` on by leaf, split by split, and writes their leaves under `tree`.

   order: leaf l has rows top + order[row_start[l] .. row_start[l + 1] - 1], ascending. */
static void partition(const grouping_t *grouping, int64_t first, int64_t n_splits, int64_t tree, int64_t top, int64_t n,
                      uint16_t *order, int64_t *row_start)
{
    const nodes_t *nodes = grouping->nodes;
    uint16_t *sorted = grouping->scratch, *right_rows = sorted + grouping->block_rows;
    int64_t *begin_of = grouping->room, *todo = begin_of + n_splits + 1; /* nodes: number, first row, end of its rows */
    for (int64_t i = 0; i < n; i++)
        sorted[i] = (uint16_t)i;
    /* A stack instead of a recursion holds the sibling of each node on the way down, and the node itself. */
    int64_t n_todo = 1;
    todo[0] = n_splits > 0 ? 0 : ~0;
    todo[1] = 0;
    todo[2] = n;
    while (n_todo > 0) {
        int64_t *node = todo + 3 * --n_todo, split = node[0], begin = node[1], end = node[2];
        if (split < 0) {
            begin_of[~split] = begin;
            row_start[~split + 1] = end - begin;
            continue;
        }
        const uint8_t *to = grouping->to + BINS * split;
        const uint8_t *bin = grouping->bins + grouping->n_rows * nodes->feature[first + split] + top;
        /* Each row is written to both sides, but only the end of its own side advances. A branch on the data would be
           mispredicted for every second row. Rows keep their order, and so do sums over a leaf. */
        int64_t middle = begin, n_right = 0;
        for (int64_t i = begin; i < end; i++) {
            uint16_t row = sorted[i];
            int64_t side = to[bin[row]];
            if (side == ASK)
                side = goes_left(nodes, first + split, grouping->X + (top + row) * grouping->n_features);
            sorted[middle] = right_rows[n_right] = row;
            middle += side;
            n_right += 1 - side;
        }
        memcpy(sorted + middle, right_rows, sizeof *sorted * (size_t)(end - middle));
        node[0] = nodes->right[first + split];
        node[1] = middle;
        node[2] = end;
        node[3] = nodes->left[first + split];
        node[4] = begin;
        node[5] = middle;
        n_todo += 2;
    }
    row_start[0] = 0;
    for (int64_t number = 0; number <= n_splits; number++) {
        uint16_t *of_leaf = order + row_start[number];
        memcpy(of_leaf, sorted + begin_of[number], sizeof *sorted * (size_t)row_start[number + 1]);
        for (int64_t i = 0; i < row_start[number + 1]; i++)
            put_leaf(grouping->leaf, grouping->bytes, tree * grouping->n_rows + top + of_leaf[i], number);
        row_start[number + 1] += row_start[number];
    }
}

/* Writes n rows from `top` on, sorted by their leaves under `tree`, to `order`; the first place of each leaf to
   `start`. */
API int64_t boostbp_group_rows(const void *leaf, int64_t bytes, int64_t tree, int64_t top, int64_t n, uint16_t *order,
                               int64_t *start, int64_t trees, int64_t rows, int64_t leaves)
{
    sort_rows(leaf, bytes, tree * rows + top, n, leaves, order, start);
    return 0;
}

/* Copies the path columns of rows sorted by leaf: for each leaf its columns in turn, each (rows of the leaf,).

   order, row_start: from `partition` or `group_rows`. Z: rows begin .. end - 1 of the block; the parts of a block come
   in order. at: (leaves,), the place in `order` that each leaf has reached, at first that of row_start; moved. */
API int64_t boostbp_group_paths(const uint16_t *order, const int64_t *row_start, const int64_t *path_start,
                                const int32_t *column, const double *Z, int64_t begin, int64_t end, int64_t *at,
                                double *values, int64_t rows, int64_t leaves, int64_t part, int64_t columns)
{
    for (int64_t leaf = 0; leaf < leaves; leaf++) {
        int64_t first = at[leaf], last = row_start[leaf + 1], n = last - row_start[leaf];
        if (end < rows)
            while (at[leaf] < last && order[at[leaf]] < end)
                at[leaf]++;
        else
            at[leaf] = last;
        double *restrict to = values + first - row_start[leaf];
        for (int64_t j = path_start[leaf]; j < path_start[leaf + 1]; j++, to += n)
            for (int64_t i = first; i < at[leaf]; i++)
                to[i - first] = Z[(order[i] - begin) * columns + column[j]];
        values += n * (path_start[leaf + 1] - path_start[leaf]);
    }
    return 0;
}

/* Does the same for n rows of which `leaf` has the leaves from place `first` on; at: (leaves,), scratch.

   Z, which is too large for the caches near the processor, is read once, as it lies in memory: each number goes to the
   end of its column in its leaf, and all these ends stay in cache. */
static void copy_by_rows(const void *leaf, int64_t bytes, int64_t first, int64_t n, const int64_t *row_start,
                         const int64_t *path_start, const int32_t *column, const double *Z, int64_t columns,
                         int64_t leaves, int64_t *at, double *values)
{
    int64_t place = 0;
    for (int64_t number = 0; number < leaves; number++) {
        at[number] = place;
        place += (row_start[number + 1] - row_start[number]) * (path_start[number + 1] - path_start[number]);
    }
    for (int64_t i = 0; i < n; i++, Z += columns) {
        if (i + AHEAD < n) {
            int64_t later = leaf_at(leaf, bytes, first + i + AHEAD);
            for (int64_t j = path_start[later]; j < path_start[later + 1]; j++)
                __builtin_prefetch(Z + AHEAD * columns + column[j]);
        }
        int64_t number = leaf_at(leaf, bytes, first + i), n_rows = row_start[number + 1] - row_start[number];
        const int32_t *path = column + path_start[number], *last = column + path_start[number + 1];
        for (double *restrict to = values + at[number]++; path < last; path++, to += n_rows)
            *to = Z[*path];
    }
}

int64_t open_grouping(grouping_t *grouping, int64_t most_splits)
{
    size_t n = (size_t)most_splits; /* `to`; where leaves begin, nodes to do, places reached; two lists of rows */
    size_t numbers = n * BINS / sizeof(int64_t) + 5 * n + 8, rows = 2 * (size_t)grouping->block_rows;
    int64_t *memory = malloc(sizeof *memory * numbers + sizeof(uint16_t) * rows);
    if (!memory)
        return -1;
    grouping->to = (uint8_t *)memory;
    grouping->room = memory + n * BINS / sizeof(int64_t);
    grouping->scratch = (uint16_t *)(memory + numbers);
    return 0;
}

void close_grouping(grouping_t *grouping)
{
    free(grouping->to);
}

void group_tree(const grouping_t *grouping, int64_t first, int64_t n_splits, int64_t tree, int64_t top, int64_t n,
                const int64_t *path_start, const int32_t *column, uint16_t *order, double *values, int64_t *row_start)
{
    int64_t *at = grouping->room; /* `partition` needs it no more */
    const double *Z = grouping->Z + top * grouping->n_columns;
    partition(grouping, first, n_splits, tree, top, n, order, row_start);
    if (n * grouping->n_columns > NEAR && grouping->n_columns <= NARROW) {
        copy_by_rows(grouping->leaf, grouping->bytes, tree * grouping->n_rows + top, n, row_start, path_start, column, Z,
                     grouping->n_columns, n_splits + 1, at, values);
        return;
    }
    memcpy(at, row_start, sizeof *at * (size_t)(n_splits + 1));
    boostbp_group_paths(order, row_start, path_start, column, Z, 0, n, at, values, n, n_splits + 1, n,
                        grouping->n_columns);
}

/* Groups one block of rows by the leaves of one tree; see `partition` and `group_paths`. */
API int64_t boostbp_group_block(const nodes_t *nodes, const uint8_t *bins, const double *lower, const double *upper,
                                const double *X, const double *Z, int64_t top, const int64_t *path_start,
                                const int32_t *column, void *leaf, int64_t bytes, uint16_t *order, double *values,
                                int64_t *row_start, int64_t splits, int64_t features, int64_t rows, int64_t columns,
                                int64_t leaves, int64_t of_block)
{
    grouping_t grouping = {.nodes = nodes, .bins = bins, .X = X, .Z = Z, .n_rows = rows, .n_features = features,
                           .n_columns = columns, .leaf = leaf, .bytes = bytes, .block_rows = of_block};
    if (open_grouping(&grouping, splits))
        return -1;
    sides(&grouping, 0, splits, lower, upper);
    group_tree(&grouping, 0, splits, 0, top, of_block, path_start, column, order, values, row_start);
    close_grouping(&grouping);
    return 0;
}
