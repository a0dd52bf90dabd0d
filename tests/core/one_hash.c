/* Prints a hash of what training and prediction compute of random trees and rows: one on every processor. */

#include <stdio.h>

#include "boostbp.h"

enum { ROWS = 20011, FEATURES = 7, SPLITS = 63, LEAVES = 64, TREES = 3, MOST = FEATURES * LEAVES * TREES };

API int64_t boostbp_put_in_bins(const double *, const double *, uint8_t *, double *, double *, int64_t, int64_t,
                                int64_t);
API int64_t boostbp_evaluate(const leaves_t *, const at_leaves_t *, int64_t, int64_t, int64_t, double *, int64_t);
API int64_t boostbp_vjp(const leaves_t *, const at_leaves_t *, int64_t, const double *, const double *, int64_t,
                        int64_t, double *, int64_t);

static double X[ROWS * FEATURES], grad[TREES * ROWS], hess[TREES * ROWS], out[ROWS * FEATURES], fit[TREES * ROWS];
static double cuts[FEATURES * 255], lower[FEATURES * 256], upper[FEATURES * 256], scaling[MOST * 4];
static double weight[LEAVES * TREES + 2 * MOST], values[ROWS * FEATURES];
static uint8_t bins[ROWS * FEATURES], leaf[TREES * ROWS], missing_left[SPLITS * TREES];
static uint16_t order[ROWS];
static int32_t feature[SPLITS * TREES], left[SPLITS * TREES], right[SPLITS * TREES], cat_start[SPLITS * TREES];
static int32_t cat_words[SPLITS * TREES], column[MOST];
static double threshold[SPLITS * TREES];
static int64_t start[LEAVES * TREES + 1], weight_start[LEAVES * TREES + 1];

static uint64_t state = 1;

/* Returns a number about 0 of variance 1 (the sum of twelve), without a function of libm. */
static double random_number(void)
{
    double total = -6.0;
    for (int i = 0; i < 12; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        total += (double)(state >> 40) / (double)(1 << 24);
    }
    return total;
}

static void add(uint64_t *hash, const void *data, size_t size)
{
    for (size_t i = 0; i < size; i++) /* FNV-1a */
        *hash = (*hash ^ ((const uint8_t *)data)[i]) * 1099511628211u;
}

int main(void)
{
    const int64_t tree_split[] = {0, SPLITS, 2 * SPLITS, 3 * SPLITS}, tree_leaf[] = {0, LEAVES, 2 * LEAVES, 3 * LEAVES};
    const int64_t tree_output[] = {0, 1, 0, 1, 0, 1};
    const double unit[] = {1, 1, 1, 1, 1, 1, 1};
    uint64_t hash = 14695981039346656037u;
    for (int64_t i = 0; i < ROWS * FEATURES; i++)
        X[i] = i % 31 == 0 ? NAN : random_number();
    for (int64_t i = 0; i < TREES * ROWS; i++)
        grad[i] = random_number(), hess[i] = i / ROWS == 1 ? 1.0 : 1.0 + i % 5;
    for (int64_t i = 0; i < FEATURES * 255; i++)
        cuts[i] = i % 255 == 254 ? INFINITY : -3.0 + 6.0 * (double)(i % 255) / 254.0;
    for (int64_t i = 0; i < SPLITS * TREES; i++) { /* full trees of depth 6 */
        int32_t child = (int32_t)(2 * (i % SPLITS) + 1), leaves = child >= SPLITS;
        feature[i] = (int32_t)(i * 5 % FEATURES), threshold[i] = random_number() / 2, missing_left[i] = i % 2;
        left[i] = leaves ? ~(child - SPLITS) : child, right[i] = leaves ? ~(child + 1 - SPLITS) : child + 1;
        cat_start[i] = -1;
    }
    nodes_t nodes = {feature, threshold, left, right, missing_left, cat_start, cat_words, NULL, SPLITS * TREES};
    boostbp_put_in_bins(X, cuts, bins, lower, upper, ROWS, FEATURES, 255);
    boostbp_paths_of(&nodes, tree_split, 1, start, column, TREES, LEAVES * TREES, MOST);
    binned_t binned = {X, X, bins, lower, upper, ROWS, FEATURES, FEATURES, 255};
    derivatives_t derivatives = {grad, hess, TREES, ROWS, TREES};
    ridge_t ridge = {0.7, 1, 1, 0.3, 1 << 14};
    space_t space = {order, values, ROWS};
    at_leaves_t at = {leaf, 1, X, TREES, ROWS, FEATURES};
    for (int64_t degree = 1; degree <= 2; degree++) {
        const int64_t tree_degree[] = {degree, degree, degree}, paths = start[LEAVES * TREES];
        for (int64_t i = 0; i <= LEAVES * TREES; i++)
            weight_start[i] = i + degree * start[i];
        leaves_t leaves = {tree_leaf, tree_output, tree_degree, start, column, scaling, weight_start, weight, TREES,
                           LEAVES * TREES, paths};
        fit_trees(&nodes, tree_split, &leaves, &binned, &derivatives, &ridge, &space, leaf, 1, fit);
        add(&hash, leaf, sizeof leaf), add(&hash, fit, sizeof fit), add(&hash, weight, sizeof weight);
        boostbp_evaluate(&leaves, &at, 1, 0, ROWS, out, 1);
        add(&hash, out, sizeof *out * ROWS);
        boostbp_vjp(&leaves, &at, 1, grad, unit, 0, ROWS, out, 1);
        add(&hash, out, sizeof out);
    }
    printf("%016llx\n", (unsigned long long)hash);
    return 0;
}
