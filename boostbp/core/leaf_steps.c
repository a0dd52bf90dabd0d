/* Comparison of two leaves of a tree with one output: the smallest step from one to the other, over pairs of rows that
   differ in one feature.

   A leaf is w_0 + sum_j (w_j u_j + w_jj u_j^2), u_j = (z_j - center) / scale clipped to [lower, upper]. This is a sum
   over columns, so the smallest difference of two leaves is the sum of the smallest differences of its terms. */

#include "boostbp.h"
#include "stages.h"

static const int64_t NO_COLUMN = INT64_MAX; /* comes after all columns */
static const double UNREAD[4];              /* scaling of a column that a leaf does not read: its part is 0 */

/* A column's part of a leaf, w_j u + w_jj u^2. */
typedef struct {
    const double *scaling;
    double linear, square;
} part_t;

/* A path column of a leaf: its part, the thresholds that bound it, and whether rows of the leaf may miss it. */
typedef struct {
    part_t part;
    double low, high;
    int may_miss;
} side_t;

static part_t part_of(const regressions_t *tree, int64_t leaf, int64_t j)
{
    int64_t first = tree->path_start[leaf], k = tree->path_start[leaf + 1] - first;
    const double *w = tree->weight + tree->weight_start[leaf];
    part_t part = {tree->scaling + 4 * (first + j), w[1 + j], tree->degree == 2 ? w[1 + k + j] : 0.0};
    return part;
}

/* Returns a part at a value of its column; NaN for NaN. */
static double value_at(double z, const part_t *part)
{
    const double *scaling = part->scaling;
    if (scaling[INV_SCALE] == 0.0)
        return 0.0;
    double u = (z - scaling[CENTER]) * scaling[INV_SCALE];
    u = u < scaling[LOWER] ? scaling[LOWER] : u > scaling[UPPER] ? scaling[UPPER] : u;
    return u * (part->linear + u * part->square);
}

/* Returns the value of a column at the vertex of its parabola, u = -w_j / (2 w_jj); NaN if there is none. */
static double flat_at(const part_t *part)
{
    const double *scaling = part->scaling;
    if (part->square == 0.0 || scaling[INV_SCALE] == 0.0)
        return NAN;
    return scaling[CENTER] - 0.5 * part->linear / part->square / scaling[INV_SCALE];
}

/* Returns the value at which b - a of two unclipped parts is smallest; NaN if there is none.

   In z, a part is q z^2 + b z + .. with q = w_jj / scale^2 and b = (w_j - 2 w_jj center / scale) / scale. */
static double valley_between(const part_t *a, const part_t *b)
{
    double per_a = a->scaling[INV_SCALE], per_b = b->scaling[INV_SCALE];
    double square = b->square * per_b * per_b - a->square * per_a * per_a;
    if (!(square > 0.0))
        return NAN;
    double linear = (b->linear - 2.0 * b->square * b->scaling[CENTER] * per_b) * per_b;
    linear -= (a->linear - 2.0 * a->square * a->scaling[CENTER] * per_a) * per_a;
    return -0.5 * linear / square;
}

/* Returns the minimum of b - a from `low` to `high`: at these ends, at a bound of a part, or at a vertex. */
static double least_between(double low, double high, const part_t *a, const part_t *b)
{
    double at[9] = {low, high, valley_between(a, b)}, found = INFINITY;
    const part_t *parts[2] = {a, b};
    int n = 3;
    for (int i = 0; i < 2; i++) {
        const double *scaling = parts[i]->scaling;
        if (scaling[INV_SCALE] != 0.0) {
            at[n++] = scaling[CENTER] + scaling[LOWER] / scaling[INV_SCALE];
            at[n++] = scaling[CENTER] + scaling[UPPER] / scaling[INV_SCALE];
            at[n++] = flat_at(parts[i]);
        }
    }
    for (int i = 0; i < n; i++)
        if (low <= at[i] && at[i] <= high)
            found = lesser(found, value_at(at[i], b) - value_at(at[i], a));
    return found;
}

/* Writes bounds of the values of a leaf over all rows: a part is extreme at a bound, at its vertex, or if missing. */
void reach_of(const regressions_t *tree, int64_t leaf, double *reach)
{
    double low = tree->weight[tree->weight_start[leaf]], high = low;
    for (int64_t j = 0; j < tree->path_start[leaf + 1] - tree->path_start[leaf]; j++) {
        part_t part = part_of(tree, leaf, j);
        double lower = value_at(-INFINITY, &part), upper = value_at(INFINITY, &part);
        double least = lesser(lesser(lower, upper), 0.0), most = greater(greater(lower, upper), 0.0);
        double flat = value_at(flat_at(&part), &part);
        if (flat == flat) {
            least = lesser(least, flat);
            most = greater(most, flat);
        }
        low += least;
        high += most;
    }
    reach[0] = low;
    reach[1] = high;
}

/* Writes the thresholds that bound each path column of each leaf, and whether rows of the leaf may miss it.

   `first` is the tree's first split; `parent` (leaves + splits,) the split above each leaf, then above each split, -1
   above the root. */
void find_boxes(const regressions_t *tree, const nodes_t *nodes, int64_t first, const int64_t *parent)
{
    for (int64_t leaf = 0; leaf < tree->n_leaves; leaf++) {
        int64_t begin = tree->path_start[leaf], end = tree->path_start[leaf + 1], child = ~leaf;
        for (int64_t j = begin; j < end; j++) {
            tree->box[j][0] = -INFINITY;
            tree->box[j][1] = INFINITY;
            tree->may_miss[j] = 1;
        }
        for (int64_t split = parent[leaf]; split >= 0; split = parent[tree->n_leaves + split]) {
            int64_t i = first + split;
            int left = nodes->left[i] == child;
            for (int64_t j = begin; j < end; j++) {
                if (tree->column[j] == nodes->feature[i]) { /* a path column is numeric, and so is its split */
                    double *box = tree->box[j];
                    if (left)
                        box[1] = lesser(box[1], nodes->threshold[i]);
                    else
                        box[0] = greater(box[0], nodes->threshold[i]);
                    tree->may_miss[j] &= nodes->missing_left[i] == left;
                }
            }
            child = split;
        }
    }
}

static side_t side_of(const regressions_t *tree, int64_t leaf, int64_t j, int is_read)
{
    side_t side = {{UNREAD, 0.0, 0.0}, -INFINITY, INFINITY, 1};
    if (is_read) {
        int64_t path = tree->path_start[leaf] + j;
        side.part = part_of(tree, leaf, j);
        side.low = tree->box[path][0];
        side.high = tree->box[path][1];
        side.may_miss = tree->may_miss[path];
    }
    return side;
}

/* Returns the minimum of leaf b minus leaf a over rows that differ in `feature` alone; infinity without such rows.

   The leaves are on two sides of a split of the feature: a is on the left if the tree must be `rising`, otherwise b.
   Both rise in the feature, or both fall. The rows are equal in all other columns, whose parts are independent. */
double least_step(const regressions_t *tree, int64_t feature, int rising, int64_t a, int64_t b)
{
    int64_t first_a = tree->path_start[a], first_b = tree->path_start[b], i = 0, j = 0;
    int64_t k_a = tree->path_start[a + 1] - first_a, k_b = tree->path_start[b + 1] - first_b;
    double total = tree->weight[tree->weight_start[b]] - tree->weight[tree->weight_start[a]];
    while (i < k_a || j < k_b) { /* the columns of both ascend */
        int64_t column_a = i < k_a ? tree->column[first_a + i] : NO_COLUMN;
        int64_t column_b = j < k_b ? tree->column[first_b + j] : NO_COLUMN;
        int in_a = column_a <= column_b, in_b = column_b <= column_a;
        side_t of_a = side_of(tree, a, i, in_a), of_b = side_of(tree, b, j, in_b);
        if ((in_a ? column_a : column_b) == feature) { /* a is largest and b smallest at the ends next to the split */
            total += value_at(rising ? of_b.low : of_b.high, &of_b.part) -
                     value_at(rising ? of_a.high : of_a.low, &of_a.part);
        } else {
            double low = greater(of_a.low, of_b.low), high = lesser(of_a.high, of_b.high);
            int both_miss = of_a.may_miss && of_b.may_miss; /* a missing value contributes a step of 0 */
            if (low < high) {
                double least = least_between(low, high, &of_a.part, &of_b.part);
                total += both_miss ? lesser(least, 0.0) : least;
            } else if (!both_miss) {
                return INFINITY;
            }
        }
        i += in_a;
        j += in_b;
    }
    return total;
}
