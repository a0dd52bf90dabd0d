/* Functions of one stage that another stage calls. */

#ifndef BOOSTBP_STAGES_H
#define BOOSTBP_STAGES_H

#include "boostbp.h"

void scaling_of(const double *range, double flat_scale, double *out); /* scalings.c */

/* solving.c */
void solve_leaf(const double *gram, double *w, int64_t p, int64_t m, double penalty, int64_t penalize_constant,
                double scale, double *a);
API int64_t boostbp_solve_leaves(const int64_t *path_start, int64_t degree, int64_t n_outputs, const double *gram,
                                 double *weight, double penalty, int64_t penalize_constant, double scale,
                                 int64_t n_leaves);
API int64_t boostbp_scale_weights(const int64_t *path_start, int64_t degree, int64_t n_outputs, const double *scaling,
                                  double *weight, int64_t n_leaves, int64_t paths);

/* Minimum and maximum as in Python: the first number, unless the second compares smaller or larger. */
static inline double lesser(double a, double b)
{
    return b < a ? b : a;
}

static inline double greater(double a, double b)
{
    return b > a ? b : a;
}

/* Leaf regressions of one tree with one output, and the ranges of rows in each leaf; see leaf_steps.c. */
typedef struct {
    int64_t n_leaves;
    const int64_t *path_start; /* (leaves + 1,) */
    int64_t *weight_start;     /* (leaves + 1,) */
    const int32_t *column;     /* (paths,) ascending in each leaf */
    int64_t degree;
    const double *scaling; /* (paths, 4) */
    double *weight;
    double (*box)[2];  /* (paths,) thresholds that bound a column in its leaf */
    uint8_t *may_miss; /* (paths,) */
} regressions_t;

void reach_of(const regressions_t *tree, int64_t leaf, double *reach);
void find_boxes(const regressions_t *tree, const nodes_t *nodes, int64_t first, const int64_t *parent);
double least_step(const regressions_t *tree, int64_t feature, int rising, int64_t a, int64_t b);
/* routing.c: whether a split sends a value left. */
static inline int sends_left(const nodes_t *nodes, int64_t split, double value)
{
    if (value != value)
        return nodes->missing_left[split];
    if (nodes->cat_start[split] < 0)
        return value <= nodes->threshold[split];
    if (!(value > -1.0 && value < 32.0 * nodes->cat_words[split]))
        return 0;
    int64_t code = (int64_t)value;
    return nodes->categories[nodes->cat_start[split] + code / 32] >> code % 32 & 1;
}

/* Whether a split sends a row left. */
static inline int goes_left(const nodes_t *nodes, int64_t split, const double *x)
{
    return sends_left(nodes, split, x[nodes->feature[split]]);
}

/* Returns a value, or 0 if it is not kept, by operations on bits, which compilers vectorise, unlike a selection. */
static inline double or_zero(double value, int is_kept)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits &= -(uint64_t)is_kept;
    memcpy(&value, &bits, sizeof bits);
    return value;
}

/* evaluation.c */
API int64_t boostbp_add_values(const int64_t *row_start, const uint16_t *order, int64_t first_row,
                               const int64_t *path_start, const double *grouped, int64_t degree, const double *scaling,
                               const double *weight, double *out, int64_t n_leaves, int64_t n_outputs, int64_t n_rows);

/* A counting sort of n rows by leaf: rows of a leaf keep their order; `start` (leaves + 1,). */
static inline void sort_rows_of(const void *leaf, int64_t bytes, int64_t first, int64_t n, int64_t leaves,
                                uint16_t *restrict order, int64_t *restrict start)
{
    int64_t before = 0;
    memset(start, 0, sizeof *start * (size_t)(leaves + 1));
    for (int64_t row = 0; row < n; row++)
        start[leaf_at(leaf, bytes, first + row)]++;
    for (int64_t number = 0; number <= leaves; number++)
        start[number] = before += start[number];
    for (int64_t row = n - 1; row >= 0; row--)
        order[--start[leaf_at(leaf, bytes, first + row)]] = (uint16_t)row;
}

static inline void sort_rows(const void *leaf, int64_t bytes, int64_t first, int64_t n, int64_t leaves, uint16_t *order,
                             int64_t *start)
{
    if (bytes == 1) /* nearly always; a constant for the compiler */
        sort_rows_of(leaf, 1, first, n, leaves, order, start);
    else
        sort_rows_of(leaf, bytes, first, n, leaves, order, start);
}

/* grouping.c: input of the grouping of rows by leaf, and memory for one tree. */
typedef struct {
    const nodes_t *nodes;
    const uint8_t *bins;       /* (features, n_rows) */
    const double *X, *Z;       /* (n_rows, n_features), (n_rows, n_columns) */
    int64_t n_rows, n_features, n_columns;
    void *leaf;                /* (trees, n_rows) numbers of `bytes` bytes, written */
    int64_t bytes, block_rows; /* most rows of a block */
    uint8_t *to;               /* (splits, 256), where splits send bins */
    int64_t *room;
    uint16_t *scratch;
} grouping_t;

int64_t open_grouping(grouping_t *grouping, int64_t most_splits); /* -1 if memory is lacking */
void close_grouping(grouping_t *grouping);
/* Writes where splits first .. first + n_splits - 1 send each bin to grouping->to. */
void sides(const grouping_t *grouping, int64_t first, int64_t n_splits, const double *lower, const double *upper);
/* Groups n rows from `top` on by the leaves of one tree, whose splits begin at `first`, and copies their path columns.
   */
void group_tree(const grouping_t *grouping, int64_t first, int64_t n_splits, int64_t tree, int64_t top, int64_t n,
                const int64_t *path_start, const int32_t *column, uint16_t *order, double *values, int64_t *row_start);

/* sums.c */
API int64_t boostbp_leaf_ranges(const int64_t *row_start, const uint16_t *order, int64_t first_row,
                                const int64_t *path_start, const double *grouped, const double *hess, double *out,
                                int64_t leaves, int64_t rows, int64_t all_rows, int64_t paths);
API int64_t boostbp_leaf_sums(const int64_t *row_start, const uint16_t *order, int64_t first_row,
                              const int64_t *path_start, const double *grouped, const double *center,
                              const double *scale, const double *fill, int64_t degree, const double *grad,
                              const double *hess, double *gram, double *moment, int64_t leaves, int64_t rows,
                              int64_t paths, int64_t outputs, int64_t all_rows, int64_t weights);

#endif
