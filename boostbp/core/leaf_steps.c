/* Comparison of two leaves of a tree with one output: the smallest step from one to the other, over pairs of rows that
   differ in one feature.

   A leaf is w_0 + sum_j (w_j u_j + w_jj u_j^2), u_j = (z_j - center) / scale clipped to [lower, upper]. This is a sum
   over columns, so the smallest difference of two leaves is the sum of the smallest differences of its terms. */

#include "boostbp.h"

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

static part_t part_of(const leaves_t *leaves, int64_t leaf, int64_t j)
{
    regression_t r = regression_of(leaves, 0, leaf);
    return (part_t){r.scaling + 4 * j, r.linear[j], r.degree == 2 ? r.square[j] : 0.0};
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
void reach_of(const leaves_t *leaves, int64_t leaf, double *reach)
{
    reach[0] = reach[1] = leaves->weight[leaves->weight_start[leaf]];
    for (int64_t j = 0; j < leaves->start[leaf + 1] - leaves->start[leaf]; j++) {
        part_t part = part_of(leaves, leaf, j);
        double lower = value_at(-INFINITY, &part), upper = value_at(INFINITY, &part);
        double flat = value_at(flat_at(&part), &part); /* of NaN no comparison is true */
        reach[0] += lesser(lesser(lesser(lower, upper), 0.0), flat);
        reach[1] += greater(greater(greater(lower, upper), 0.0), flat);
    }
}

/* Writes the thresholds that bound each path column of each leaf, and whether rows of the leaf may miss it.

   `parent`, (leaves + splits,), has the split above each leaf, then above each split, -1 above the root. */
void find_boxes(const boxes_t *boxes, const nodes_t *nodes, const int64_t *parent)
{
    const leaves_t *leaves = boxes->leaves;
    for (int64_t leaf = 0; leaf < leaves->n_leaves; leaf++) {
        int64_t begin = leaves->start[leaf], end = leaves->start[leaf + 1], child = ~leaf;
        for (int64_t j = begin; j < end; j++) {
            boxes->box[j][0] = -INFINITY, boxes->box[j][1] = INFINITY;
            boxes->may_miss[j] = 1;
        }
        for (int64_t split = parent[leaf]; split >= 0; child = split, split = parent[leaves->n_leaves + split]) {
            int left = nodes->left[split] == child;
            for (int64_t j = begin; j < end; j++) {
                double *box = boxes->box[j];
                if (leaves->column[j] != nodes->feature[split]) /* a path column is numeric, and so is its split */
                    continue;
                if (left)
                    box[1] = lesser(box[1], nodes->threshold[split]);
                else
                    box[0] = greater(box[0], nodes->threshold[split]);
                boxes->may_miss[j] &= nodes->missing_left[split] == left;
            }
        }
    }
}

static side_t side_of(const boxes_t *boxes, int64_t leaf, int64_t j, int is_read)
{
    int64_t path = boxes->leaves->start[leaf] + j;
    if (!is_read)
        return (side_t){{UNREAD, 0.0, 0.0}, -INFINITY, INFINITY, 1};
    return (side_t){part_of(boxes->leaves, leaf, j), boxes->box[path][0], boxes->box[path][1], boxes->may_miss[path]};
}

/* Returns the minimum of leaf b minus leaf a over rows that differ in `feature` alone; infinity without such rows.

   The leaves are on two sides of a split of the feature: a is on the left if the tree must be `rising`, otherwise b.
   Both rise in the feature, or both fall. The rows are equal in all other columns, whose parts are independent. */
double least_step(const boxes_t *boxes, int64_t feature, int rising, int64_t a, int64_t b)
{
    regression_t r_a = regression_of(boxes->leaves, 0, a), r_b = regression_of(boxes->leaves, 0, b);
    double total = *r_b.constant - *r_a.constant;
    for (int64_t i = 0, j = 0; i < r_a.k || j < r_b.k;) { /* the columns of both ascend */
        int64_t column_a = i < r_a.k ? r_a.column[i] : NO_COLUMN, column_b = j < r_b.k ? r_b.column[j] : NO_COLUMN;
        int in_a = column_a <= column_b, in_b = column_b <= column_a;
        side_t of_a = side_of(boxes, a, i, in_a), of_b = side_of(boxes, b, j, in_b);
        i += in_a;
        j += in_b;
        if ((in_a ? column_a : column_b) == feature) { /* a is largest and b smallest at the ends next to the split */
            total += value_at(rising ? of_b.low : of_b.high, &of_b.part) -
                     value_at(rising ? of_a.high : of_a.low, &of_a.part);
            continue;
        }
        double low = greater(of_a.low, of_b.low), high = lesser(of_a.high, of_b.high);
        int both_miss = of_a.may_miss && of_b.may_miss; /* a missing value contributes a step of 0 */
        if (!(low < high) && !both_miss)
            return INFINITY;
        double least = low < high ? least_between(low, high, &of_a.part, &of_b.part) : 0.0;
        total += both_miss ? lesser(least, 0.0) : least;
    }
    return total;
}
