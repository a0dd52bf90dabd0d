"""Candidates of the default model, in the order in which a history lists them.

A candidate of your own is a function of a `Problem` and a line here, or ``CANDIDATES.append(...)`` in your own code
(``docs/extending.md``, "A new candidate").
"""

from __future__ import annotations

from dataclasses import replace

from boostbp.ensemble import candidate_settings as how
from boostbp.ensemble.candidate import (
    Candidate,
    directions_of,
    encodings_below,
    mean_and_quantiles,
    network,
    output_layer_on,
    single_layer,
)
from boostbp.network.choice import CONSTANT_LEAVES, NETWORK

_constant_of_quantiles = (how.has_copies, how.may_be_constant)
_directions_of_quantiles = (how.has_copies, how.has_directions)
_directions = (how.fits_leaves, how.has_directions)
_additive = (how.may_change_base, how.has_numeric_columns, how.is_free)
_not_additive = (how.has_hidden_trees, how.has_no_additive_units)
CANDIDATES: list[Candidate] = [
    # Layers on the features, in the order in which they are tried. The first has constant leaves, as libraries have by
    # default, so that no fit is much worse than a library. The second has leaves with slopes. These two gain most for
    # their seconds, and their work is the unit of all limits.
    single_layer(CONSTANT_LEAVES, how.constant_leaves, when=(how.may_be_constant, how.has_no_copies), least_quality=1),
    encodings_below("means of levels", how.first_layer, when=(how.fits_leaves, how.has_many_levels, how.has_no_copies)),
    single_layer("single layer", how.first_layer, least_quality=1),
    mean_and_quantiles(single_layer("mean", how.layer_as_asked, when=(how.has_copies,))),
    mean_and_quantiles(single_layer("mean, constant leaves", how.constant_leaves, when=_constant_of_quantiles)),
    mean_and_quantiles(
        directions_of("mean", how.layer_as_asked, name="directions of the mean", when=_directions_of_quantiles)
    ),
    single_layer(CONSTANT_LEAVES, how.constant_leaves, when=_constant_of_quantiles),
    replace(
        directions_of("single layer", how.first_layer, name="directions of the single layer", when=_directions),
        least_quality=1,
    ),
    single_layer("single layer, large constant leaves", how.large_constant_leaves, when=(how.may_be_constant,)),
    single_layer("single layer, deep trees", how.deep_trees, when=(how.fits_leaves, how.trees_may_be_deeper)),
    single_layer("single layer, sampled", how.sampled, when=(how.has_thresholds_as_asked,)),
    single_layer("single layer, random thresholds", how.layer_as_asked, when=(how.has_thresholds_left_out,)),
    single_layer("single layer, large leaves, no base", how.large_leaves_without_base, when=(how.may_change_base,)),
    single_layer("single layer, additive base", how.additive_base, when=_additive),
    single_layer("single layer, sampled, no base", how.sampled_without_base, when=(how.may_change_base, how.has_base)),
    directions_of("directions of the single layer", how.first_layer, name="directions of directions", when=_directions),
    # Networks, cheap ones first, each also under an output layer that is boosted to its end.
    network("linear network", how.linear_units, when=(how.has_hidden_trees,)),
    output_layer_on("linear network", how.output_layer),
    network("additive network", how.additive_units, when=(how.has_hidden_trees, how.has_numeric_columns)),
    output_layer_on("additive network", how.output_layer),
    network("linear network, cross-validated penalty", how.linear_units_cross_validated, when=_not_additive),
    output_layer_on("linear network, cross-validated penalty", how.output_layer),
    network(NETWORK, how.as_asked),
    output_layer_on(NETWORK, how.output_layer),
]
