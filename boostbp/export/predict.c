/* Splits and leaves of all trees; the right child of a split is behind the left one, `step` nodes from the split, and a
   row goes there where its number of `column` is larger than `bound`; see boostbp_count. A leaf has the step 0 and a
   bound that no number reaches, the complement of where its record begins; `column` counts its columns. */
typedef struct {
    uint32_t bound;
    boostbp_step step;
    boostbp_column column;
} boostbp_node;

typedef struct {
    int32_t root, first_output, n_outputs, degree;
} boostbp_tree;

/* A layer: trees, sets of categories, the width of its input, its outputs, and where its columns' bounds begin. */
typedef struct {
    int64_t first_tree, n_trees, first_set, end_set, width, n_outputs, first_bound;
} boostbp_layer;

typedef struct {
    int64_t feature, start, words, missing_left;
} boostbp_set;

/* The code of a category, its place among those of the column; as many as these for one that was not there at fit. */
static double boostbp_code(double value, const double *values, int count)
{
    int low = 0, high = count;
    if (isnan(value))
        return value;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (values[middle] < value)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && values[low] == value ? boostbp_codes[values - boostbp_values + low] : count;
}

#ifdef __GNUC__
#define BOOSTBP_FETCH(address) __builtin_prefetch((const void *)(address))
#else
#define BOOSTBP_FETCH(address) ((void)(address))
#endif

/* A row: itself, the input and the outputs of a layer, and what boostbp_count writes. */
typedef struct {
    double x[BOOSTBP_FEATURES], input[BOOSTBP_WIDTH], h[BOOSTBP_WIDTH];
    uint32_t number[BOOSTBP_NUMBERS];
} boostbp_row;

/* Writes what splits compare with the number of their threshold: of each column how many bounds are below its value,
   twice, as missing values are below all for splits that send them left and above all for others; of each set of
   categories whether the row goes right. */
static void boostbp_count(const boostbp_layer *layer, const double *x, uint32_t *number)
{
    const int64_t *first = boostbp_first_bound + layer->first_bound;
    int64_t j;
    for (j = 0; j < layer->width; j++) {
        const double *bound = boostbp_bounds + first[j];
        uint32_t all = (uint32_t)(first[j + 1] - first[j]), left = all, below = 0;
        for (; left > 1; left -= left / 2) /* without jumps that depend on the row, here and in boostbp_walk */
            below += left / 2 & -(uint32_t)(bound[below + left / 2 - 1] < x[j]);
        if (left)
            below += bound[below] < x[j];
        *number++ = below;
        *number++ = isnan(x[j]) ? all : below;
    }
    for (j = layer->first_set; j < layer->end_set; j++) {
        const boostbp_set *set = boostbp_sets + j;
        double value = x[set->feature];
        uint32_t left = 0;
        if (isnan(value)) {
            left = set->missing_left != 0;
        } else if (value > -1.0 && value < 32.0 * (double)set->words) {
            int64_t code = (int64_t)value;
            left = boostbp_categories[set->start + code / 32] >> (code % 32) & 1;
        }
        *number++ = !left;
    }
}

/* The leaves of a row under eight trees, of which each takes a step before one of them takes the next, and so many steps
   that all have arrived. What is read of the leaves is asked of memory. */
static void boostbp_walk(const boostbp_tree *tree, int64_t steps, const uint32_t *number, boostbp_node *leaf)
{
    const boostbp_node *a = boostbp_nodes + tree[0].root, *b = boostbp_nodes + tree[1].root;
    const boostbp_node *c = boostbp_nodes + tree[2].root, *d = boostbp_nodes + tree[3].root;
    const boostbp_node *e = boostbp_nodes + tree[4].root, *f = boostbp_nodes + tree[5].root;
    const boostbp_node *g = boostbp_nodes + tree[6].root, *h = boostbp_nodes + tree[7].root;
    int i;
#define BOOSTBP_STEP(node) node += node->step + (number[node->column] > node->bound)
    for (; steps > 0; steps--) {
        BOOSTBP_STEP(a);
        BOOSTBP_STEP(b);
        BOOSTBP_STEP(c);
        BOOSTBP_STEP(d);
        BOOSTBP_STEP(e);
        BOOSTBP_STEP(f);
        BOOSTBP_STEP(g);
        BOOSTBP_STEP(h);
    }
    leaf[0] = *a, leaf[1] = *b, leaf[2] = *c, leaf[3] = *d, leaf[4] = *e, leaf[5] = *f, leaf[6] = *g, leaf[7] = *h;
    for (i = 0; i < 8; i++) {
        BOOSTBP_FETCH((uintptr_t)(boostbp_table + ~leaf[i].bound));
        BOOSTBP_FETCH((uintptr_t)(boostbp_table + ~leaf[i].bound) + 64);
    }
}

/* A cell in units of a leaf: (z - center) * inverse scale, clipped. */
static double boostbp_standardised(double z, const boostbp_number *scaling)
{
    double u = (z - scaling[0]) * scaling[1];
    u = u > scaling[2] ? u : scaling[2];
    return u < scaling[3] ? u : scaling[3];
}

/* Adds what leaves predict: w + sum_j u_j (w_j + u_j w_jj). The order of the operations is that of boostbp. */
static void boostbp_add(const boostbp_tree *tree, int64_t n, const boostbp_node *leaf, const double *x, double *out)
{
    const boostbp_node *end = leaf + n;
    int64_t j, o;
    for (; leaf < end; leaf++, tree++) {
        const boostbp_number *w = boostbp_table + ~leaf->bound;
        int64_t m = tree->n_outputs, k = leaf->column;
        double *sum = out + tree->first_output;
        if (m == 1) {
            double total = w[0];
            for (j = 0, w++; j < k; j++, w += 5 + tree->degree) {
                double z = x[(int32_t)w[0]], u;
                if (isnan(z))
                    continue;
                u = boostbp_standardised(z, w + 1);
                total += tree->degree == 2 ? u * (w[5] + u * w[6]) : u * w[5];
            }
            *sum += total;
            continue;
        }
        for (o = 0; o < m; o++)
            sum[o] += w[o];
        for (j = 0, w += m; j < k; j++, w += 5 + tree->degree * m) {
            double z = x[(int32_t)w[0]], u;
            if (isnan(z))
                continue;
            u = boostbp_standardised(z, w + 1);
            for (o = 0; o < m; o++)
                sum[o] += u * w[5 + o];
            if (tree->degree == 2)
                for (o = 0; o < m; o++)
                    sum[o] += u * u * w[5 + m + o];
        }
    }
}

/* Takes a row through all layers. */
static void boostbp_forward(boostbp_row *row)
{
    int64_t layer, t, i, width = 0;
    for (layer = 0; layer < BOOSTBP_LAYERS; layer++) {
        const boostbp_layer *here = boostbp_layers + layer;
        memcpy(row->input, row->h, sizeof(double) * width);
        if (layer == 0 || BOOSTBP_SKIP)
            memcpy(row->input + width, row->x, sizeof row->x);
        boostbp_count(here, row->input, row->number);
        width = here->n_outputs;
        memset(row->h, 0, sizeof(double) * width);
        for (t = 0; t < here->n_trees; t += BOOSTBP_LANES) {
            const boostbp_tree *tree = boostbp_trees + here->first_tree + t;
            int64_t steps = boostbp_steps[(here->first_tree + t) / BOOSTBP_LANES], left = here->n_trees - t;
            boostbp_node leaf[BOOSTBP_LANES];
            for (i = 0; i < BOOSTBP_LANES; i += 8)
                boostbp_walk(tree + i, steps, row->number, leaf + i);
            boostbp_add(tree, left < BOOSTBP_LANES ? left : BOOSTBP_LANES, leaf, row->input, row->h);
        }
    }
}

/* The raw outputs of a row. Returns 0; 1 if the row holds infinity, -1 without memory. */
static int boostbp_raw(const double *cells, double *raw)
{
    boostbp_row *row;
    int j;
    for (j = 0; j < BOOSTBP_FEATURES; j++)
        if (isinf(cells[j]))
            return 1;
    row = malloc(sizeof *row);
    if (row == NULL)
        return -1;
    memcpy(row->x, cells, sizeof row->x);
    for (j = 0; j < BOOSTBP_CATEGORICAL; j++) {
        const double *values = boostbp_values + boostbp_value_start[j];
        int count = (int)(boostbp_value_start[j + 1] - boostbp_value_start[j]);
        row->x[boostbp_categorical[j]] = boostbp_code(cells[boostbp_categorical[j]], values, count);
    }
    boostbp_forward(row);
    for (j = 0; j < BOOSTBP_OUTPUTS; j++)
        raw[j] = row->h[j] + boostbp_baseline[j];
    free(row);
    return 0;
}
