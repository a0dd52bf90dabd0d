/* Changes of scaling: new scalings of leaf regressions, and a common scaling of equal trees that become one.

   With u = r v + s, w_1 u + w_2 u^2 = s (w_1 + s w_2) + r (w_1 + 2 s w_2) v + r^2 w_2 v^2. */

#include "boostbp.h"
#include "stages.h"

static const double LEAST_SCALE = 1e-12; /* as in `boostbp/core/__init__.py` */

/* Rewrites the weights of all leaves for new scalings, u = ratio v + shift in each path column. */
API int64_t boostbp_rescale(const leaves_t *leaves, const double *ratio, const double *shift, double *weight,
                            int64_t n_trees, int64_t n_leaves, int64_t paths)
{
    for (int64_t tree = 0; tree < n_trees; tree++) {
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

/* The range of a path column over the trees of a run. */
typedef struct {
    int64_t count;    /* trees in which it varies */
    double total;     /* of their centers */
    double low, high; /* bounds that cover theirs */
    double steepest;  /* their largest 1 / scale */
} cover_t;

static cover_t cover_of(const leaves_t *leaves, int64_t first, int64_t last, int64_t place)
{
    cover_t cover = {0, 0.0, INFINITY, -INFINITY, 0.0};
    for (int64_t tree = first; tree < last; tree++) {
        const double *of_tree = leaves->scaling + 4 * (leaves->start[leaves->tree_leaf[tree]] + place);
        double center = of_tree[CENTER], inverse = of_tree[INV_SCALE];
        if (inverse != 0.0) {
            cover.count++;
            cover.total += center;
            cover.low = lesser(cover.low, center + of_tree[LOWER] / inverse);
            cover.high = greater(cover.high, center + of_tree[UPPER] / inverse);
            cover.steepest = greater(cover.steepest, inverse);
        }
    }
    return cover;
}

/* Gives equal trees a common scaling per path column, with the mean of their centers, and bounds that cover all.

   first_tree (runs + 1,): first tree of each run. scaling (paths, 4), ratio and shift (paths,), as for
   `boostbp_rescale`, are written if a run has several trees; the ratio is 0 for a constant column. */
API int64_t boostbp_common_scalings(const leaves_t *leaves, const int64_t *first_tree, double *scaling, double *ratio,
                                    double *shift, int64_t n_trees, int64_t n_leaves, int64_t paths, int64_t runs)
{
    for (int64_t run = 0; run < runs; run++) {
        int64_t first = first_tree[run], last = first_tree[run + 1];
        if (last - first == 1)
            continue;
        int64_t begin = leaves->start[leaves->tree_leaf[first]];
        int64_t end = leaves->start[leaves->tree_leaf[first + 1]];
        for (int64_t place = 0; place < end - begin; place++) {
            cover_t cover = cover_of(leaves, first, last, place);
            double middle = cover.total / (double)(cover.count > 1 ? cover.count : 1);
            double span = greater(cover.high - middle, middle - cover.low), scale = 1.0 / span;
            if (span <= LEAST_SCALE * fabs(middle) || scale == INFINITY) /* clipped to one value: any scale is right */
                scale = cover.steepest;
            for (int64_t tree = first; tree < last; tree++) {
                int64_t path = leaves->start[leaves->tree_leaf[tree]] + place;
                double center = leaves->scaling[4 * path + CENTER], inverse = leaves->scaling[4 * path + INV_SCALE];
                double *out = scaling + 4 * path;
                ratio[path] = inverse != 0.0 ? inverse / scale : 0.0;
                shift[path] = inverse != 0.0 ? (middle - center) * inverse : 0.0;
                if (cover.count == 0) { /* constant in all trees: keep the scaling of the first */
                    memcpy(out, leaves->scaling + 4 * (begin + place), 4 * sizeof *out);
                } else {
                    out[CENTER] = middle;
                    out[INV_SCALE] = scale;
                    out[LOWER] = (cover.low - middle) * scale;
                    out[UPPER] = (cover.high - middle) * scale;
                }
            }
        }
    }
    return 0;
}
