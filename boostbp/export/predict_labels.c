/* Probabilities of several labels of rows, n x BOOSTBP_OUTPUTS, into out. Returns 0; 1 if a cell is infinite, -1 without
   memory: the outputs of that row and of those behind it are not written. */
int boostbp_predict_proba(const double *rows, size_t n, double *out)
{
    size_t i;
    int j, failed;
    for (i = 0; i < n; i++, rows += BOOSTBP_FEATURES) {
        double raw[BOOSTBP_OUTPUTS];
        if ((failed = boostbp_raw(rows, raw)) != 0)
            return failed;
        for (j = 0; j < BOOSTBP_OUTPUTS; j++)
            *out++ = 1.0 / (1.0 + exp(-raw[j]));
    }
    return 0;
}

/* Which labels rows have, n x BOOSTBP_OUTPUTS, into out: 1 where the probability is above 0.5, otherwise 0. Returns what
   boostbp_predict_proba does. */
int boostbp_predict(const double *rows, size_t n, int *out)
{
    size_t i;
    int j, failed;
    for (i = 0; i < n; i++, rows += BOOSTBP_FEATURES) {
        double raw[BOOSTBP_OUTPUTS];
        if ((failed = boostbp_raw(rows, raw)) != 0)
            return failed;
        for (j = 0; j < BOOSTBP_OUTPUTS; j++)
            *out++ = raw[j] > 0.0;
    }
    return 0;
}
