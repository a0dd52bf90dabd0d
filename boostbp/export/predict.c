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

/* A row, and what it needs on its way. */
typedef struct {
    double x[BOOSTBP_FEATURES], input[BOOSTBP_WIDTH], h[BOOSTBP_WIDTH];
    uint32_t number[BOOSTBP_NUMBERS];
    boostbp_node leaf[BOOSTBP_AT_ONCE];
} boostbp_row;

/* The raw outputs of a row. Returns 0; 1 if the row holds infinity, -1 without memory. */
static int boostbp_raw(const double *cells, double *raw)
{
    boostbp_row *row;
    boostbp_scratch scratch;
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
    scratch.input = row->input;
    scratch.h = row->h;
    scratch.number = row->number;
    scratch.leaf = row->leaf;
    boostbp_forward(&boostbp_model, sizeof *boostbp_table, BOOSTBP_SKIP, row->x, BOOSTBP_FEATURES, &scratch, raw);
    free(row);
    return 0;
}
