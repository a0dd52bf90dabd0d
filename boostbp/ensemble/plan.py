"""Plan: what a fit trains, how far, and from which candidates. It is made once, and whatever trains reads it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from boostbp.ensemble import constants
from boostbp.ensemble.budget import DEFAULT_QUALITY, LEVELS, QualityLevel
from boostbp.ensemble.candidate import Candidate, CandidateKind
from boostbp.ensemble.candidates import CANDIDATES
from boostbp.ensemble.problem import Problem
from boostbp.network.choice import NETWORK
from boostbp.runtime.group import training_in
from boostbp.runtime.messages import counted
from boostbp.trees.sparse import Sparse


class Way(Enum):
    """A way of training; its value is the heading of a column in the guide's table."""

    ONE_LAYER = "`quality=1`"
    AVERAGE = "`quality=2` to `5`"
    NETWORK = "`deep=True`"
    LAYERS = "`deep=False`"
    FIXED_LAYER = "`hidden_layer_sizes=()`, or no held-out rows"


class Schedule(Enum):
    """What is trained, and in which order."""

    HIDDEN_UNITS = "the network alone, for its hidden units"
    ALONE = "one model alone, by back-propagation or boosting"
    FIXED_LAYER = "the first layer with a fixed number of rounds"
    ONE_NETWORK = "layers on the features, the network, and output layers on it"
    FIRST_LAYERS = "the first layers, without those that are clearly worse in a trial"
    STAGES = "the first two layers, trials of the others, then what promises most"
    FIRST_OF_MANY = "the first layer that a sample of the rows chose, on all rows"
    SAMPLE = "the first layer that a sample of the rows chose, all stages on the sample, and their choice on all rows"


LAYER_KINDS = (CandidateKind.SINGLE_LAYER, CandidateKind.DIRECTIONS, CandidateKind.ENCODINGS)
OF_ONE_MODEL = (Schedule.HIDDEN_UNITS, Schedule.ALONE, Schedule.FIXED_LAYER)
# The candidates with deep=True: the network itself, and layers boosted to their end on its units and on the features.
# All have leaves with slopes. Layers of constant leaves would often predict better, and take the network's weight.
OF_ONE_NETWORK = ("single layer", NETWORK, f"{NETWORK}, final output layer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a fit trains, and the limits of its training."""

    quality: int
    # whether the user's network is trained even if it promises little, at least for some epochs, because callbacks see
    # it or its state is kept
    network_needed: bool
    way: Way
    schedule: Schedule
    level: QualityLevel
    candidates: tuple[Candidate, ...]
    refit: bool  # whether the leaves of what has weight are fitted again on all rows at the end
    drops_features: bool  # whether features that gain nothing may be left out

    @classmethod
    def of(
        cls,
        problem: Problem,
        way: Way = Way.AVERAGE,
        *,
        quality: int = DEFAULT_QUALITY,
        network_needed: bool = False,
        hidden_units: bool = False,
        level: QualityLevel | None = None,
    ) -> Plan:
        """Return the plan of a fit, of which the parameters request a way for the case that there are held-out rows.

        `hidden_units` says whether the model consists of the hidden layers of the problem's network. `level` has the
        limits, if they are not those of the quality.
        """
        level, judged = level or LEVELS[quality], bool(problem.evaluation.sets)
        with training_in(problem.rows.group):
            many_rows = problem.has_many_rows
            if hidden_units:
                schedule = Schedule.HIDDEN_UNITS
            elif not judged and way is not Way.FIXED_LAYER:
                has_network = way is Way.NETWORK or (way is Way.AVERAGE and network_needed)
                way = Way.NETWORK if has_network else Way.FIXED_LAYER
                schedule = Schedule.ALONE if way is Way.NETWORK else Schedule.FIXED_LAYER
            else:
                schedule = _schedule(problem, way, level, many_rows)
            is_sum = schedule not in OF_ONE_MODEL
            candidates = _candidates(problem, way, quality, level, network_needed) if is_sum else ()
        boosts_loss = schedule is Schedule.ALONE and problem.settings.output_target == "loss"
        is_refitted = not many_rows if is_sum else boosts_loss
        return cls(
            quality=quality,
            network_needed=network_needed,
            way=way,
            schedule=schedule,
            level=level,
            candidates=candidates,
            refit=level.refit and judged and problem.learns_held_out and is_refitted,
            drops_features=schedule is Schedule.FIRST_LAYERS and _may_drop_features(problem, candidates),
        )

    def on(self, problem: Problem, *, networks: bool = True) -> Plan:
        """Return the plan with the same parameters for another problem, without networks if these are not to be."""
        level = self.level if networks else replace(self.level, networks=None)
        return Plan.of(problem, self.way, quality=self.quality, network_needed=self.network_needed, level=level)

    def of_kind(self, *kinds: CandidateKind) -> list[Candidate]:
        """Return the candidates of some kinds."""
        return [candidate for candidate in self.candidates if candidate.kind in kinds]

    @property
    def first_layers(self) -> list[Candidate]:
        """The layers on the features that the lowest quality tries."""
        return [layer for layer in self.of_kind(CandidateKind.SINGLE_LAYER) if layer.least_quality == 1]

    def in_words(self, max_time: float | None = None) -> str:
        """Return the plan in words, with a limit in seconds if there is one."""
        limit = [] if max_time is None else [f"at most {float(max_time):g} s"]  # it may be a fraction
        return f"Plan: {'; '.join([self.schedule.value, *self._facts(), *limit])}."

    def _facts(self) -> Iterator[str]:
        """Yield candidates and limits on their work in words."""
        networks = self.of_kind(CandidateKind.NETWORK)
        if self.schedule not in OF_ONE_MODEL:
            layers = self.first_layers if self.schedule is Schedule.FIRST_OF_MANY else self.of_kind(*LAYER_KINDS)
            parts = {"layer": layers, "network": networks}
            yield ", ".join(counted(len(part), what) for what, part in parts.items() if part)
        of_unit = {
            Schedule.STAGES: (1.0, "the first layers"),
            Schedule.SAMPLE: (constants.ALL_ROWS_WORK, "the first layer"),
        }
        if self.schedule in of_unit:
            factor, unit = of_unit[self.schedule]
            work = f"at most {factor * self.level.layers.work:g} times the work of {unit}"
            of_networks = self.level.networks if networks else None
            yield work if of_networks is None else f"{work} ({factor * of_networks.work:g} with networks)"
        members = max(self.level.effort(networks=trained).members for trained in (False, bool(networks)))
        if self.schedule not in OF_ONE_MODEL and members > 1:
            yield f"up to {members} times, with other held-out rows each time"
        if self.drops_features:
            yield "features that gain nothing may be left out"


def _schedule(problem: Problem, way: Way, level: QualityLevel, many_rows: bool) -> Schedule:
    """Return the schedule of a way; all but the fixed layer have held-out rows."""
    if way is Way.NETWORK:
        return Schedule.ONE_NETWORK if problem.settings.output_target == "loss" else Schedule.ALONE
    if way is Way.FIXED_LAYER:
        return Schedule.ALONE
    if many_rows:
        return Schedule.FIRST_OF_MANY if level.first_layers else Schedule.SAMPLE
    return Schedule.FIRST_LAYERS if level.first_layers else Schedule.STAGES


def _candidates(
    problem: Problem, way: Way, quality: int, level: QualityLevel, network_needed: bool
) -> tuple[Candidate, ...]:
    """Return the candidates that are tried on a problem, those with hidden layers only if the way has some.

    Networks for several classes are tried at high qualities only, unless the user's network is needed.
    """
    kinds = {CandidateKind.SINGLE_LAYER}
    if way in (Way.AVERAGE, Way.ONE_LAYER):
        trained = level.networks is not None and (problem.settings.epochs > 0 or network_needed)
        kinds |= set(CandidateKind) if trained else {CandidateKind.DIRECTIONS, CandidateKind.ENCODINGS}
        if problem.has_several_classes and not (level.thorough or network_needed):
            kinds -= {CandidateKind.NETWORK, CandidateKind.OUTPUT_LAYER}
    tried: dict[str, Candidate] = {}
    for candidate in CANDIDATES:
        in_average = quality >= candidate.least_quality and candidate.kind in kinds
        is_member = candidate.name in OF_ONE_NETWORK if way is Way.NETWORK else in_average
        applies = is_member and all(condition(problem) for condition in candidate.when)
        if applies and candidate.needs in {None, *tried}:
            tried[candidate.name] = candidate
    return tuple(tried.values())


def _may_drop_features(problem: Problem, candidates: Sequence[Candidate]) -> bool:
    """Return whether features may be left out: there are some, and nothing names them by their number."""
    growth, X = problem.settings.layers[-1].growth, problem.rows.X
    names_columns = growth.params or growth.monotone  # native parameters may do so
    few = X.shape[1] < constants.FEW_FEATURES_OF
    single = bool(candidates) and candidates[0].kind is CandidateKind.SINGLE_LAYER
    return single and not (few or names_columns or isinstance(X, Sparse))
