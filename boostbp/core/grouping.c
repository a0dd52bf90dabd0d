/* Grouping of rows by leaf: bins of the input, routing of rows by bins, and copies of path columns.

   The values of a column are in at most 255 ordered bins; bin MISSING is for NaN. `lower` and `upper`, (features,
   ends), are the smallest and the largest value in each bin but that one. For most rows the bin, a single byte, decides the side of a
   split. Only for rows in the bin of the threshold is the value read, so routing is exact.

   Split by split, all rows of a block that are at a split move on, 16 to 64 of them in a register: where a row is, is a
   code of a byte. The first MOST_KNOWN splits have their numbers as codes, the nodes below them the next ones. Rows in
   the bin of a threshold, and those that reach other splits, go on one by one, by their values. */

#include "boostbp.h"

enum { MISSING = 255, BINS = 256 };
enum { BINNED = 512 };                 /* rows of a block, which is binned column by column; arbitrary */
enum { LEFT = 0, RIGHT = 1, ASK = 2 }; /* side to which a split sends a bin; ASK: read the value */
enum { ABREAST = 8 };                  /* values whose bins are searched side by side */
enum { NEAR = 1 << 18 };               /* numbers that stay in the caches of a core: 2 MB */
enum { NARROW = 160 };                 /* most columns of which whole rows are read; measured: paths read too few of more */
enum { AHEAD = 16 };                   /* rows between one that is copied and one that is fetched from memory meanwhile */

/* Writes the bins of the values of X, (features, rows), and the ends of each bin.

   cuts: (features, ends), ascending, the last one infinite: the bin of a value is the number of cuts below it. */
API int64_t boostbp_put_in_bins(const double *X, const double *cuts, uint8_t *bins, double *lower, double *upper,
                                int64_t rows, int64_t features, int64_t ends)
{
    double of_column[MISSING];
    for (int64_t i = 0; i < MISSING; i++)
        of_column[i] = INFINITY;
    for (int64_t i = 0; i < ends * features; i++) {
        lower[i] = INFINITY;
        upper[i] = -INFINITY;
    }
    for (int64_t top = 0; top < rows; top += BINNED)
        for (int64_t j = 0; j < features; j++) {
            double *restrict low = lower + ends * j, *restrict high = upper + ends * j;
            uint8_t *restrict bin = bins + rows * j;
            memcpy(of_column, cuts + ends * j, (size_t)ends * sizeof *cuts);
            for (int64_t row = top; row < top + BINNED && row < rows; row += ABREAST) {
                int64_t n = least_of(rows - row, ABREAST), number[ABREAST] = {0};
                double value[ABREAST];
                for (int64_t i = 0; i < ABREAST; i++)
                    value[i] = i < n ? X[(row + i) * features + j] : NAN;
                /* Several branch-free binary searches at a time, as each must wait for its last comparison. */
                for (int64_t step = 128; step > 0; step >>= 1)
                    for (int64_t i = 0; i < ABREAST; i++)
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

/* Successive runs of bins that a split sends to one side. */
typedef struct {
    uint8_t begin[BINS], side[BINS];
    int n;
} runs_t;

/* Begins a run, unless the last one is of the same side; replaces the last one if it is empty. */
static void add_run(runs_t *runs, int bin, int side)
{
    runs->n -= runs->n > 0 && runs->begin[runs->n - 1] == bin;
    if (runs->n > 0 && runs->side[runs->n - 1] == side)
        return;
    runs->begin[runs->n] = (uint8_t)bin;
    runs->side[runs->n++] = (uint8_t)side;
}

/* Finds the runs of a split. They go round: one of bin 255, of missing values, goes on at 0. */
static void find_runs(const grouping_t *grouping, int64_t split, runs_t *runs)
{
    const nodes_t *nodes = grouping->nodes;
    const int64_t n_bins = grouping->in->n_ends, first = n_bins * nodes->feature[split];
    const double *low = grouping->in->lower + first, *high = grouping->in->upper + first;
    const double threshold = nodes->threshold[split];
    int bin = 0;
    runs->n = 0;
    if (nodes->cat_start[split] < 0) {
        while (bin < n_bins && !(high[bin] > threshold))
            bin++;
        add_run(runs, 0, LEFT);
        add_run(runs, bin, ASK);
        add_run(runs, bin + (bin < n_bins && low[bin] <= threshold), RIGHT);
    } else {
        for (; bin < n_bins; bin++)
            if (low[bin] <= high[bin]) /* not empty */
                add_run(runs, bin, low[bin] < high[bin] ? ASK : sends_left(nodes, split, low[bin]) ? LEFT : RIGHT);
    }
    add_run(runs, MISSING, nodes->missing_left[split] ? LEFT : RIGHT);
    if (runs->n > 1 && runs->side[runs->n - 1] == runs->side[0])
        runs->begin[0] = runs->begin[--runs->n];
}

void find_moves(grouping_t *grouping, int64_t first, int64_t n_splits)
{
    int64_t n_known = least_of(n_splits, MOST_KNOWN), n_codes = n_known;
    runs_t runs;
    grouping->node[0] = n_splits > 0 ? 0 : ~0;
    grouping->n_moves = 0;
    for (int64_t number = 0; number < n_known; number++) {
        int32_t child[2] = {grouping->nodes->left[first + number], grouping->nodes->right[first + number]};
        uint8_t code[2];
        grouping->node[number] = (int32_t)number;
        if (n_codes + 2 > BINS) /* parents come after children: rows go on from here by their values */
            continue;
        for (int i = LEFT; i <= RIGHT; i++) {
            int is_known = child[i] >= 0 && child[i] < n_known;
            code[i] = (uint8_t)(is_known ? child[i] : n_codes);
            if (!is_known)
                grouping->node[n_codes++] = child[i];
        }
        find_runs(grouping, first + number, &runs);
        for (int run = 0, is_second = 0; run < runs.n; run++) {
            if (runs.side[run] == ASK)
                continue;
            move_t *move = grouping->move + grouping->n_moves - is_second;
            uint8_t more = (uint8_t)(runs.begin[(run + 1) % runs.n] - runs.begin[run] - 1);
            for (int i = is_second; i < 2; i++)
                move->begin[i] = runs.begin[run], move->more[i] = more, move->to[i] = code[runs.side[run]];
            move->from = (uint8_t)number;
            grouping->n_moves += !is_second;
            is_second = !is_second;
        }
    }
}

/* Moves the rows at a split, if their bin is in one of two runs. */
WIDE static void move_rows(const uint8_t *restrict bin, int64_t n, move_t move, uint8_t *restrict at)
{
    for (int64_t i = 0; i < n; i++) {
        uint8_t first = bin[i] - move.begin[0], second = bin[i] - move.begin[1];
        uint8_t to = second <= move.more[1] ? move.to[1] : move.from;
        to = first <= move.more[0] ? move.to[0] : to;
        at[i] = at[i] == move.from ? to : at[i];
    }
}

/* Writes the leaves of the rows of a block under a tree. */
static void route_block(const grouping_t *grouping, int64_t first, int64_t tree, const leaf_rows_t *rows)
{
    const nodes_t *nodes = grouping->nodes;
    const binned_t *in = grouping->in;
    const double *X = in->X + rows->first * in->n_features;
    int64_t n = rows->n_grouped, place = tree * in->n_rows + rows->first, n_todo = 0;
    uint8_t *at = grouping->at;
    uint16_t *todo = rows->order; /* which is not yet used */
    memset(at, 0, (size_t)n);
    for (const move_t *move = grouping->move; move < grouping->move + grouping->n_moves; move++)
        move_rows(in->bins + in->n_rows * nodes->feature[first + move->from] + rows->first, n, *move, at);
    for (int64_t i = 0; i < n; i++) {
        int64_t node = grouping->node[at[i]];
        todo[n_todo] = (uint16_t)i;
        n_todo += node >= 0;
        put_leaf(grouping->leaf, grouping->bytes, place + i, ~node);
    }
    for (int64_t i = 0; i < n_todo; i++) {
        int64_t later = todo[least_of(i + AHEAD, n_todo - 1)], node = grouping->node[at[todo[i]]];
        __builtin_prefetch(X + later * in->n_features + nodes->feature[first + grouping->node[at[later]]]);
        for (int64_t split = first + node; node >= 0; split = first + node)
            node = goes_left(nodes, split, X + todo[i] * in->n_features) ? nodes->left[split] : nodes->right[split];
        put_leaf(grouping->leaf, grouping->bytes, place + todo[i], ~node);
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
        if (end == rows->n_grouped)
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

/* Does the same for a whole block, whose rows have their leaves from `place` on.

   Z, which is too large for the caches near the processor, is read once, as it lies in memory: each number goes to the
   end of its column in its leaf, and all these ends stay in cache. So that no branch depends on the leaf, each leaf has
   as many columns as the widest: its last one is copied repeatedly. */
static void copy_by_rows(const grouping_t *grouping, int64_t place, const leaf_rows_t *rows, const int32_t *column,
                         const double *Z)
{
    const int64_t *start = rows->start, *path_start = rows->path_start;
    int64_t columns = grouping->in->n_columns, most = largest_part(path_start, rows->n_leaves), before = 0;
    int64_t *at = grouping->ends; /* rows of each leaf so far */
    memset(at, 0, sizeof *at * (size_t)rows->n_leaves);
    for (int64_t leaf = 0; leaf < rows->n_leaves; leaf++) {
        int64_t n = start[leaf + 1] - start[leaf], first = path_start[leaf], k = path_start[leaf + 1] - first;
        for (int64_t i = 0; i < most; i++) {
            int64_t j = least_of(i, k - 1);
            grouping->target[leaf * most + i] = k > 0 ? (target_t){column[first + j], (int32_t)(before + j * n)}
                                                      : (target_t){0, 0};
        }
        before += n * k;
    }
    for (int64_t i = 0; i < rows->n_grouped; i++) {
        int64_t ahead = least_of(i + AHEAD, rows->n_grouped - 1), leaf = leaf_at(grouping->leaf, grouping->bytes, place + i);
        const target_t *target = grouping->target + most * leaf;
        const target_t *later = grouping->target + most * leaf_at(grouping->leaf, grouping->bytes, place + ahead);
        double *to = rows->values + at[leaf]++;
        for (int64_t j = 0; j < most; j++)
            __builtin_prefetch(Z + ahead * columns + later[j].column);
        for (int64_t j = 0; j < most && path_start[leaf] < path_start[leaf + 1]; j++)
            to[target[j].place] = Z[i * columns + target[j].column];
    }
}

void open_grouping(grouping_t *grouping, scratch_t *scratch, int64_t most_splits, int64_t most_rows,
                   int64_t most_columns)
{
    grouping->move = take(scratch, BINS / 2 * least_of(most_splits, MOST_KNOWN), sizeof *grouping->move);
    grouping->ends = take(scratch, most_splits + 1, sizeof *grouping->ends);
    grouping->target = take(scratch, (most_splits + 1) * most_columns, sizeof *grouping->target);
    grouping->at = take(scratch, most_rows, sizeof *grouping->at);
}

void group_tree(const grouping_t *grouping, int64_t first, int64_t tree, const int32_t *column,
                const leaf_rows_t *rows)
{
    const binned_t *in = grouping->in;
    const double *Z = in->Z + rows->first * in->n_columns;
    int64_t *at = grouping->ends;
    route_block(grouping, first, tree, rows);
    sort_rows(grouping->leaf, grouping->bytes, tree * in->n_rows + rows->first, rows->n_grouped, rows->n_leaves,
              rows->order, rows->start);
    if (rows->n_grouped * in->n_columns > NEAR && in->n_columns <= NARROW) {
        copy_by_rows(grouping, tree * in->n_rows + rows->first, rows, column, Z);
        return;
    }
    memcpy(at, rows->start, sizeof *at * (size_t)rows->n_leaves);
    boostbp_group_paths(rows, column, Z, 0, rows->n_grouped, at, rows->n_grouped, in->n_columns);
}

/* Groups one block of rows by the leaves of one tree, writes their leaves, and copies their path columns. */
API int64_t boostbp_group_block(const nodes_t *nodes, const binned_t *in, const int32_t *column, void *leaf,
                                int64_t bytes, const leaf_rows_t *rows)
{
    SCRATCH scratch = {0};
    grouping_t grouping = {.nodes = nodes, .in = in, .leaf = leaf, .bytes = bytes};
    open_grouping(&grouping, &scratch, nodes->n_splits, rows->n_grouped, largest_part(rows->path_start, rows->n_leaves));
    if (scratch.is_lacking)
        return LACKS_MEMORY;
    find_moves(&grouping, 0, nodes->n_splits);
    group_tree(&grouping, 0, 0, column, rows);
    return 0;
}
