"""Candidates: what the default model may be made of, in the order in which a history tells of them.

A candidate of one's own is a function of a `Problem` and a line here, or ``CANDIDATES.append(...)`` in one's own code
(``docs/extending.md``, "A new candidate").
"""

from __future__ import annotations

from boostbp.ensemble import candidate_settings as how
from boostbp.ensemble.candidate import Candidate, Kind, directions_of, network, output_layer_on, single_layer
from boostbp.ensemble.problem import EnsembleSettings, Problem
from boostbp.ensemble.quality_levels import QualityLevel
from boostbp.ensemble.residual_quantiles import mean_and_quantiles
from boostbp.network.choice import NETWORK

CANDIDATES: list[Candidate] = [
    # Layers on the features, in the order in which they are tried. The first two are what do best for their seconds,
    # alone and together; their work is the measure of all.
    single_layer("single layer", how.first_layer, least_quality=1),
    mean_and_quantiles(single_layer("mean", how.layer_as_asked, when=(how.has_copies,))),
    mean_and_quantiles(
        single_layer("mean, constant leaves", how.constant_leaves, when=(how.has_copies, how.may_be_constant))
    ),
    mean_and_quantiles(
        directions_of(
            "mean", how.layer_as_asked, name="directions of the mean", when=(how.has_copies, how.has_directions)
        )
    ),
    single_layer("single layer, constant leaves", how.constant_leaves, when=(how.may_be_constant,)),
    single_layer("single layer, random thresholds", how.layer_as_asked, when=(how.has_thresholds_left_out,)),
    single_layer("single layer, sampled", how.sampled, when=(how.has_thresholds_as_asked,), least_quality=1),
    directions_of(
        "single layer",
        how.first_layer,
        name="directions of the single layer",
        when=(how.fits_leaves, how.has_directions),
    ),
    single_layer("single layer, deep trees", how.deep_trees, when=(how.fits_leaves, how.trees_may_be_deeper)),
    single_layer("single layer, many constant leaves", how.many_constant_leaves, when=(how.may_be_constant,)),
    single_layer(
        "single layer, large leaves, no base",
        how.large_leaves_without_base,
        when=(how.may_change_base,),
    ),
    single_layer(
        "single layer, additive base",
        how.additive_base,
        when=(how.may_change_base, how.has_numeric_columns, how.is_free),
    ),
    single_layer(
        "single layer, sampled, no base",
        how.sampled_without_base,
        when=(how.may_change_base, how.has_base),
    ),
    directions_of(
        "directions of the single layer",
        how.first_layer,
        name="directions of directions",
        when=(how.fits_leaves, how.has_directions),
    ),
    # Networks, cheap ones first, each also under an output layer that is boosted to its end.
    network("linear network", how.linear_units, when=(how.has_hidden_trees,)),
    output_layer_on("linear network", how.output_layer),
    network("additive network", how.additive_units, when=(how.has_hidden_trees, how.has_numeric_columns)),
    output_layer_on("additive network", how.output_layer),
    network(
        "linear network, cross-validated penalty",
        how.linear_units_cross_validated,
        when=(how.has_hidden_trees, how.too_many_columns),
    ),
    output_layer_on("linear network, cross-validated penalty", how.output_layer),
    network(NETWORK, how.as_asked),
    output_layer_on(NETWORK, how.output_layer),
]

# What the model is made of if the network is asked for alone: it as it is trained, and layers boosted to their end on
# its units and, beside them, on the features. All have slopes: leaves of more constants predict better, and hide them.
OF_ONE_NETWORK = ("single layer", NETWORK, f"{NETWORK}, final output layer")


def candidates_for(problem: Problem, settings: EnsembleSettings, level: QualityLevel) -> list[Candidate]:
    """Return the candidates that are tried on a problem, with hidden layers only if these are wanted."""
    kinds = {Kind.SINGLE_LAYER}
    if settings.deep == "auto":
        trained = level.networks is not None and (problem.settings.epochs > 0 or settings.network_wanted)
        kinds |= set(Kind) if trained else {Kind.DIRECTIONS}
    tried: dict[str, Candidate] = {}
    for one in CANDIDATES:
        in_average = settings.quality >= one.least_quality and one.kind in kinds
        wanted = one.name in OF_ONE_NETWORK if settings.deep is True else in_average
        if wanted and (one.needs is None or one.needs in tried) and one.applies(problem):
            tried[one.name] = one
    return list(tried.values())
