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

/* The lesser and the greater of two numbers as Python's min and max pick them: the first unless it compares worse. */
static inline double lesser(double a, double b)
{
    return b < a ? b : a;
}

static inline double greater(double a, double b)
{
    return b > a ? b : a;
}

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

/* evaluation.c: adds the values of the rows of a block, grouped by leaf, to `out`, (outputs, n_rows); see
   `boostbp_add_values`. Pointers may be those of one tree: path_start is relative to `scaling`. */
void add_values(const int64_t *row_start, const uint16_t *order, int64_t first_row, const int64_t *path_start,
                const double *grouped, int64_t degree, const double *scaling, const double *weight, double *out,
                int64_t n_leaves, int64_t n_outputs, int64_t n_rows);

#endif
