/* Functions of one stage that another stage calls. */

#ifndef BOOSTBP_STAGES_H
#define BOOSTBP_STAGES_H

#include "boostbp.h"

void scaling_of(const double *range, double flat_scale, double *out); /* scalings.c */

#endif
