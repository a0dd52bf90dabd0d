"""LayerSpec: the settings of a layer of boosted trees, as users write them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, Literal, Self, TypeVar

from boostbp import backends
from boostbp.backends.base import CHECKS, MAX_THREADS, Backend, TreeParams
from boostbp.network.layers.bound import LayerSettings
from boostbp.runtime import checks
from boostbp.runtime.messages import named_in_errors, suggestion
from boostbp.trees import basis as bases
from boostbp.trees.basis import Basis, Elementwise
from boostbp.trees.ridge import Ridge

B = TypeVar("B", bound=str | Basis)
# Native names of two fields. Of a field and its native name, the library would ignore one without a message.
SAID_NATIVELY: Mapping[str, frozenset[str]] = {
    "subsample": frozenset(("subsample", "bagging_fraction", "sub_row", "bagging")),
    "colsample_bytree": frozenset(("colsample_bytree", "feature_fraction", "sub_feature")),
}


# Share of its target that a hidden layer can reach in one refit; with a smaller one, hidden variables would shrink.
REACHED_SHARE = 0.95
Signs = tuple[int, ...]


def is_constrained(constraints: Sequence[int] | Mapping[Any, int] | None) -> bool:
    """Return whether any feature has a sign."""
    return any(constraints.values() if isinstance(constraints, Mapping) else constraints or ())


def checked_constraints(name: str, value: object) -> Signs | dict[Any, int]:
    """Return constraints as a tuple of signs, or as a dict of column names and signs; ValueError if they are not."""
    if not isinstance(value, Mapping):
        return checks.signs(name, value)
    signs = checks.signs(f"{name}, the values of {checks.shown(value)},", list(value.values()))
    return dict(zip(value, signs, strict=True))


def _known_basis(name: str, value: B) -> B:
    bases.load_basis(value)
    return value


def checked(default: object, check: Callable[[str, Any], Any]) -> Any:
    """Return a field of a spec with its default and its check."""
    return field(default=default, metadata={"check": check})


def _setting(check: Callable[[str, Any], Any], default: object = None) -> Any:
    """Return a field of `LayerSpec` with its check and default, None if it depends on the place of the layer."""
    return field(default=None, metadata={"check": checks.or_else(None, check), "default": default})


def only(*allowed: object) -> Callable[[str, Any], Any]:
    """Return the check of a field that takes these values alone."""
    return partial(checks.one_of, allowed=allowed)


_not_negative = partial(checks.at_least, least=0)


@dataclass(frozen=True, slots=True, repr=False)
class Spec:
    """Base of specs: frozen values, which users may also pass as a dict of fields."""

    def __post_init__(self) -> None:
        for spec_field in fields(self):
            if check := spec_field.metadata.get("check"):
                object.__setattr__(self, spec_field.name, check(spec_field.name, getattr(self, spec_field.name)))

    def __repr__(self) -> str:
        """Return the call that creates the spec, without fields at their defaults."""
        values = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in values.items())})"

    @classmethod
    def of(cls, value: Self | Mapping[str, Any] | None, name: str) -> Self:
        """Return the spec of a parameter: a spec, a mapping of its fields, or None; ValueError for anything else."""
        if value is None:
            return cls()
        if isinstance(value, cls):
            return value
        if not isinstance(value, Mapping):
            raise ValueError(f"{name}={checks.shown(value)} is not allowed: give a dict, or a boostbp.{cls.__name__}.")
        known = [f.name for f in fields(cls)]
        for key in checks.named(name, value):
            if key not in known:
                raise ValueError(f"{name} has no parameter {checks.shown(key)}: {suggestion(key, known)}")
        with named_in_errors(name):
            return cls(**value)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class LayerSpec(Spec):
    """Settings of a layer of boosted trees with regressions in their leaves.

    Each field may be None, its default. It then has the value of the estimator's parameter of the same name, if there
    is one, or the value listed here. Estimators accept a spec, or a dict of its fields, for the hidden layers and for
    the output layer, `boostbp.fit_layer` and `boostbp.torch.GBDTModule` for the layer that they fit.

    Parameters
    ----------
    n_estimators : int or None
        Boosting rounds. None: 20 in a hidden layer, 100 in an output layer. With five or more classes, the output layer
        above hidden layers has fewer: 400 trees over all classes, but at least 20 rounds.
    learning_rate : float or None
        Shrinkage of each tree (the paper's beta). None: 0.1 for trees that are boosted on the loss. For trees that are
        fitted to a moved target: ``1 - 0.05 ** (1 / n_estimators)``, with which they can reach 95 % of it.
    max_depth : int or None
        Maximum depth; -1 sets no limit. None: 3 in a hidden layer, 4 in an output layer, no limit with `max_leaves`.
    max_leaves : int or None
        Maximum number of leaves. None: as many as `max_depth` allows; 31 if it sets no limit.
    min_samples_leaf : int or None
        Minimum number of rows in a leaf. None: 20.
    max_bins : int or None
        Maximum number of bins of a feature. None: 255.
    subsample : float or None
        Share of the rows on which a tree is grown, drawn anew in each round. Leaves are fitted on all rows. None: 1.
    colsample_bytree : float or None
        Share of the features on which a tree may split, drawn anew for each tree (scikit-learn: for each node).
        None: 1.
    extra_trees : bool or "auto" or None
        Whether a node draws one random threshold for each feature instead of the best one. Outputs are then smoother
        and fit the training rows less closely. "auto" (None): if the library can (LightGBM and scikit-learn), but not
        with ``leaves="native"``.
    multi_strategy : {"one_output_per_tree", "multi_output_tree"} or None
        Whether each output of a hidden layer has its own trees (None), or all share the structure of each tree: with
        vector leaves of XGBoost, otherwise grown on a random projection of the gradients, drawn anew in each round. In
        the output layer of an estimator, each output always has its own trees.
    leaves : {"refit", "native"} or None
        Leaf regressions on `basis` (None), or the library's own linear leaves (LightGBM).
    basis : {"constant", "linear", "quadratic"}, `Polynomial`, `Elementwise` or None
        phi, the terms of a leaf regression. None: "quadratic".
    reg_lambda : float or None
        Ridge penalty of leaf regressions. None: 1.
    penalize_constant, standardize : bool or None
        Whether the constant is penalised, and whether weights are penalised in units of the leaf. None: both.
    clip : bool or None
        Whether predictions clip the inputs of a leaf regression to their training range in the leaf (None: True).
        Beyond this range the regression is constant, like a tree. With True and ``base_lambda="gcv"``, the ridge
        regression under a single layer has a minimum penalty, so that one wrong cell in a column does not outweigh
        other columns with the same information.
    base : {"ridge", "additive", "zero"} or None
        Function that boosting starts from. "ridge" (None): a ridge regression on all inputs; with more than 1,000 rows
        and inputs, on the 1,000 inputs of largest variance in units of their range. "additive": a sum of smooth
        functions of single inputs, splines of the degree of `basis` with up to 9 intervals between quantiles under the
        same penalty. Both use the terms of `basis`, so with "constant" there is no base. "zero": no base.
    base_lambda : float, "gcv" or None
        Penalty of the base. "gcv" (None): by generalised cross-validation, on hidden units at least .15 of the mean sum
        of squares of a unit. Linear hidden layers may learn faster with 1.
    monotone_constraints : sequence of {-1, 0, 1}, dict or None
        Features in which the layer must rise (1) or fall (-1) if all others are equal: a sign for each feature, or a
        dict of column names and signs. Leaf regressions and base keep to them. The raw output is monotone, and so are
        values of a monotone link, such as probabilities. Only for a layer on features with one output, such as the
        output layer of an estimator; the model then has single layers only (see the guide). A missing value is neither
        above nor below other values.
    backend_params : dict or None
        Native parameters of the library under its own names, in addition to those of the estimator.

    Raises
    ------
    ValueError
        If a value is out of bounds; the message names the field.

    Examples
    --------
    >>> from boostbp import BoostBPRegressor, LayerSpec
    >>> model = BoostBPRegressor((32,), hidden=LayerSpec(max_depth=2, basis="linear"), output={"n_estimators": 300})
    >>> model.set_params(hidden__max_depth=3).hidden.max_depth
    3
    """

    n_estimators: int | None = _setting(partial(checks.whole, least=0, most=checks.LARGEST_INT))
    # Above 2, each round overshoots by more than it corrects.
    learning_rate: float | None = _setting(partial(checks.at_least, least=0, most=2))
    max_depth: int | None = _setting(CHECKS["max_depth"])
    max_leaves: int | None = _setting(partial(checks.whole, least=2, most=checks.MOST_LEAVES))
    min_samples_leaf: int | None = _setting(CHECKS["min_samples_leaf"], 20)
    max_bins: int | None = _setting(CHECKS["max_bins"], 255)
    subsample: float | None = _setting(checks.share, 1.0)
    colsample_bytree: float | None = _setting(CHECKS["colsample_bytree"], 1.0)
    extra_trees: bool | Literal["auto"] | None = _setting(only("auto", True, False), "auto")
    multi_strategy: Literal["one_output_per_tree", "multi_output_tree"] | None = _setting(
        only("one_output_per_tree", "multi_output_tree"), "one_output_per_tree"
    )
    leaves: Literal["refit", "native"] | None = _setting(only("refit", "native"), "refit")
    basis: str | bases.Polynomial | Elementwise | None = _setting(_known_basis, "quadratic")  # noqa: RUF009
    reg_lambda: float | None = _setting(_not_negative, 1.0)
    penalize_constant: bool | None = _setting(only(True, False), True)
    standardize: bool | None = _setting(only(True, False), True)
    clip: bool | None = _setting(only(True, False), True)
    base: Literal["ridge", "additive", "zero"] | None = _setting(only("ridge", "additive", "zero"), "ridge")
    base_lambda: float | Literal["gcv"] | None = _setting(checks.or_else("gcv", _not_negative), "gcv")
    monotone_constraints: Sequence[int] | Mapping[Any, int] | None = _setting(checked_constraints)
    backend_params: Mapping[str, Any] | None = _setting(checks.named, {})

    def _values(self, *names: str) -> dict[str, Any]:
        """Return some of the fields by their names."""
        return {name: getattr(self, name) for name in names}

    def or_else(self, other: LayerSpec) -> Self:
        """Return the spec with unset fields taken from another one, and the native parameters of both."""
        taken = {f.name: getattr(other, f.name) for f in fields(self) if getattr(self, f.name) is None}
        if self.backend_params and other.backend_params:
            taken["backend_params"] = {**other.backend_params, **self.backend_params}
        return replace(self, **taken)

    def complete(self, default: LayerSpec) -> Self:
        """Return the spec with unset fields taken from the defaults, but no default depth if `max_leaves` is set."""
        return self.or_else(default if self.max_leaves is None else replace(default, max_depth=-1))

    @property
    def given(self) -> frozenset[str]:
        """Fields that the user set: directly, by a native name, or by another field that determines them."""
        names = {f.name for f in fields(self) if getattr(self, f.name) not in (None, "auto")}
        names |= {name for name, natives in SAID_NATIVELY.items() if natives.intersection(self.backend_params or ())}
        return frozenset(names | {"max_depth"} if self.max_leaves is not None else names)

    def _check_together(self) -> None:
        """Refuse fields that exclude each other."""
        if self.leaves == "native" and self.subsample != 1.0:
            fault = "is not supported with leaves='native': the library fits its leaves on the rows it grows on"
            cure = "Use leaves='refit', or backend_params={'bagging_fraction': ..., 'bagging_freq': 1}"
            raise ValueError(f"subsample={self.subsample!r} {fault}. {cure}.")
        for name, natives in SAID_NATIVELY.items():
            both, value = sorted(natives.intersection(self.backend_params or ())), getattr(self, name)
            if both and value != 1.0:
                raise ValueError(f"{name}={value!r} and backend_params[{both[0]!r}] mean the same: leave one out.")

    def _check_monotone(self, signs: Signs | None, shared: bool) -> Signs:
        """Return the signs of the features; refuse constraints that the layer cannot keep.

        `signs` is None for a layer that cannot be monotone.
        """
        shown = f"monotone_constraints={checks.shown(self.monotone_constraints)}"
        if signs is None and is_constrained(self.monotone_constraints):
            fault = "is not supported in a hidden layer, or beside other layers, which need not be monotone"
            cure = "Give it to the output layer of an estimator, output={'monotone_constraints': ...}, or to fit_layer"
            raise ValueError(f"{shown} {fault}. {cure}.")
        if not signs:
            return ()
        has_functions = self.basis is not None and bases.load_basis(self.basis).has_functions
        refused = {
            "leaves": (self.leaves == "native", "use 'refit'"),
            "basis": (has_functions, "use 'linear', 'quadratic' or 'constant'"),
            "base": (self.base == "additive", "use 'ridge' or 'zero'"),
            "clip": (not self.clip, "use True: without clipping, leaf regressions cannot be kept monotone"),
            "standardize": (not self.standardize, "use True"),
            "multi_strategy": (shared, "use 'one_output_per_tree'"),
        }
        for name, (is_refused, cure) in refused.items():
            if is_refused:
                raise ValueError(f"{name}={checks.shown(getattr(self, name))} is not supported with {shown}: {cure}.")
        return signs


_ANY_PLACE = LayerSpec(**{spec_field.name: spec_field.metadata["default"] for spec_field in fields(LayerSpec)})
HIDDEN = LayerSpec(n_estimators=20, max_depth=3).or_else(_ANY_PLACE)
OUTPUT = LayerSpec(n_estimators=100, learning_rate=0.1, max_depth=4).or_else(_ANY_PLACE)


def settings_of(
    spec: LayerSpec,
    backend: str | Backend,
    *,
    seed: int,
    n_threads: int = 1,
    alone: bool = True,
    own_trees: bool = False,
    min_base_lambda: float | None = 0.0,
    signs: Signs | None = None,
) -> LayerSettings:
    """Return the settings of a layer for a spec that is completed by `HIDDEN` or `OUTPUT`: None is then a value.

    `alone` says whether the layer is the whole model (see `TreeParams`), `own_trees` whether each output has its own
    trees in spite of `multi_strategy`. `signs` are those of `signs_of`; None if the layer cannot be monotone.
    """
    spec._check_together()
    shared = spec.multi_strategy == "multi_output_tree" and not own_trees
    automatic_native = spec.leaves == "native" and spec.extra_trees == "auto"
    # The seed fits an int32, which every library accepts.
    growth = TreeParams(
        **spec._values("max_depth", "max_leaves", "min_samples_leaf", "max_bins", "colsample_bytree"),
        extra_trees=not automatic_native and backends.draws(backend, spec.extra_trees or False),
        n_threads=min(n_threads, MAX_THREADS),
        random_state=seed % (2**31 - 1),
        multi_output=shared,
        is_whole_model=alone,
        monotone=spec._check_monotone(signs, shared),
        params=spec.backend_params or {},
    )
    # A hidden layer must come close to its moved target in one refit, even with few rounds.
    # n rounds with shrinkage beta leave a residual of (1 - beta)^n of the target, which must be 1 - REACHED_SHARE.
    rate = 1.0 - (1.0 - REACHED_SHARE) ** (1.0 / max(spec.n_estimators or 0, 1))
    return LayerSettings(
        **spec._values("n_estimators", "subsample", "clip", "leaves"),
        learning_rate=rate if spec.learning_rate is None else spec.learning_rate,
        growth=growth,
        basis=bases.load_basis(spec.basis or "quadratic"),
        ridge=Ridge(*spec._values("reg_lambda", "penalize_constant", "standardize").values()),
        base=None if spec.base == "zero" else spec.base,
        base_lambda=None if spec.base_lambda == "gcv" else spec.base_lambda,
        min_base_lambda=min_base_lambda,
    )
