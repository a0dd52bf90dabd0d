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

#endif
