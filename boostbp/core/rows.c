/* Prediction of single rows: trees are walked in lockstep, and their leaves read from one table.

   Routing through a tree waits for memory at each split, and for each mispredicted branch. So eight trees take one step
   each in turn (BOOSTBP_LOCKSTEP trees have one number of steps), no branch depends on the row, and the record of a leaf is prefetched when it is reached. The layout is
   that of `Flat` in boostbp/trees/flat.py. Outputs have the same bits as those of `boostbp_route` and
   `boostbp_evaluate`.

   `boostbp.to_c` copies the lines between the two marks to the program of a model. They are C99 and need only libm. */

#include "boostbp.h"

typedef int16_t boostbp_step;
typedef uint16_t boostbp_column;

/* Exported from here on. */

enum { BOOSTBP_LOCKSTEP = 16 }; /* trees that share a number of steps: twice as many as are walked together */
enum { BOOSTBP_AT_ONCE = 512 }; /* trees that are walked before their leaves are read, which then fit a cache */
enum { BOOSTBP_SCALING = 5 };   /* numbers of a path column before its weights */

/* A split or a leaf. The left child is `step` nodes after the split, and the right child follows it. A row goes right
   if its number of `column` is larger than `bound`; see boostbp_count. A leaf has the step 0, the number of its columns
   as `column`, and a bound that no number exceeds: the complement of the place of its record. */
typedef struct {
    uint32_t bound;
    boostbp_step step;
    boostbp_column column;
} boostbp_node;

typedef struct {
    int32_t root, first_output, n_outputs, degree;
} boostbp_tree;

/* A layer: trees, sets of categories, the width of its input, its outputs, and the first bound of its columns. */
typedef struct {
    int64_t first_tree, n_trees, first_set, end_set, width, n_outputs, first_bound;
} boostbp_layer;

typedef struct {
    int64_t feature, start, words, missing_left;
} boostbp_set;

/* The layers of a model. */
typedef struct {
    const boostbp_node *nodes;
    const boostbp_tree *trees; /* of each layer a positive multiple of BOOSTBP_LOCKSTEP */
    const boostbp_layer *layers;
    const int64_t *steps; /* to the deepest leaf of each BOOSTBP_LOCKSTEP trees */
    const double *bounds; /* the thresholds of each input column, ascending */
    const int64_t *first_bound;
    const void *table; /* records of leaves, in float or double: constants, and for each path column its number,
                          scaling, linear weights and, for degree 2, quadratic weights */
    const boostbp_set *sets;
    const uint32_t *categories;
    const double *baseline; /* added to the outputs */
    int64_t n_layers, n_outputs;
} boostbp_flat;

/* Memory for a row: input and outputs of a layer, numbers of boostbp_count, and leaves. */
typedef struct {
    double *input, *h;
    uint32_t *number;
    boostbp_node *leaf; /* BOOSTBP_AT_ONCE of them */
} boostbp_scratch;

#ifdef __GNUC__
#define BOOSTBP_FETCH(address) __builtin_prefetch((const void *)(address))
#else
#define BOOSTBP_FETCH(address) ((void)(address))
#endif

/* Writes the numbers that splits compare with their bounds. For each column, this is the number of bounds below its
   value, in two versions: a missing value counts as below all bounds for splits that send it left, and as above all for
   others. For each set of categories, it is whether the row goes right. */
static void boostbp_count(const boostbp_flat *flat, const boostbp_layer *layer, const double *x, uint32_t *number)
{
    const int64_t *first = flat->first_bound + layer->first_bound;
    for (int64_t j = 0; j < layer->width; j++) {
        const double *bound = flat->bounds + first[j];
        uint32_t all = (uint32_t)(first[j + 1] - first[j]), left = all, below = 0;
        for (; left > 1; left -= left / 2) /* no branch depends on the row, here and in boostbp_walk */
            below += left / 2 & -(uint32_t)(bound[below + left / 2 - 1] < x[j]);
        if (left)
            below += bound[below] < x[j];
        *number++ = below;
        *number++ = isnan(x[j]) ? all : below;
    }
    for (int64_t i = layer->first_set; i < layer->end_set; i++) {
        const boostbp_set *set = flat->sets + i;
        double value = x[set->feature];
        uint32_t left = 0;
        if (isnan(value)) {
            left = set->missing_left != 0;
        } else if (value > -1.0 && value < 32.0 * (double)set->words) {
            int64_t code = (int64_t)value;
            left = flat->categories[set->start + code / 32] >> (code % 32) & 1;
        }
        *number++ = !left;
    }
}

/* Routes a row through eight trees, one step of each tree in turn, with as many steps as the longest path has. Then
   prefetches the records of the leaves. */
static void boostbp_walk(const boostbp_flat *flat, const boostbp_tree *tree, int64_t steps, const uint32_t *number,
                         size_t bytes, boostbp_node *leaf)
{
    const boostbp_node *a = flat->nodes + tree[0].root, *b = flat->nodes + tree[1].root;
    const boostbp_node *c = flat->nodes + tree[2].root, *d = flat->nodes + tree[3].root;
    const boostbp_node *e = flat->nodes + tree[4].root, *f = flat->nodes + tree[5].root;
    const boostbp_node *g = flat->nodes + tree[6].root, *h = flat->nodes + tree[7].root;
#define BOOSTBP_STEP(node) node += node->step + (number[node->column] > node->bound)
    for (; steps > 0; steps--) {
        BOOSTBP_STEP(a), BOOSTBP_STEP(b), BOOSTBP_STEP(c), BOOSTBP_STEP(d);
        BOOSTBP_STEP(e), BOOSTBP_STEP(f), BOOSTBP_STEP(g), BOOSTBP_STEP(h);
    }
    leaf[0] = *a, leaf[1] = *b, leaf[2] = *c, leaf[3] = *d, leaf[4] = *e, leaf[5] = *f, leaf[6] = *g, leaf[7] = *h;
    for (int i = 0; i < 8; i++) {
        uintptr_t record = (uintptr_t)flat->table + bytes * ~leaf[i].bound;
        BOOSTBP_FETCH(record);
        BOOSTBP_FETCH(record + 64);
    }
}

/* A number of a table in float or double. */
static inline double boostbp_at(const char *table, size_t bytes, size_t place)
{
    return bytes == sizeof(float) ? (double)((const float *)table)[place] : ((const double *)table)[place];
}

/* A cell in units of a leaf: (z - center) * inverse scale, clipped. */
static inline double boostbp_standardised(double z, const char *w, size_t bytes)
{
    double u = (z - boostbp_at(w, bytes, 1)) * boostbp_at(w, bytes, 2);
    double lower = boostbp_at(w, bytes, 3), upper = boostbp_at(w, bytes, 4);
    u = u > lower ? u : lower;
    return u < upper ? u : upper;
}

/* Adds the values of leaves, w + sum_j u_j (w_j + u_j w_jj), with operations in the order of evaluation.c. */
static inline void boostbp_add(const void *table, size_t bytes, const boostbp_tree *tree, int64_t n,
                               const boostbp_node *leaf, const double *restrict x, double *restrict out)
{
    for (const boostbp_node *end = leaf + n; leaf < end; leaf++, tree++) {
        const char *w = (const char *)table + bytes * ~leaf->bound;
        int64_t m = tree->n_outputs, k = leaf->column;
        int is_square = tree->degree == 2;
        double *sum = out + tree->first_output;
        if (m == 1) {
            double total = boostbp_at(w, bytes, 0);
            w += bytes;
            for (int64_t j = 0; j < k; j++, w += bytes * (BOOSTBP_SCALING + 1 + is_square)) {
                double z = x[(int32_t)boostbp_at(w, bytes, 0)];
                if (isnan(z))
                    continue;
                double u = boostbp_standardised(z, w, bytes), linear = boostbp_at(w, bytes, BOOSTBP_SCALING);
                total += is_square ? u * (linear + u * boostbp_at(w, bytes, BOOSTBP_SCALING + 1)) : u * linear;
            }
            *sum += total;
            continue;
        }
        for (int64_t o = 0; o < m; o++)
            sum[o] += boostbp_at(w, bytes, o);
        w += bytes * m;
        for (int64_t j = 0; j < k; j++, w += bytes * (BOOSTBP_SCALING + m + is_square * m)) {
            double z = x[(int32_t)boostbp_at(w, bytes, 0)];
            if (isnan(z))
                continue;
            double u = boostbp_standardised(z, w, bytes);
            for (int64_t o = 0; o < m; o++)
                sum[o] += u * boostbp_at(w, bytes, BOOSTBP_SCALING + o);
            if (is_square)
                for (int64_t o = 0; o < m; o++)
                    sum[o] += u * u * boostbp_at(w, bytes, BOOSTBP_SCALING + m + o);
        }
    }
}

/* Passes a row through all layers and writes its outputs. `bytes` is the size of a number in the table. With `skip`,
   each layer reads the outputs of the layer below, then the row. */
static void boostbp_forward(const boostbp_flat *flat, size_t bytes, int skip, const double *row, size_t n_features,
                            const boostbp_scratch *scratch, double *out)
{
    size_t width = 0; /* outputs of the layer below */
    for (int64_t l = 0; l < flat->n_layers; l++) {
        const boostbp_layer *layer = flat->layers + l;
        memcpy(scratch->input, scratch->h, sizeof(double) * width);
        if (l == 0 || skip)
            memcpy(scratch->input + width, row, sizeof(double) * n_features);
        boostbp_count(flat, layer, scratch->input, scratch->number);
        width = (size_t)layer->n_outputs;
        memset(scratch->h, 0, sizeof(double) * width);
        for (int64_t first = 0; first < layer->n_trees; first += BOOSTBP_AT_ONCE) {
            int64_t left = layer->n_trees - first, n = left < BOOSTBP_AT_ONCE ? left : BOOSTBP_AT_ONCE;
            int64_t at = layer->first_tree + first;
            const boostbp_tree *trees = flat->trees + at;
            for (int64_t i = 0; i < n; i += 8) {
                int64_t steps = flat->steps[(at + i) / BOOSTBP_LOCKSTEP];
                boostbp_walk(flat, trees + i, steps, scratch->number, bytes, scratch->leaf + i);
            }
            if (bytes == sizeof(float)) /* one version of the loops for each */
                boostbp_add(flat->table, sizeof(float), trees, n, scratch->leaf, scratch->input, scratch->h);
            else
                boostbp_add(flat->table, sizeof(double), trees, n, scratch->leaf, scratch->input, scratch->h);
        }
    }
    for (size_t o = 0; o < width; o++)
        out[o] = scratch->h[o] + flat->baseline[o];
}

/* Exported up to here. */

/* Writes the outputs of rows X to `out`, (rows, outputs). */
API int64_t boostbp_predict_rows(const boostbp_flat *flat, int64_t bytes, int64_t skip, const double *X, double *out,
                                 int64_t n_rows, int64_t n_columns)
{
    SCRATCH scratch = {0};
    int64_t width = 1, numbers = 1;
    for (int64_t l = 0; l < flat->n_layers; l++) {
        const boostbp_layer *layer = flat->layers + l;
        width = most_of(width, most_of(layer->width, layer->n_outputs));
        numbers = most_of(numbers, 2 * layer->width + layer->end_set - layer->first_set);
    }
    boostbp_node leaf[BOOSTBP_AT_ONCE];
    boostbp_scratch memory = {take(&scratch, width, 8), take(&scratch, width, 8), take(&scratch, numbers, 4), leaf};
    if (scratch.is_lacking)
        return LACKS_MEMORY;
    for (int64_t row = 0; row < n_rows; row++)
        boostbp_forward(flat, (size_t)bytes, skip != 0, X + row * n_columns, (size_t)n_columns, &memory,
                        out + row * flat->n_outputs);
    return 0;
}
