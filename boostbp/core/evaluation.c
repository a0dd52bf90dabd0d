/* Values and slopes of a forest's leaf regressions.

   A leaf's value is w_0 + sum_j u_j (w_j + u_j w_jj) of its path columns, without w_jj for degree 1, where
   u = (z - center) / scale. A missing value has u = 0, the leaf's training mean. The slope in column j is
   (w_j + 2 u_j w_jj) / scale, and 0 where an input is missing or clipped (section "Gradient of GBDT Layer"). */

#include "boostbp.h"

/* Writes the values of `n` rows, at most BLOCK, for one of `m` outputs of a leaf to `total`.

   Path column j of the rows is z + j * stride; w is the leaf's constant. Operations have the same order as in
   `boostbp_evaluate`, which gives the same bits. */
WIDE static void leaf_values(const double *z, int64_t stride, int64_t n, int64_t k, int64_t degree,
                             const double *restrict scaling, const double *restrict w, int64_t m,
                             double *restrict total)
{
    for (int64_t i = 0; i < n; i++)
        total[i] = *w;
    for (int64_t j = 0; j < k; j++, z += stride, scaling += 4) {
        double center = scaling[CENTER], inverse = scaling[INV_SCALE], linear = w[(1 + j) * m];
        double square = degree == 2 ? w[(1 + k + j) * m] : 0.0;
        for (int64_t i = 0; i < n && inverse != 0.0; i++) { /* where it is 0, the column does not vary */
            double u = in_units(z[i], center, inverse), term = u * (degree == 2 ? linear + u * square : linear);
            total[i] += or_zero(term, u == u);
        }
    }
}

/* Adds the values of training rows to `out`, (outputs, rows). */
API int64_t boostbp_add_values(const leaf_rows_t *rows, int64_t degree, const double *scaling, const double *weight,
                               double *out, int64_t n_outputs, int64_t n_rows)
{
    double total[BLOCK], *values = rows->values;
    for (int64_t output = 0; output < n_outputs; output++)
        fetch(out + output * n_rows + rows->first, rows->n_grouped);
    for (int64_t leaf = 0; leaf < rows->n_leaves; leaf++) {
        int64_t path = rows->path_start[leaf], k = rows->path_start[leaf + 1] - path;
        int64_t begin = rows->start[leaf], end = rows->start[leaf + 1];
        for (int64_t block = begin; block < end; block += BLOCK) {
            int64_t n = least_of(end - block, BLOCK);
            for (int64_t output = 0; output < n_outputs; output++) {
                leaf_values(values + block - begin, end - begin, n, k, degree, scaling + 4 * path, weight + output,
                            n_outputs, total);
                double *of_block = out + output * n_rows + rows->first;
                for (int64_t i = 0; i < n; i++)
                    of_block[rows->order[block + i]] += total[i];
            }
        }
        values += k * (end - begin);
        weight += (1 + degree * k) * n_outputs;
    }
    return 0;
}

/* Returns u of a value that is not missing. */
static inline double standardised(double z, const double *scaling, int64_t clip)
{
    double u = in_units(z, scaling[CENTER], scaling[INV_SCALE]);
    if (scaling[INV_SCALE] == 0.0)
        return 0.0;
    if (!clip)
        return u;
    return u < scaling[LOWER] ? scaling[LOWER] : u > scaling[UPPER] ? scaling[UPPER] : u;
}

/* Returns u of a value; 0, the mean, if it is missing. */
static inline double standardised_or_mean(double z, const double *scaling, int64_t clip)
{
    return z == z ? standardised(z, scaling, clip) : 0.0;
}

/* Returns the value of a leaf for one row and output. */
static inline double value_of(const regression_t *r, const double *z, int64_t clip, int64_t output)
{
    double total = r->constant[output];
    for (int64_t j = 0; j < r->k; j++) {
        double value = z[r->column[j]];
        if (value != value)
            continue;
        double u = standardised(value, r->scaling + 4 * j, clip), linear = r->linear[j * r->m + output];
        total += u * (r->degree == 2 ? linear + u * r->square[j * r->m + output] : linear);
    }
    return total;
}

/* Adds the values of a leaf for one row to `out`, of the tree's outputs. */
static inline void add_leaf(const regression_t *r, const double *z, int64_t clip, double *out)
{
    if (r->m == 1) {
        *out += value_of(r, z, clip, 0);
        return;
    }
    for (int64_t o = 0; o < r->m; o++)
        out[o] += r->constant[o];
    for (int64_t j = 0; j < r->k; j++) {
        double value = z[r->column[j]];
        if (value != value)
            continue;
        double u = standardised(value, r->scaling + 4 * j, clip);
        for (int64_t o = 0; o < r->m; o++)
            out[o] += u * r->linear[j * r->m + o];
        for (int64_t o = 0; o < r->m && r->degree == 2; o++)
            out[o] += u * u * r->square[j * r->m + o];
    }
}

/* Adds the forest's values of rows begin .. end - 1 to `out`, (rows, outputs). */
API int64_t boostbp_evaluate(const leaves_t *leaves, const at_leaves_t *at, int64_t clip, int64_t begin, int64_t end,
                             double *out, int64_t n_outputs)
{
    for (int64_t top = begin; top < end; top += TILE)
        for (int64_t tree = 0; tree < leaves->n_trees; tree++)
            for (int64_t row = top; row < end && row < top + TILE; row++) {
                regression_t r = regression_at(leaves, at, tree, row);
                add_leaf(&r, at->Z + row * at->n_columns, clip, out + row * n_outputs + leaves->tree_output[2 * tree]);
            }
    return 0;
}

/* Adds the Jacobian of rows begin .. end - 1 to `out`, (rows, outputs, columns), for steps of a unit of each column. */
API int64_t boostbp_jacobian(const leaves_t *leaves, const at_leaves_t *at, int64_t clip, const double *unit,
                             int64_t begin, int64_t end, double *out, int64_t n_outputs)
{
    int64_t n_columns = at->n_columns;
    for (int64_t top = begin; top < end; top += TILE)
        for (int64_t tree = 0; tree < leaves->n_trees; tree++)
            for (int64_t row = top; row < end && row < top + TILE; row++) {
                regression_t r = regression_at(leaves, at, tree, row);
                double *of_row = out + (row * n_outputs + leaves->tree_output[2 * tree]) * n_columns;
                for (int64_t j = 0; j < r.k; j++) {
                    const double *scaling = r.scaling + 4 * j;
                    double lower = scaling[LOWER], upper = scaling[UPPER];
                    int64_t column = r.column[j];
                    double u = in_units(at->Z[row * n_columns + column], scaling[CENTER], scaling[INV_SCALE]);
                    int slopes = u == u && scaling[INV_SCALE] != 0.0;
                    slopes &= !clip || (lower <= u && u <= upper && lower < upper);
                    double d_linear = slopes ? scaling[INV_SCALE] * unit[column] : 0.0; /* unit du/dz */
                    double d_square = slopes ? 2.0 * u * d_linear : 0.0;                /* unit d(u^2)/dz */
                    for (int64_t o = 0; o < r.m; o++) {
                        double slope = d_linear * r.linear[j * r.m + o];
                        if (r.degree == 2)
                            slope += d_square * r.square[j * r.m + o];
                        of_row[o * n_columns + column] += slope;
                    }
                }
            }
    return 0;
}

/* Returns the feature of the split that separates two rows; they must reach different leaves. */
static int64_t where_parted(const nodes_t *nodes, int64_t first, const double *a, const double *b)
{
    for (int64_t node = 0;;) {
        int64_t split = first + node;
        int left = goes_left(nodes, split, a);
        if (left != goes_left(nodes, split, b))
            return nodes->feature[split];
        node = left ? nodes->left[split] : nodes->right[split];
    }
}

/* Adds `share` of the change within one leaf, column by column, to `out`, (columns,); returns its sum. */
static double add_within(const regression_t *r, double share, const double *za, const double *zb, int64_t clip,
                         int64_t output, double *out)
{
    double total = 0.0;
    for (int64_t j = 0; j < r->k; j++) {
        int64_t column = r->column[j];
        if (za[column] == zb[column])
            continue;
        double u_a = standardised_or_mean(za[column], r->scaling + 4 * j, clip);
        double u_b = standardised_or_mean(zb[column], r->scaling + 4 * j, clip);
        /* w1 u + w2 u^2 changes by (w1 + w2 (u_a + u_b)) (u_b - u_a), without the cancellation of u_b^2 - u_a^2 */
        double slope = r->linear[j * r->m + output];
        if (r->degree == 2)
            slope += (u_a + u_b) * r->square[j * r->m + output];
        double change = share * slope * (u_b - u_a);
        out[column] += change;
        total += change;
    }
    return total;
}

/* Rows in features, with their leaves and basis columns. */
typedef struct {
    const void *leaf;
    int64_t bytes;
    const double *X, *Z;
    int64_t n_trees, n_rows, n_features, n_columns;
} points_t;

static regression_t regression_of_point(const leaves_t *leaves, const points_t *points, int64_t tree, int64_t row)
{
    return regression_of(leaves, tree, leaf_at(points->leaf, points->bytes, tree * points->n_rows + row));
}

/* Splits the change of a forest's output from rows `from` to rows `to` in two.

   smooth : (rows, outputs, columns), added to: the change within leaf regressions. If both rows are in one leaf of a
            tree, this is the whole change. If not, it is the mean of the changes of the two leaves' regressions.
   jump   : (rows, outputs, features), added to: the rest of a tree's change, at the feature of the split that separates
            the two rows. */
API int64_t boostbp_changes(const nodes_t *nodes, const int64_t *tree_split, const leaves_t *leaves, int64_t clip,
                            const points_t *from, const points_t *to, int64_t begin, int64_t end, double *smooth,
                            double *jump, int64_t n_outputs)
{
    int64_t n_features = from->n_features, n_columns = from->n_columns;
    for (int64_t tree = 0; tree < leaves->n_trees; tree++)
        for (int64_t row = begin; row < end; row++) {
            regression_t a = regression_of_point(leaves, from, tree, row);
            regression_t b = regression_of_point(leaves, to, tree, row);
            const double *za = from->Z + row * n_columns, *zb = to->Z + row * n_columns;
            int64_t first = row * n_outputs + leaves->tree_output[2 * tree], feature = -1;
            if (a.constant != b.constant)
                feature = where_parted(nodes, tree_split[tree], from->X + row * n_features, to->X + row * n_features);
            for (int64_t output = 0; output < a.m; output++) {
                double *out = smooth + (first + output) * n_columns;
                if (feature < 0) {
                    add_within(&a, 1.0, za, zb, clip, output, out);
                    continue;
                }
                /* The whole change is leaf b at `to` minus leaf a at `from`. Half of what each of the two regressions changes
                   between the rows goes to its columns: neither leaf is preferred, and to go back changes
                   nothing but the sign. The rest is the jump from one leaf to the other, at the split between them. */
                double rest = value_of(&b, zb, clip, output) - value_of(&a, za, clip, output);
                rest -= add_within(&a, 0.5, za, zb, clip, output, out);
                rest -= add_within(&b, 0.5, za, zb, clip, output, out);
                jump[(first + output) * n_features + feature] += rest;
            }
        }
    return 0;
}
