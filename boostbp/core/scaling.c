/* Scalings of path columns, (center, 1 / scale, lower, upper): u = (z - center) / scale, bounded by lower and upper when
   a leaf is evaluated. They come from the range of a column's values in a leaf; leaf regressions can change to new
   scalings, and equal trees that become one share a common scaling.

   With u = r v + s, w_1 u + w_2 u^2 = s (w_1 + s w_2) + r (w_1 + 2 s w_2) v + r^2 w_2 v^2. */

#include "boostbp.h"

static const double LEAST_SCALE = 1e-12; /* as in `boostbp/core/__init__.py` */

/* Writes the scaling of one path column, from its (lower, upper, sum of h z, sum of h), to `out`. */
void scaling_of(const double *range, double flat_scale, double *out)
{
    double lower = range[0], upper = range[1], center = range[2] / range[3], scale, inverse;
    if (!(center >= lower && center <= upper)) /* all weights are 0, or the sum exceeds float64 */
        center = 0.5 * lower + 0.5 * upper;
    scale = upper - center > center - lower ? upper - center : center - lower;
    inverse = 1.0 / scale;
    out[LOWER] = out[UPPER] = 0.0;
    if (isfinite(scale) && isfinite(inverse) && isfinite(center)) {
        out[CENTER] = center;
        out[INV_SCALE] = inverse;
        out[LOWER] = (lower - center) * inverse;
        out[UPPER] = (upper - center) * inverse;
    } else { /* the range is 0, or so small that 1 / scale overflows */
        out[CENTER] = isfinite(center) ? center : 0.0;
        out[INV_SCALE] = scale == INFINITY ? 0.0 : flat_scale;
    }
}

/* Writes the scaling of each path column to `out`. */
API int64_t boostbp_scalings(const double *ranges, double flat_scale, double *out, int64_t paths)
{
    for (int64_t j = 0; j < paths; j++)
        scaling_of(ranges + 4 * j, flat_scale, out + 4 * j);
    return 0;
}

/* Rewrites the weights of all leaves for new scalings, u = ratio v + shift in each path column. */
API int64_t boostbp_rescale(const leaves_t *leaves, const double *ratio, const double *shift, double *weight)
{
    for (int64_t tree = 0; tree < leaves->n_trees; tree++) {
        int64_t m = leaves->tree_output[2 * tree + 1], curved = leaves->tree_degree[tree] == 2;
        for (int64_t leaf = leaves->tree_leaf[tree]; leaf < leaves->tree_leaf[tree + 1]; leaf++) {
            int64_t first = leaves->start[leaf], last = leaves->start[leaf + 1];
            for (int64_t output = 0; output < m; output++) {
                double *w = weight + leaves->weight_start[leaf] + output, *linear = w, constant = 0.0, w2 = 0.0;
                for (int64_t path = first; path < last; path++) {
                    double r = ratio[path], s = shift[path], w1;
                    linear += m;
                    w1 = *linear;
                    if (curved) {
                        double *square = linear + (last - first) * m;
                        w2 = *square;
                        *square = r * r * w2;
                    }
                    constant += s * (w1 + s * w2);
                    *linear = r * (w1 + 2.0 * s * w2);
                }
                *w += constant;
            }
        }
    }
    return 0;
}

/* Gives equal trees a common scaling per path column, with the mean of their centers, and bounds that cover all.

   first_tree (runs + 1,): first tree of each run. scaling (paths, 4), ratio and shift (paths,), as for
   `boostbp_rescale`, are written if a run has several trees; the ratio is 0 for a constant column. */
API int64_t boostbp_common_scalings(const leaves_t *leaves, const int64_t *first_tree, double *scaling, double *ratio,
                                    double *shift, int64_t runs)
{
    for (int64_t run = 0; run < runs; run++) {
        int64_t first = first_tree[run], last = first_tree[run + 1];
        if (last - first == 1)
            continue;
        int64_t begin = leaves->start[leaves->tree_leaf[first]];
        int64_t n_paths = leaves->start[leaves->tree_leaf[first + 1]] - begin;
        for (int64_t place = 0; place < n_paths; place++) {
            /* over the trees: their centers, bounds that cover theirs, the largest 1 / scale */
            double count = 0.0, total = 0.0, low = INFINITY, high = -INFINITY, steepest = 0.0;
            for (int64_t tree = first; tree < last; tree++) {
                const double *of_tree = leaves->scaling + 4 * (leaves->start[leaves->tree_leaf[tree]] + place);
                double center = of_tree[CENTER], inverse = of_tree[INV_SCALE];
                if (inverse == 0.0)
                    continue;
                count++;
                total += center;
                low = lesser(low, center + of_tree[LOWER] / inverse);
                high = greater(high, center + of_tree[UPPER] / inverse);
                steepest = greater(steepest, inverse);
            }
            double middle = total / greater(count, 1.0);
            double span = greater(high - middle, middle - low), scale = 1.0 / span;
            if (span <= LEAST_SCALE * fabs(middle) || scale == INFINITY) /* clipped to one value: any scale is right */
                scale = steepest;
            for (int64_t tree = first; tree < last; tree++) {
                int64_t path = leaves->start[leaves->tree_leaf[tree]] + place;
                double center = leaves->scaling[4 * path + CENTER], inverse = leaves->scaling[4 * path + INV_SCALE];
                double *out = scaling + 4 * path;
                ratio[path] = inverse != 0.0 ? inverse / scale : 0.0;
                shift[path] = inverse != 0.0 ? (middle - center) * inverse : 0.0;
                if (count == 0.0) { /* constant in all trees: keep the scaling of the first */
                    memcpy(out, leaves->scaling + 4 * (begin + place), 4 * sizeof *out);
                } else {
                    out[CENTER] = middle;
                    out[INV_SCALE] = scale;
                    out[LOWER] = (low - middle) * scale;
                    out[UPPER] = (high - middle) * scale;
                }
            }
        }
    }
    return 0;
}
