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

/* Leaf regressions of one tree with one output, and where the rows of each leaf may lie; see leaf_steps.c. */
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

#endif
