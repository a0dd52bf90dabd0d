/* Grouping of rows by leaf: bins of the input, partition of rows, and copies of path columns.

   The values of a column are in at most 255 ordered bins; bin MISSING is for NaN. `lower` and `upper`, (features, 256),
   are the smallest and the largest value in each bin. For most rows the bin, a single byte, decides the side of a
   split. Only for rows in the bin of the threshold is the value read, so routing is exact. */

#include "boostbp.h"

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
                int64_t n = least_of(rows - row, AT_ONCE), number[AT_ONCE] = {0};
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

void sides(const grouping_t *grouping, int64_t first, int64_t n_splits)
{
    const nodes_t *nodes = grouping->nodes;
    uint8_t *to = grouping->to;
    for (int64_t split = first; split < first + n_splits; split++, to += BINS) {
        const double *low = grouping->in->lower + BINS * nodes->feature[split];
        const double *high = grouping->in->upper + BINS * nodes->feature[split];
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

/* Groups the rows of a block by leaf, split by split, and writes their leaves under `tree`. */
static void partition(const grouping_t *grouping, int64_t first, int64_t tree, const leaf_rows_t *rows)
{
    const nodes_t *nodes = grouping->nodes;
    const binned_t *in = grouping->in;
    uint16_t *sorted = grouping->sorted, *right_rows = grouping->right_rows;
    int64_t top = rows->first, *start = rows->start, *begin_of = grouping->room;
    int64_t *todo = begin_of + rows->n_leaves, n_todo = 3; /* nodes: number, first row, end of its rows */
    for (int64_t i = 0; i < rows->n_rows; i++)
        sorted[i] = (uint16_t)i;
    /* A stack instead of a recursion holds the sibling of each node on the way down, and the node itself. */
    todo[0] = rows->n_leaves > 1 ? 0 : ~0, todo[1] = 0, todo[2] = rows->n_rows;
    while (n_todo > 0) {
        int64_t *node = todo + (n_todo -= 3), split = first + node[0], begin = node[1], end = node[2];
        if (node[0] < 0) {
            begin_of[~node[0]] = begin;
            start[~node[0] + 1] = end - begin;
            continue;
        }
        const uint8_t *to = grouping->to + BINS * node[0];
        const uint8_t *bin = in->bins + in->n_rows * nodes->feature[split] + top;
        /* Each row is written to both sides, but only the end of its own side advances. A branch on the data would be
           mispredicted for every second row. Rows keep their order, and so do sums over a leaf. */
        int64_t middle = begin, n_right = 0;
        for (int64_t i = begin; i < end; i++) {
            uint16_t row = sorted[i];
            int64_t side = to[bin[row]];
            if (side == ASK)
                side = goes_left(nodes, split, in->X + (top + row) * in->n_features);
            sorted[middle] = right_rows[n_right] = row;
            middle += side;
            n_right += 1 - side;
        }
        memcpy(sorted + middle, right_rows, sizeof *sorted * (size_t)(end - middle));
        node[0] = nodes->right[split], node[1] = middle, node[2] = end;
        node[3] = nodes->left[split], node[4] = begin, node[5] = middle;
        n_todo += 6;
    }
    start[0] = 0;
    for (int64_t leaf = 0; leaf < rows->n_leaves; leaf++) {
        uint16_t *of_leaf = rows->order + start[leaf];
        int64_t n = start[leaf + 1], place = tree * in->n_rows + top; /* no record is read again after each byte */
        memcpy(of_leaf, sorted + begin_of[leaf], sizeof *sorted * (size_t)n);
        for (int64_t i = 0; i < n; i++)
            put_leaf(grouping->leaf, grouping->bytes, place + of_leaf[i], leaf);
        start[leaf + 1] += start[leaf];
    }
}

/* Writes rows, sorted by their leaves, to `order`; the first place of each leaf to `start`. */
API int64_t boostbp_group_rows(const void *leaf, int64_t bytes, uint16_t *order, int64_t *start, int64_t rows,
                               int64_t leaves)
{
    sort_rows(leaf, bytes, 0, rows, leaves, order, start);
    return 0;
}

/* Copies the path columns of rows grouped by leaf: for each leaf its columns in turn, each (rows of the leaf,).

   Z: rows begin .. end - 1 of the block; the parts of a block come in order. at: (leaves,), the place in `order` that
   each leaf has reached, at first that of rows->start; moved. */
API int64_t boostbp_group_paths(const leaf_rows_t *rows, const int32_t *column, const double *Z, int64_t begin,
                                int64_t end, int64_t *at, int64_t part, int64_t columns)
{
    double *values = rows->values;
    for (int64_t leaf = 0; leaf < rows->n_leaves; leaf++) {
        int64_t first = at[leaf], last = rows->start[leaf + 1], n = last - rows->start[leaf];
        if (end == rows->n_rows)
            at[leaf] = last;
        while (at[leaf] < last && rows->order[at[leaf]] < end)
            at[leaf]++;
        double *restrict to = values + first - rows->start[leaf];
        for (int64_t j = rows->path_start[leaf]; j < rows->path_start[leaf + 1]; j++, to += n)
            for (int64_t i = first; i < at[leaf]; i++)
                to[i - first] = Z[(rows->order[i] - begin) * columns + column[j]];
        values += n * (rows->path_start[leaf + 1] - rows->path_start[leaf]);
    }
    return 0;
}

/* Does the same for a whole block, whose rows have their leaves from `place` on; at: (leaves,), scratch.

   Z, which is too large for the caches near the processor, is read once, as it lies in memory: each number goes to the
   end of its column in its leaf, and all these ends stay in cache. */
static void copy_by_rows(const grouping_t *grouping, int64_t place, const leaf_rows_t *rows, const int32_t *column,
                         const double *Z, int64_t *at)
{
    const int64_t *start = rows->start, *path_start = rows->path_start;
    int64_t columns = grouping->in->n_columns, next = 0;
    for (int64_t leaf = 0; leaf < rows->n_leaves; leaf++) {
        at[leaf] = next;
        next += (start[leaf + 1] - start[leaf]) * (path_start[leaf + 1] - path_start[leaf]);
    }
    for (int64_t i = 0; i < rows->n_rows; i++, Z += columns) {
        if (i + AHEAD < rows->n_rows) {
            int64_t later = leaf_at(grouping->leaf, grouping->bytes, place + i + AHEAD);
            for (int64_t j = path_start[later]; j < path_start[later + 1]; j++)
                __builtin_prefetch(Z + AHEAD * columns + column[j]);
        }
        int64_t leaf = leaf_at(grouping->leaf, grouping->bytes, place + i), n = start[leaf + 1] - start[leaf];
        const int32_t *path = column + path_start[leaf], *last = column + path_start[leaf + 1];
        for (double *restrict to = rows->values + at[leaf]++; path < last; path++, to += n)
            *to = Z[*path];
    }
}

void open_grouping(grouping_t *grouping, scratch_t *scratch, int64_t most_splits, int64_t most_rows)
{
    grouping->to = take(scratch, most_splits, BINS);
    grouping->room = take(scratch, 5 * most_splits + 8, sizeof(int64_t));
    grouping->sorted = take(scratch, 2 * most_rows, sizeof(uint16_t));
    grouping->right_rows = grouping->sorted + most_rows;
}

void group_tree(const grouping_t *grouping, int64_t first, int64_t tree, const int32_t *column,
                const leaf_rows_t *rows)
{
    const binned_t *in = grouping->in;
    const double *Z = in->Z + rows->first * in->n_columns;
    partition(grouping, first, tree, rows);
    int64_t *at = grouping->room; /* `partition` needs it no more */
    if (rows->n_rows * in->n_columns > NEAR && in->n_columns <= NARROW) {
        copy_by_rows(grouping, tree * in->n_rows + rows->first, rows, column, Z, at);
        return;
    }
    memcpy(at, rows->start, sizeof *at * (size_t)rows->n_leaves);
    boostbp_group_paths(rows, column, Z, 0, rows->n_rows, at, rows->n_rows, in->n_columns);
}

/* Groups one block of rows by the leaves of one tree, writes their leaves, and copies their path columns. */
API int64_t boostbp_group_block(const nodes_t *nodes, const binned_t *in, const int32_t *column, void *leaf,
                                int64_t bytes, const leaf_rows_t *rows)
{
    SCRATCH scratch = {0};
    grouping_t grouping = {.nodes = nodes, .in = in, .leaf = leaf, .bytes = bytes};
    open_grouping(&grouping, &scratch, nodes->n_splits, rows->n_rows);
    if (scratch.is_lacking)
        return -1;
    sides(&grouping, 0, nodes->n_splits);
    group_tree(&grouping, 0, 0, column, rows);
    return 0;
}
