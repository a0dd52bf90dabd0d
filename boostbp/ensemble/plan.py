"""Plan: what a fit trains, how far, and from which candidates. It is made once, and whatever trains reads it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Literal

from boostbp.ensemble import constants
from boostbp.ensemble.budget import DEFAULT_QUALITY, LEVELS, QualityLevel
from boostbp.ensemble.candidate import Candidate, CandidateKind
from boostbp.ensemble.candidates import candidates_for
from boostbp.ensemble.problem import Problem
from boostbp.runtime.group import training_in
from boostbp.runtime.messages import counted
from boostbp.trees.sparse import Sparse

Deep = Literal["auto"] | bool


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a fit trains, and the limits of its training."""

    # parameters: average networks and single layers ("auto"), train the user's network (True), or average single layers
    # only (False); the quality; and whether the user's network is trained even if it promises little, at least for some
    # epochs, because callbacks see it or its state is kept
    deep: Deep
    quality: int
    network_needed: bool
    # decisions
    way: Way
    schedule: Schedule
    level: QualityLevel
    candidates: tuple[Candidate, ...]
    refit: bool  # whether the leaves of what has weight are fitted again on all rows at the end
    drops_features: bool  # whether features that gain nothing may be left out
    max_time: float | None  # seconds

    @classmethod
    def of(
        cls,
        problem: Problem,
        *,
        deep: Deep = "auto",
        quality: int = DEFAULT_QUALITY,
        network_needed: bool = False,
        hidden_units: bool = False,
        level: QualityLevel | None = None,
    ) -> Plan:
        """Return the plan of a fit.

        `hidden_units` says whether the model consists of the hidden layers of the problem's network. `level` has the
        limits, if they are not those of the quality.
        """
        level = level or LEVELS[quality]
        judged, units = bool(problem.evaluation.sets), problem.settings.units
        way = way_of(deep, units, level, held_out=judged, network_needed=network_needed)
        with training_in(problem.rows.group):
            many_rows = problem.has_many_rows
            schedule = Schedule.HIDDEN_UNITS if hidden_units else _schedule(problem, deep, level, way, many_rows)
            is_sum = schedule not in OF_ONE_MODEL
            candidates = candidates_for(problem, deep, quality, level, network_needed) if is_sum else []
        refit = level.refit and judged and problem.learns_held_out
        is_refitted = not many_rows if is_sum else _is_refitted_alone(problem, deep, schedule)
        return cls(
            deep=deep,
            quality=quality,
            network_needed=network_needed,
            way=way,
            schedule=schedule,
            level=level,
            candidates=tuple(candidates),
            refit=refit and is_refitted,
            drops_features=schedule is Schedule.FIRST_LAYERS and _may_drop_features(problem, candidates),
            max_time=problem.settings.max_time,
        )

    def on(self, problem: Problem, *, networks: bool = True) -> Plan:
        """Return the plan with the same parameters for another problem, without networks if these are not to be."""
        level = self.level if networks else replace(self.level, networks=None)
        return Plan.of(problem, deep=self.deep, quality=self.quality, network_needed=self.network_needed, level=level)

    def of_kind(self, *kinds: CandidateKind) -> list[Candidate]:
        """Return the candidates of some kinds."""
        return [candidate for candidate in self.candidates if candidate.kind in kinds]

    @property
    def first_layers(self) -> list[Candidate]:
        """The layers on the features that the lowest quality tries."""
        return [layer for layer in self.of_kind(CandidateKind.SINGLE_LAYER) if layer.least_quality == 1]

    def __str__(self) -> str:
        return f"Plan: {'; '.join([self.schedule.value, *self._facts()])}."

    def _facts(self) -> Iterator[str]:
        """Yield candidates and limits in words."""
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
        if self.max_time is not None:
            yield f"at most {float(self.max_time):g} s"  # it may be a fraction


def _moves_target(problem: Problem, deep: Deep) -> bool:
    return deep is True and problem.settings.output_target != "loss"


def _is_refitted_alone(problem: Problem, deep: Deep, schedule: Schedule) -> bool:
    return schedule is Schedule.ALONE and not _moves_target(problem, deep)


def way_of(
    deep: Deep, units: Sequence[int], level: QualityLevel, *, held_out: bool = True, network_needed: bool = False
) -> Way:
    """Return the way of training.

    `held_out` says whether there are held-out rows or an evaluation set to choose a model by.
    """
    if deep and not units:
        return Way.FIXED_LAYER
    if deep is True:
        return Way.NETWORK
    has_networks = deep == "auto" and level.networks is not None
    if not held_out:
        return Way.NETWORK if has_networks and network_needed else Way.FIXED_LAYER
    if deep is False:
        return Way.LAYERS
    return Way.AVERAGE if has_networks else Way.ONE_LAYER


def _schedule(problem: Problem, deep: Deep, level: QualityLevel, way: Way, many_rows: bool) -> Schedule:
    judged, is_single = bool(problem.evaluation.sets), bool(deep) and not problem.settings.units
    if way is Way.FIXED_LAYER and not is_single:
        return Schedule.FIXED_LAYER
    if not judged or is_single or _moves_target(problem, deep):
        return Schedule.ALONE
    if deep is True:
        return Schedule.ONE_NETWORK
    if many_rows:
        return Schedule.FIRST_OF_MANY if level.first_layers else Schedule.SAMPLE
    return Schedule.FIRST_LAYERS if level.first_layers else Schedule.STAGES


def _may_drop_features(problem: Problem, candidates: Sequence[Candidate]) -> bool:
    """Return whether features may be left out: there are some, and nothing names them by their number."""
    growth, X = problem.settings.layers[-1].growth, problem.rows.X
    names_columns = growth.params or growth.monotone  # native parameters may do so
    few = X.shape[1] < constants.FEW_FEATURES_OF
    single = bool(candidates) and candidates[0].kind is CandidateKind.SINGLE_LAYER
    return single and not (few or names_columns or isinstance(X, Sparse))
