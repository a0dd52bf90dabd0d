/* A layer: trees, and regressions in their leaves; see boostbp_leaf and boostbp_add_tree. */
typedef struct {
    int n_trees, n_outputs, clip;
    const int32_t *tree_split, *tree_leaf, *tree_output, *tree_degree;
    const int32_t *feature, *left, *right, *cat_start, *cat_words;
    const double *threshold;
    const uint8_t *missing_left;
    const uint32_t *categories;
    const int32_t *start, *column, *weight_start;
    const double *scaling, *weight;
} boostbp_layer;

/* The leaf of a row under a tree, counted within the tree. */
static int32_t boostbp_leaf(const boostbp_layer *layer, int tree, const double *x)
{
    int32_t first = layer->tree_split[tree], node = 0;
    if (layer->tree_split[tree + 1] == first)
        return 0;
    do {
        int32_t i = first + node;
        double value = x[layer->feature[i]];
        int left = 0;
        if (isnan(value)) {
            left = layer->missing_left[i];
        } else if (layer->cat_start[i] < 0) {
            left = value <= layer->threshold[i];
        } else if (value > -1.0 && value < 32.0 * layer->cat_words[i]) {
            int32_t code = (int32_t)value;
            left = layer->categories[layer->cat_start[i] + code / 32] >> (code % 32) & 1;
        }
        node = left ? layer->left[i] : layer->right[i];
    } while (node >= 0);
    return ~node;
}

/* A cell in units of a leaf: (z - center) * inverse scale, clipped. */
static double boostbp_standardised(double z, const double *scaling, int clip)
{
    double u;
    if (scaling[1] == 0.0)
        return 0.0;
    u = (z - scaling[0]) * scaling[1];
    if (clip && u < scaling[2])
        return scaling[2];
    if (clip && u > scaling[3])
        return scaling[3];
    return u;
}

/* Adds what a tree predicts: w + sum_j u_j (w_j + u_j w_jj). The order of the operations is that of boostbp. */
static void boostbp_add_tree(const boostbp_layer *layer, int tree, const double *x, double *out)
{
    int32_t leaf = layer->tree_leaf[tree] + boostbp_leaf(layer, tree, x);
    int32_t path = layer->start[leaf], k = layer->start[leaf + 1] - path, j;
    const double *w = layer->weight + layer->weight_start[leaf];
    int m = layer->tree_output[2 * tree + 1], degree = layer->tree_degree[tree], o;
    double total = w[0];
    out += layer->tree_output[2 * tree];
    if (m > 1)
        for (o = 0; o < m; o++)
            out[o] += w[o];
    for (j = 0; j < k; j++) {
        double z = x[layer->column[path + j]], u;
        if (isnan(z))
            continue;
        u = boostbp_standardised(z, layer->scaling + 4 * (path + j), layer->clip);
        if (m == 1) {
            total += degree == 2 ? u * (w[1 + j] + u * w[1 + k + j]) : u * w[1 + j];
            continue;
        }
        for (o = 0; o < m; o++)
            out[o] += u * w[(1 + j) * m + o];
        if (degree == 2)
            for (o = 0; o < m; o++)
                out[o] += u * u * w[(1 + k + j) * m + o];
    }
    if (m == 1)
        out[0] += total;
}

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

#if BOOSTBP_REPAIRED
/* Whether a cell is further from what the others say than it may be. */
static int boostbp_beyond(const double *off)
{
    int i;
    for (i = 0; i < BOOSTBP_REPAIRED; i++)
        if (off[i] < boostbp_least[i] || off[i] > boostbp_most[i])
            return 1;
    return 0;
}

/* Takes a column out of a precision P, (columns, columns): P - v v' with v = P_j / sqrt(P_jj). Writes P_j to `row`. */
static void boostbp_take_out(double *P, int j, double *row)
{
    int a, b;
    memcpy(row, P + j * BOOSTBP_REPAIRED, BOOSTBP_REPAIRED * sizeof(double));
    for (a = 0; a < BOOSTBP_REPAIRED; a++)
        for (b = 0; b < BOOSTBP_REPAIRED; b++)
            P[a * BOOSTBP_REPAIRED + b] -= row[a] * row[b] / row[j];
}

/* How far cells are from what the others say; returns the determined one that is furthest, or -1 if none is too far. */
static int boostbp_worst(const double *P, const double *u, const int *there)
{
    double off[BOOSTBP_REPAIRED], largest = -1.0;
    int a, b, worst = 0;
    for (a = 0; a < BOOSTBP_REPAIRED; a++) {
        double product = 0.0, score = 0.0;
        if (there[a]) {
            for (b = 0; b < BOOSTBP_REPAIRED; b++)
                product += u[b] * P[a * BOOSTBP_REPAIRED + b];
            score = product / sqrt(P[a * BOOSTBP_REPAIRED + a]);
        }
        off[a] = score / sqrt(boostbp_precision[a * BOOSTBP_REPAIRED + a]);
        if (!isinf(boostbp_most[a]) && fabs(score) > largest) {
            largest = fabs(score);
            worst = a;
        }
    }
    return boostbp_beyond(off) ? worst : -1;
}

/* The mean of a cell given the others, by its row of their precision. */
static double boostbp_mean(const double *row, int j, const double *u)
{
    double total = 0.0;
    int a;
    for (a = 0; a < BOOSTBP_REPAIRED; a++)
        total += a == j ? 0.0 : row[a] * u[a];
    return -total / row[j];
}

/* Replaces up to two cells of a row that contradict the others by what these say. Returns 0, or -1 without memory. */
static int boostbp_repair(double *x)
{
    double u[BOOSTBP_REPAIRED], off[BOOSTBP_REPAIRED], row[2][BOOSTBP_REPAIRED], mean[2], *P;
    int there[BOOSTBP_REPAIRED], cell[2], count = 0, a, b, right = 1;
    for (a = 0; a < BOOSTBP_REPAIRED; a++) {
        double t = x[boostbp_repaired[a]];
        u[a] = 0.0;
        there[a] = !isnan(t);
        if (!there[a])
            continue;
        if (boostbp_floor[a] > 0.0)
            t = log(t > boostbp_floor[a] ? t : boostbp_floor[a]);
        u[a] = fmax(-BOOSTBP_FAR, fmin(BOOSTBP_FAR, (t - boostbp_center[a]) / boostbp_scale[a]));
    }
    for (a = 0; a < BOOSTBP_REPAIRED; a++)
        if (isinf(boostbp_most[a]))
            u[a] = fmax(boostbp_lowest[a], fmin(boostbp_highest[a], u[a]));
    for (a = 0; a < BOOSTBP_REPAIRED; a++) {
        off[a] = 0.0;
        for (b = 0; b < BOOSTBP_REPAIRED; b++)
            off[a] += u[b] * boostbp_precision[b * BOOSTBP_REPAIRED + a];
        off[a] /= boostbp_precision[a * BOOSTBP_REPAIRED + a];
    }
    if (!boostbp_beyond(off))
        return 0;
    P = malloc(sizeof boostbp_precision);
    if (P == NULL)
        return -1;
    memcpy(P, boostbp_precision, sizeof boostbp_precision);
    for (a = 0; a < BOOSTBP_REPAIRED; a++)
        if (!there[a])
            boostbp_take_out(P, a, row[0]);
    /* while a cell is too far off, the furthest is taken out; a row with more than two such cells is of another kind */
    for (a = boostbp_worst(P, u, there); a >= 0 && count < 2; a = boostbp_worst(P, u, there)) {
        cell[count] = a;
        boostbp_take_out(P, a, row[count++]);
        u[a] = 0.0;
        there[a] = 0;
    }
    free(P);
    if (a >= 0)
        return 0;
    for (b = count - 1; b >= 0; b--) {
        a = cell[b];
        u[a] = mean[b] = boostbp_mean(row[b], a, u);
        right &= mean[b] >= boostbp_lowest[a] - boostbp_most[a] && mean[b] <= boostbp_highest[a] - boostbp_least[a];
    }
    for (b = 0; right && b < count; b++) {
        double t;
        a = cell[b];
        t = boostbp_center[a] + fmax(boostbp_lowest[a], fmin(boostbp_highest[a], mean[b])) * boostbp_scale[a];
        x[boostbp_repaired[a]] = boostbp_floor[a] > 0.0 ? exp(t) : t;
    }
    return 0;
}
#endif

/* The raw outputs of a row. Returns 0; 1 if the row holds infinity, -1 without memory. */
static int boostbp_raw(const double *row, double *raw)
{
    double x[BOOSTBP_WIDTH], h[BOOSTBP_WIDTH];
    int layer, tree, j, width = BOOSTBP_FEATURES;
    for (j = 0; j < BOOSTBP_FEATURES; j++) {
        if (isinf(row[j]))
            return 1;
        x[j] = row[j];
    }
    for (j = 0; j < BOOSTBP_CATEGORICAL; j++) {
        const double *values = boostbp_values + boostbp_value_start[j];
        int count = boostbp_value_start[j + 1] - boostbp_value_start[j];
        x[boostbp_categorical[j]] = boostbp_code(row[boostbp_categorical[j]], values, count);
    }
#if BOOSTBP_REPAIRED
    if (boostbp_repair(x))
        return -1;
#endif
    memcpy(h, x, sizeof(double) * width);
    for (layer = 0; layer < BOOSTBP_LAYERS; layer++) {
        const boostbp_layer *here = boostbp_layers + layer;
        double out[BOOSTBP_WIDTH] = {0.0};
        for (tree = 0; tree < here->n_trees; tree++)
            boostbp_add_tree(here, tree, h, out);
        width = here->n_outputs;
        memcpy(h, out, sizeof(double) * width);
        if (BOOSTBP_SKIP)
            memcpy(h + width, x, sizeof(double) * BOOSTBP_FEATURES);
    }
    for (j = 0; j < BOOSTBP_OUTPUTS; j++)
        raw[j] = h[j] + boostbp_baseline[j];
    return 0;
}
