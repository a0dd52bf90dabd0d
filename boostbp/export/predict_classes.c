
/* Probabilities of rows, n x BOOSTBP_FEATURES, into out, n x BOOSTBP_CLASSES. Returns 0; 1 if a cell is infinite, -1
   without memory: the outputs of that row and of those behind it are not written. */
int boostbp_predict_proba(const double *rows, size_t n, double *out)
{
    size_t i;
    int j, failed;
    for (i = 0; i < n; i++, rows += BOOSTBP_FEATURES, out += BOOSTBP_CLASSES) {
        double raw[BOOSTBP_OUTPUTS], largest, total = 0.0;
        if ((failed = boostbp_raw(rows, raw)) != 0)
            return failed;
        if (BOOSTBP_OUTPUTS == 1) {
            out[0] = 1.0 / (1.0 + exp(raw[0]));
            out[1] = 1.0 / (1.0 + exp(-raw[0]));
            continue;
        }
        largest = raw[0];
        for (j = 1; j < BOOSTBP_OUTPUTS; j++)
            largest = raw[j] > largest ? raw[j] : largest;
        for (j = 0; j < BOOSTBP_OUTPUTS; j++)
            total += out[j] = exp(raw[j] - largest);
        for (j = 0; j < BOOSTBP_OUTPUTS; j++)
            out[j] /= total;
    }
    return 0;
}

/* The most probable class of rows into out, n numbers of boostbp_labels. Returns what boostbp_predict_proba does. */
int boostbp_predict(const double *rows, size_t n, int *out)
{
    size_t i;
    int j, failed;
    for (i = 0; i < n; i++, rows += BOOSTBP_FEATURES) {
        double raw[BOOSTBP_OUTPUTS];
        if ((failed = boostbp_raw(rows, raw)) != 0)
            return failed;
        out[i] = BOOSTBP_OUTPUTS == 1 && raw[0] > 0.0;
        for (j = 1; j < BOOSTBP_OUTPUTS; j++)
            out[i] = raw[j] > raw[out[i]] ? j : out[i];
    }
    return 0;
}
