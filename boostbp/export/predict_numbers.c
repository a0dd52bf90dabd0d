
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
        for (j = 0; j < BOOSTBP_OUTPUTS; j++)
            out[j] = BOOSTBP_LINK(raw[j]) * boostbp_output_scale[j] + boostbp_output_shift[j];
    }
    return 0;
}
