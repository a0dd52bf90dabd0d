"""Parameters of the constructors of all estimators, with their defaults."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any, Concatenate, Literal, ParamSpec, Protocol, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike

from boostbp.backends.base import Backend
from boostbp.losses import Loss
from boostbp.network.layers import LayerSpec
from boostbp.network.settings import BackpropSpec
from boostbp.runtime import checks

P = ParamSpec("P")


class Splitter(Protocol):
    """A splitter of scikit-learn, or a custom one."""

    @property
    def split(self) -> Callable[..., Iterable[object]]:
        """Return a function of (X, y, groups) to pairs of training rows and held-out rows."""
        ...


Validation: TypeAlias = float | Literal["last"] | Splitter | tuple[ArrayLike, ArrayLike]
# A name, a function f(y_true, y_pred), or (name, f, greater_is_better)
EvalMetric: TypeAlias = str | Callable[..., float] | tuple[str, Callable[..., float], bool]


@dataclass(eq=False, repr=False)
class CommonParameters:
    """Parameters of all estimators; `BoostBPRegressor` describes them."""

    hidden_layer_sizes: Sequence[int] = (16,)
    _: KW_ONLY
    backend: Literal["lightgbm", "xgboost", "sklearn"] | Backend = "lightgbm"
    n_estimators: int | None = None
    learning_rate: float | None = None
    max_depth: int | None = None
    min_samples_leaf: int | None = None
    colsample_bytree: float | None = None
    hidden: LayerSpec | Mapping[str, Any] | Sequence[LayerSpec | Mapping[str, Any]] | None = None
    output: LayerSpec | Mapping[str, Any] | None = None
    backprop: BackpropSpec | Mapping[str, Any] | None = None
    epochs: int = 300
    early_stopping: Literal["auto"] | bool = "auto"
    validation: Validation = 0.1
    eval_metric: EvalMetric | None = None
    max_time: float | None = None
    categorical_features: Literal["from_dtype"] | Sequence[Any] | None = "from_dtype"
    n_jobs: int | None = None
    random_state: int | np.random.RandomState | None = None
    verbose: int | Literal["auto"] = "auto"
    backend_params: Mapping[str, Any] | None = None


@dataclass(eq=False, repr=False, kw_only=True)
class EnsembleParameters(CommonParameters):
    """Parameters of estimators whose model may be an average."""

    quality: Literal[1, 2, 3, 4, 5] = 3
    deep: Literal["auto"] | bool = "auto"


@dataclass(eq=False, repr=False, kw_only=True)
class SupervisedParameters(EnsembleParameters):
    """Parameters of estimators whose model may be calibrated, too."""

    calibration: float | None = None


@dataclass(eq=False, repr=False, kw_only=True)
class RegressorParameters(SupervisedParameters):
    """Parameters of the regressor."""

    loss: str | Loss = "squared_error"
    alpha: float | Sequence[float] | None = None


@dataclass(eq=False, repr=False, kw_only=True)
class ClassifierParameters(SupervisedParameters):
    """Parameters of the classifier."""

    loss: str | Loss = "log_loss"
    class_weight: Mapping[Any, float] | Literal["balanced"] | None = None


@dataclass(eq=False, repr=False, kw_only=True)
class SurvivalParameters(SupervisedParameters):
    """Parameters of the estimator of survival."""

    loss: str | Loss = "cox"


@dataclass(eq=False, repr=False, kw_only=True)
class RankerParameters(EnsembleParameters):
    """Parameters of the ranker."""

    loss: str | Loss = "rank_xendcg"


def check_validation(validation: object) -> Any:
    """Return `validation`; raise ValueError unless it is a share, a known word, a splitter, or a pair of row sets."""
    if isinstance(validation, Real) and not isinstance(validation, bool):
        return checks.between("validation", validation, 0, 1)
    if isinstance(validation, str):
        return checks.one_of("validation", validation, ("last",))
    if not is_splitter(validation) and not (isinstance(validation, (tuple, list)) and len(validation) == 2):
        raise ValueError(
            f"validation={checks.shown(validation)} is not known: use a share of the rows, such as 0.1, 'last', a "
            "splitter with split(X, y, groups), such as GroupShuffleSplit(), or a pair (training rows, held-out rows)."
        )
    return validation


def is_splitter(validation: object) -> bool:
    """Return whether `validation` is a splitter; text has a method `split` too."""
    return hasattr(validation, "split") and not isinstance(validation, (str, bytes))


def takes(parameters: Callable[P, object]) -> Callable[[Callable[[Any], None]], Callable[Concatenate[Any, P], None]]:
    """Replace a constructor by that of a dataclass, which has the fields as arguments and sets them as attributes.

    An estimator is no dataclass itself: libraries that know dataclasses take their fields for the whole state.
    """

    def decorate(constructor: Callable[[Any], None]) -> Callable[Concatenate[Any, P], None]:
        init: Any = cast(Any, parameters).__init__
        init.__qualname__ = constructor.__qualname__  # Python's own errors show it
        return init

    return decorate
