/* Leaf regressions of trees that are monotone in some features.

   Two rows that differ only in one feature can be separated only by a split of that feature. So a tree is monotone in a
   feature if every leaf is, and if at each split of the feature no leaf of the lower side exceeds a leaf of the upper
   side on rows that differ only in this feature and reach both. The leaves of a tree are fitted in three steps:

   1. In each leaf, the slope of a constrained feature has the right sign at both ends of the range, and so within.
   2. Each leaf also has a mean, clipped to bounds that each split of a constrained feature passes down: the middle of
      the means of its two sides (the "basic" method of LightGBM). The means alone would be monotone constant leaves.
   3. From the bottom up, if leaves of the two sides of a split of a constrained feature are out of order, all leaves
      below it move towards their means by a common share, and the two sides apart by a constant. Share and constant
      minimise the loss of what the regressions gained. The order at splits below is kept, as ordered leaves are a
      convex set that contains the means.

   Two leaves are compared by the smallest step from one to the other, over pairs of rows that differ in one feature. A
   leaf is w_0 + sum_j (w_j u_j + w_jj u_j^2), u_j = (z_j - center) / scale clipped to [lower, upper]. This is a sum
   over columns, so the smallest difference of two leaves is the sum of the smallest differences of its terms. */

#include "boostbp.h"

enum { FREE, FLAT_END, ABSENT }; /* column of a leaf: unrestricted; slope 0 at an end of its range; without weight */
static const int SHARES = 16;     /* grid of shares by which leaves move towards their means; arbitrary */
enum { PAIRS = 1024 };           /* leaves compared at a split; with more pairs, bounds of its sides are compared */

static const int64_t NO_COLUMN = INT64_MAX; /* comes after all columns */
static const double UNREAD[4];              /* scaling of a column that a leaf does not read: its part is 0 */

/* A tree, its leaves in order, and its regressions. */
typedef struct {
    const nodes_t *nodes;
    const leaves_t *leaves;
    const int64_t *sign;  /* (features,) 1 where the tree rises, -1 where it falls, else 0 */
    int64_t *order;       /* (splits,) each before those below it */
    int64_t *parent;      /* (leaves + splits,) the split above each leaf, then above each split; -1 above the root */
    int64_t *place;       /* (leaves,) the leaves from left to right */
    int64_t (*span)[3];   /* (splits,) places where leaves of the left side begin, of the right side begin, all end */
    double *mass, *mean;  /* (leaves,) sum of hessians; first the moment, then the mean */
    double *gain;         /* (leaves,) twice what the regression gains over the mean */
    double (*reach)[2];   /* (leaves,) bounds of the values over all rows */
    double (*steps)[2];   /* (PAIRS,) between leaves that are out of order: as they are, and of their means */
    double (*total)[2];   /* (leaves + 1,) scratch: mass and moment of the leaves up to each place */
    double (*bounds)[2];  /* (leaves,) scratch: bounds of the mean at each place */
    int64_t *todo, *rank; /* (2 leaves,), (leaves,) scratch */
    double (*box)[2];     /* (paths,) thresholds that bound a column in its leaf */
    uint8_t *may_miss;    /* (paths,) whether rows of the leaf may miss the column */
} tree_t;

/* The normal equations of one leaf while its columns are restricted. */
typedef struct {
    int64_t p, k, degree;
    double *gram, *moment; /* (p, p), (p,) of the terms as restricted */
    double *factor;        /* (p, p) scratch */
    double *ratio;         /* (k,) of a column with a flat end: its term is u + ratio u^2 */
    int64_t *state;        /* (k,) FREE, FLAT_END or ABSENT */
} equations_t;

/* Removes a term from the normal equations, which then give it a weight of 0. */
static void leave_out(equations_t *e, int64_t term)
{
    for (int64_t i = 0; i < e->p; i++)
        e->gram[term * e->p + i] = e->gram[i * e->p + term] = 0.0;
    e->moment[term] = 0.0;
}

/* Replaces a term by term + ratio * other, and removes the other: adds its row and column of the Gram matrix. */
static void join_terms(equations_t *e, int64_t term, int64_t other, double ratio)
{
    for (int64_t i = 0; i < e->p; i++)
        e->gram[term * e->p + i] += ratio * e->gram[other * e->p + i];
    for (int64_t i = 0; i < e->p; i++)
        e->gram[i * e->p + term] += ratio * e->gram[i * e->p + other];
    e->moment[term] += ratio * e->moment[other];
    leave_out(e, other);
}

/* Restricts column j of a leaf if its slope has the wrong sign somewhere; returns whether it had.

   The slope w_j + 2 u w_jj is between those at the ends of the range. If it is wrong at one end only, the vertex of the
   parabola moves there: u + ratio u^2 has it at u = -1 / (2 ratio). */
static int restrict_column(equations_t *e, int64_t j, const double *w, double sign, const double *scaling)
{
    double linear = sign * w[1 + j], square = e->degree == 2 ? sign * w[1 + e->k + j] : 0.0;
    double lower = scaling[LOWER], upper = scaling[UPPER];
    double at_lower = linear + 2.0 * square * lower, at_upper = linear + 2.0 * square * upper;
    if (e->state[j] == ABSENT || (at_lower >= 0.0 && at_upper >= 0.0))
        return 0;
    if (e->state[j] == FLAT_END && linear >= 0.0) /* the slope at that end is 0 up to rounding */
        return 0;
    if (e->degree == 2 && e->state[j] == FREE && greater(at_lower, at_upper) > 0.0 && lower < 0.0 && 0.0 < upper) {
        e->state[j] = FLAT_END;
        e->ratio[j] = -0.5 / (at_lower < 0.0 ? lower : upper);
        join_terms(e, 1 + j, 1 + e->k + j, e->ratio[j]);
        return 1;
    }
    e->state[j] = ABSENT;
    leave_out(e, 1 + j);
    if (e->degree == 2)
        leave_out(e, 1 + e->k + j);
    return 1;
}

/* Restricts all constrained columns of a leaf whose slopes are wrong under the weights w; returns whether any was. */
static int restrict_columns(equations_t *e, const tree_t *tree, int64_t path, const double *w)
{
    int wrong = 0;
    for (int64_t j = 0; j < e->k; j++) {
        int64_t way = tree->sign[tree->leaves->column[path + j]];
        const double *scaling = tree->leaves->scaling + 4 * (path + j);
        if (way != 0 && scaling[INV_SCALE] != 0.0)
            wrong |= restrict_column(e, j, w, (double)way, scaling);
    }
    return wrong;
}

/* Replaces the moments of one leaf, w, by ridge weights whose slopes have the right signs within the leaf's range.

   Columns are restricted until no slope is wrong; each round restricts at least one more. `e->moment` becomes the
   moments of the restricted terms. */
static void solve_signed(equations_t *e, const tree_t *tree, int64_t leaf, const double *gram, double *w,
                         double penalty, int64_t penalize_constant)
{
    int64_t path = tree->leaves->start[leaf];
    e->k = tree->leaves->start[leaf + 1] - path;
    e->p = 1 + e->degree * e->k;
    for (int64_t i = 0; i < e->p; i++) {
        e->moment[i] = w[i];
        for (int64_t j = 0; j <= i; j++)
            e->gram[i * e->p + j] = e->gram[j * e->p + i] = gram[i * e->p + j];
    }
    for (int64_t j = 0; j < e->k; j++)
        e->state[j] = FREE;
    do {
        memcpy(w, e->moment, (size_t)e->p * sizeof *w);
        solve_leaf(e->gram, w, e->p, 1, penalty, penalize_constant, 1.0, e->factor);
        for (int64_t j = 0; j < e->k; j++)
            if (e->state[j] == FLAT_END)
                w[1 + e->k + j] = e->ratio[j] * w[1 + j];
    } while (restrict_columns(e, tree, path, w));
}

/* Writes order, parent, place and span of a tree. */
static void number_nodes(tree_t *tree)
{
    const int32_t *left = tree->nodes->left, *right = tree->nodes->right;
    int64_t n_leaves = tree->leaves->n_leaves, n_todo = 1, n_ordered = 0, n_placed = 0;
    tree->todo[0] = n_leaves > 1 ? 0 : -1;
    tree->parent[n_leaves > 1 ? n_leaves : 0] = -1;
    while (n_todo > 0) {
        int64_t node = tree->todo[--n_todo];
        if (node < 0) { /* a leaf */
            tree->place[n_placed] = ~node;
            tree->rank[~node] = n_placed++;
            continue;
        }
        tree->order[n_ordered++] = node;
        int64_t children[2] = {right[node], left[node]}; /* the left one is next */
        for (int i = 0; i < 2; i++) {
            tree->parent[children[i] < 0 ? ~children[i] : n_leaves + children[i]] = node;
            tree->todo[n_todo++] = children[i];
        }
    }
    for (int64_t i = n_ordered - 1; i >= 0; i--) {
        int64_t node = tree->order[i], l = left[node], r = right[node];
        tree->span[node][0] = l < 0 ? tree->rank[~l] : tree->span[l][0];
        tree->span[node][1] = r < 0 ? tree->rank[~r] : tree->span[r][0];
        tree->span[node][2] = r < 0 ? tree->rank[~r] + 1 : tree->span[r][2];
    }
}

static int64_t sign_of(const tree_t *tree, int64_t node)
{
    return tree->nodes->cat_start[node] < 0 ? tree->sign[tree->nodes->feature[node]] : 0;
}

static double mean_of(double mass, double moment, double penalty)
{
    return mass + penalty > 0.0 ? moment / (mass + penalty) : 0.0;
}

/* Replaces the moments of all leaves, `mean`, by means in the right order at each split of a constrained feature. */
static void order_means(tree_t *tree, double penalty)
{
    int64_t n_leaves = tree->leaves->n_leaves;
    double (*total)[2] = tree->total, (*bounds)[2] = tree->bounds;
    total[0][0] = total[0][1] = 0.0;
    for (int64_t i = 0; i < n_leaves; i++) {
        total[i + 1][0] = total[i][0] + tree->mass[tree->place[i]];
        total[i + 1][1] = total[i][1] + tree->mean[tree->place[i]];
        bounds[i][0] = -INFINITY;
        bounds[i][1] = INFINITY;
    }
    for (int64_t number = 0; number < n_leaves - 1; number++) {
        int64_t node = tree->order[number], way = sign_of(tree, node);
        if (way == 0)
            continue;
        int64_t begin = tree->span[node][0], middle = tree->span[node][1], end = tree->span[node][2];
        double left = mean_of(total[middle][0] - total[begin][0], total[middle][1] - total[begin][1], penalty);
        double right = mean_of(total[end][0] - total[middle][0], total[end][1] - total[middle][1], penalty);
        /* the bounds of any leaf below are those of all, so far */
        double between = lesser(greater(0.5 * (left + right), bounds[begin][0]), bounds[begin][1]);
        for (int64_t i = begin; i < end; i++)
            bounds[i][(i < middle) == (way > 0)] = between;
    }
    for (int64_t i = 0; i < n_leaves; i++) {
        int64_t leaf = tree->place[i];
        double mean = mean_of(tree->mass[leaf], tree->mean[leaf], penalty);
        tree->mean[leaf] = lesser(greater(mean, bounds[i][0]), bounds[i][1]);
    }
}

/* ---------------------------------------------------------------------------------- steps from leaf to leaf */

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
    double u = in_units(z, scaling[CENTER], scaling[INV_SCALE]);
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
static void find_reach(const tree_t *tree, int64_t leaf)
{
    const leaves_t *leaves = tree->leaves;
    double *reach = tree->reach[leaf];
    reach[0] = reach[1] = leaves->weight[leaves->weight_start[leaf]];
    for (int64_t j = 0; j < leaves->start[leaf + 1] - leaves->start[leaf]; j++) {
        part_t part = part_of(leaves, leaf, j);
        double lower = value_at(-INFINITY, &part), upper = value_at(INFINITY, &part);
        double flat = value_at(flat_at(&part), &part); /* of NaN no comparison is true */
        reach[0] += lesser(lesser(lesser(lower, upper), 0.0), flat);
        reach[1] += greater(greater(greater(lower, upper), 0.0), flat);
    }
}

/* Writes the thresholds that bound each path column of each leaf, and whether rows of the leaf may miss it. */
static void find_boxes(const tree_t *tree)
{
    const nodes_t *nodes = tree->nodes;
    const leaves_t *leaves = tree->leaves;
    for (int64_t leaf = 0; leaf < leaves->n_leaves; leaf++) {
        int64_t begin = leaves->start[leaf], end = leaves->start[leaf + 1], child = ~leaf;
        for (int64_t j = begin; j < end; j++) {
            tree->box[j][0] = -INFINITY, tree->box[j][1] = INFINITY;
            tree->may_miss[j] = 1;
        }
        for (int64_t split = tree->parent[leaf]; split >= 0; split = tree->parent[leaves->n_leaves + split]) {
            int left = nodes->left[split] == child;
            child = split;
            for (int64_t j = begin; j < end; j++) {
                double *box = tree->box[j];
                if (leaves->column[j] != nodes->feature[split]) /* a path column is numeric, and so is its split */
                    continue;
                if (left)
                    box[1] = lesser(box[1], nodes->threshold[split]);
                else
                    box[0] = greater(box[0], nodes->threshold[split]);
                tree->may_miss[j] &= nodes->missing_left[split] == left;
            }
        }
    }
}

static side_t side_of(const tree_t *tree, int64_t leaf, int64_t j, int is_read)
{
    int64_t path = tree->leaves->start[leaf] + j;
    if (!is_read)
        return (side_t){{UNREAD, 0.0, 0.0}, -INFINITY, INFINITY, 1};
    return (side_t){part_of(tree->leaves, leaf, j), tree->box[path][0], tree->box[path][1], tree->may_miss[path]};
}

/* Returns the minimum of leaf b minus leaf a over rows that differ in `feature` alone; infinity without such rows.

   The leaves are on two sides of a split of the feature: a is on the left if the tree must be `rising`, otherwise b.
   Both rise in the feature, or both fall. The rows are equal in all other columns, whose parts are independent. */
static double least_step(const tree_t *tree, int64_t feature, int rising, int64_t a, int64_t b)
{
    regression_t r_a = regression_of(tree->leaves, 0, a), r_b = regression_of(tree->leaves, 0, b);
    double total = *r_b.constant - *r_a.constant;
    for (int64_t i = 0, j = 0; i < r_a.k || j < r_b.k;) { /* the columns of both ascend */
        int64_t column_a = i < r_a.k ? r_a.column[i] : NO_COLUMN, column_b = j < r_b.k ? r_b.column[j] : NO_COLUMN;
        int in_a = column_a <= column_b, in_b = column_b <= column_a;
        side_t of_a = side_of(tree, a, i, in_a), of_b = side_of(tree, b, j, in_b);
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

/* ------------------------------------------------------------------------------------------------- order of leaves */

/* Writes lower bounds of the steps from leaves of the lower side to leaves of the upper one: of values, of means. */
static void step_of_sides(const tree_t *tree, const int64_t *span, int64_t way, double *step)
{
    double highest = -INFINITY, highest_mean = -INFINITY, lowest = INFINITY, lowest_mean = INFINITY;
    for (int64_t i = span[0]; i < span[2]; i++) {
        int64_t leaf = tree->place[i];
        if ((i < span[1]) == (way > 0)) {
            highest = greater(highest, tree->reach[leaf][1]);
            highest_mean = greater(highest_mean, tree->mean[leaf]);
        } else {
            lowest = lesser(lowest, tree->reach[leaf][0]);
            lowest_mean = lesser(lowest_mean, tree->mean[leaf]);
        }
    }
    step[0] = lowest - highest;
    step[1] = lowest_mean - highest_mean;
}

/* Writes the steps between leaves of the two sides of a split that are out of order; returns how many there are. */
static int64_t steps_down(const tree_t *tree, int64_t node, int64_t way)
{
    const int64_t *span = tree->span[node];
    double (*steps)[2] = tree->steps;
    int64_t n = 0;
    if ((span[1] - span[0]) * (span[2] - span[1]) > PAIRS) {
        step_of_sides(tree, span, way, steps[0]);
        return steps[0][0] < 0.0;
    }
    for (int64_t i = span[0]; i < span[1]; i++) {
        for (int64_t j = span[1]; j < span[2]; j++) {
            int64_t lower = tree->place[way > 0 ? i : j], upper = tree->place[way > 0 ? j : i];
            if (tree->reach[lower][1] <= tree->reach[upper][0])
                continue;
            double step = least_step(tree, tree->nodes->feature[node], way > 0, lower, upper);
            if (step < 0.0) {
                steps[n][0] = step;
                steps[n++][1] = tree->mean[upper] - tree->mean[lower];
            }
        }
    }
    return n;
}

/* Writes the share by which leaves move to their means, and the distance by which the sides move apart, of smallest
   cost.

   With the share t, a pair of leaves with the step s, and m between their means, needs a distance of -(1 - t) s - t m.
   Twice the cost of the n pairs in `steps` is t^2 loss + distance^2 mass. */
static void cheapest(const double (*steps)[2], int64_t n, double loss, double mass, double *share, double *distance)
{
    double best = INFINITY;
    *share = *distance = INFINITY;
    for (int k = 0; k <= SHARES; k++) {
        double t = (double)k / SHARES, apart = 0.0;
        for (int64_t i = 0; i < n; i++)
            apart = greater(apart, -(1.0 - t) * steps[i][0] - t * steps[i][1]);
        double cost = t * t * loss + apart * apart * mass;
        if (cost < best) {
            best = cost;
            *share = t;
            *distance = apart;
        }
    }
}

/* Moves the leaves below a split of a constrained feature until those of its two sides are in order. */
static void put_in_order(tree_t *tree, int64_t node)
{
    const leaves_t *leaves = tree->leaves;
    const int64_t *span = tree->span[node];
    int64_t way = sign_of(tree, node), n = way != 0 ? steps_down(tree, node, way) : 0;
    if (n == 0)
        return;
    double loss = 0.0, mass_left = 0.0, mass_right = 0.0, share, distance;
    for (int64_t i = span[0]; i < span[2]; i++) {
        loss += tree->gain[tree->place[i]];
        *(i < span[1] ? &mass_left : &mass_right) += tree->mass[tree->place[i]];
    }
    /* moved apart around their common mean, each side by the share of the other in the mass */
    double right = mass_left + mass_right > 0.0 ? mass_left / (mass_left + mass_right) : 0.5;
    cheapest((const double (*)[2])tree->steps, n, loss, right * mass_right, &share, &distance);
    for (int64_t i = span[0]; i < span[2]; i++) {
        int64_t leaf = tree->place[i];
        double *w = leaves->weight + leaves->weight_start[leaf], *reach = tree->reach[leaf];
        double step = share * tree->mean[leaf] + (double)way * distance * (i >= span[1] ? right : right - 1.0);
        for (int64_t term = 0; term < leaves->weight_start[leaf + 1] - leaves->weight_start[leaf]; term++)
            w[term] *= 1.0 - share;
        w[0] += step;
        tree->gain[leaf] *= (1.0 - share) * (1.0 - share);
        reach[0] = (1.0 - share) * reach[0] + step;
        reach[1] = (1.0 - share) * reach[1] + step;
    }
}

/* Writes the regression of each leaf on its own, its gain over the mean, and the bounds of its values. */
static void solve_all(tree_t *tree, equations_t *e, const double *gram, double penalty, int64_t penalize_constant)
{
    for (int64_t leaf = 0; leaf < tree->leaves->n_leaves; leaf++) {
        double *w = tree->leaves->weight + tree->leaves->weight_start[leaf], gain = -tree->mean[leaf] * w[0];
        solve_signed(e, tree, leaf, gram, w, penalty, penalize_constant);
        for (int64_t term = 0; term < e->p; term++)
            gain += w[term] * e->moment[term];
        tree->gain[leaf] = greater(gain, 0.0);
        find_reach(tree, leaf);
        gram += e->p * e->p;
    }
}

/* Writes weights of each leaf of a tree that is monotone in some features over the moments in leaves->weight.

   gram, penalty, penalize_constant, scale: as for `boostbp_solve_leaves`, of one output; columns are the features, and
   `gram` is of terms that are centred and scaled. */
API int64_t boostbp_solve_monotone(const nodes_t *nodes, const leaves_t *leaves, const int64_t *sign,
                                   const double *gram, double penalty, int64_t penalize_constant, double scale)
{
    SCRATCH scratch = {0};
    int64_t n_leaves = leaves->n_leaves, n_splits = n_leaves - 1, degree = *leaves->tree_degree;
    int64_t most = 1 + degree * largest_part(leaves->start, n_leaves), g0 = 0;
    tree_t tree = {
        .nodes = nodes,
        .leaves = leaves,
        .sign = sign,
        .order = take(&scratch, n_splits, 8),
        .parent = take(&scratch, n_leaves + n_splits, 8),
        .place = take(&scratch, n_leaves, 8),
        .span = take(&scratch, 3 * n_splits, 8),
        .mass = take(&scratch, n_leaves, 8),
        .mean = take(&scratch, n_leaves, 8),
        .gain = take(&scratch, n_leaves, 8),
        .reach = take(&scratch, 2 * n_leaves, 8),
        .steps = take(&scratch, 2 * PAIRS, 8),
        .total = take(&scratch, 2 * (n_leaves + 1), 8),
        .bounds = take(&scratch, 2 * n_leaves, 8),
        .todo = take(&scratch, 2 * n_leaves, 8),
        .rank = take(&scratch, n_leaves, 8),
        .box = take(&scratch, 2 * leaves->n_paths, 8),
        .may_miss = take(&scratch, leaves->n_paths, 1),
    };
    equations_t equations = {
        .degree = degree,
        .gram = take(&scratch, most * most, 8),
        .moment = take(&scratch, most, 8),
        .factor = take(&scratch, most * most, 8),
        .ratio = take(&scratch, most, 8),
        .state = take(&scratch, most, 8),
    };
    if (scratch.is_lacking)
        return LACKS_MEMORY;
    for (int64_t leaf = 0; leaf < n_leaves; leaf++) {
        int64_t p = 1 + degree * (leaves->start[leaf + 1] - leaves->start[leaf]);
        tree.mass[leaf] = gram[g0];
        tree.mean[leaf] = leaves->weight[leaves->weight_start[leaf]];
        g0 += p * p;
    }
    number_nodes(&tree);
    order_means(&tree, penalize_constant ? penalty : 0.0);
    if (leaves->n_paths == 0) {
        memcpy(leaves->weight, tree.mean, (size_t)n_leaves * sizeof *tree.mean);
    } else {
        solve_all(&tree, &equations, gram, penalty, penalize_constant);
        find_boxes(&tree);
        for (int64_t number = n_splits - 1; number >= 0; number--)
            put_in_order(&tree, tree.order[number]);
    }
    for (int64_t term = 0; term < leaves->weight_start[n_leaves]; term++)
        leaves->weight[term] *= scale;
    return 0;
}
