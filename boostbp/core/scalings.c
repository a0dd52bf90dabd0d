/* Scaling of path columns: from the range of a column's values in a leaf to (center, 1 / scale, lower, upper).

   u = (z - center) / scale; lower and upper bound u when a leaf is evaluated. */

#include "boostbp.h"
#include "stages.h"

/* Writes the scaling of one path column, from its (lower, upper, sum of h z, sum of h), to `out`. */
void scaling_of(const double *range, double flat_scale, double *out)
{
    double lower = range[0], upper = range[1], center = range[2] / range[3], scale, inverse;
    if (!(center >= lower && center <= upper)) /* all weights are 0, or the sum exceeds float64 */
        center = 0.5 * lower + 0.5 * upper;
    scale = upper - center > center - lower ? upper - center : center - lower;
    inverse = 1.0 / scale;
    out[LOWER] = out[UPPER] = 0.0;
    if (isfinite(scale) && isfinite(inverse) && isfinite(center)) {
        out[CENTER] = center;
        out[INV_SCALE] = inverse;
        out[LOWER] = (lower - center) * inverse;
        out[UPPER] = (upper - center) * inverse;
    } else { /* the range is 0, or so small that 1 / scale overflows */
        out[CENTER] = isfinite(center) ? center : 0.0;
        out[INV_SCALE] = scale == INFINITY ? 0.0 : flat_scale;
    }
}

/* Writes the scaling of each path column to `out`. */
API int64_t boostbp_scalings(const double *ranges, double flat_scale, double *out, int64_t paths)
{
    for (int64_t j = 0; j < paths; j++)
        scaling_of(ranges + 4 * j, flat_scale, out + 4 * j);
    return 0;
}
