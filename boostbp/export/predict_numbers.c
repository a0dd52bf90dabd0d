
/* Sorts the outputs of a row, which are quantiles. */
static void boostbp_sort(double *raw)
{
    int i, j;
    for (i = 1; i < BOOSTBP_OUTPUTS; i++) {
        double value = raw[i];
        for (j = i; j > 0 && raw[j - 1] > value; j--)
            raw[j] = raw[j - 1];
        raw[j] = value;
    }
}

/* Predicts rows, n x BOOSTBP_FEATURES, into out, n x BOOSTBP_OUTPUTS. Returns 0; 1 if a cell is infinite, -1 without
   memory: the outputs of that row and of those behind it are not written. */
int boostbp_predict(const double *rows, size_t n, double *out)
{
    size_t i;
    int j, failed;
    for (i = 0; i < n; i++, rows += BOOSTBP_FEATURES, out += BOOSTBP_OUTPUTS) {
        double raw[BOOSTBP_OUTPUTS];
        if ((failed = boostbp_raw(rows, raw)) != 0)
            return failed;
        if (BOOSTBP_SORTED)
            boostbp_sort(raw);
        for (j = 0; j < BOOSTBP_OUTPUTS; j++)
            out[j] = BOOSTBP_LINK(raw[j]) * boostbp_output_scale[j] + boostbp_output_shift[j];
    }
    return 0;
}
