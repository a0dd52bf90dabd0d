"""The ordinary days of a model: tables, weights and metrics, callbacks, interrupts and resumes, files, explanations.

python examples/daily_use.py [--quick] [--backend xgboost] [--picture FILE]
"""

from __future__ import annotations

import argparse
import logging
import pickle
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import polars as pl
from scipy.sparse import csr_array
from sklearn.datasets import load_diabetes, load_digits, load_wine
from sklearn.metrics import f1_score
from sklearn.model_selection import train_test_split

from boostbp import BoostBPClassifier, BoostBPRegressor, callbacks, load, save


def patients() -> tuple[pd.DataFrame, pd.Series]:
    """Diabetes patients, with sex as a category and some blood pressures missing."""
    frame, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    frame["sex"] = frame["sex"].map({1.0: "female", 2.0: "male"}).astype("category")
    frame.loc[::9, "bp"] = np.nan
    return frame, y


def title(text: str) -> None:
    """Head of a part."""
    print(f"\n== {text}")


def tables(regressor: Callable[..., Any], classifier: Callable[..., Any]) -> None:
    """The same rows from any container; columns are known by their names."""
    title("tables")
    X, y = patients()
    model = regressor().fit(X, y)
    expected = model.predict(X)
    for name, table in {"polars": pl.from_pandas(X), "Arrow": pl.from_pandas(X).to_arrow()}.items():
        print(f"{name:<7} predicts as pandas does: {np.array_equal(model.predict(table), expected)}")
    pixels, digit = load_digits(return_X_y=True)
    pixels, is_odd = pixels[:500], digit[:500] % 2
    dense, sparse = (classifier().fit(table, is_odd) for table in (pixels, csr_array(pixels)))
    same = np.array_equal(sparse.predict_proba(csr_array(pixels)), dense.predict_proba(pixels))
    print(f"sparse  gives the model of the dense array: {same}")
    try:
        model.predict(X.drop(columns="bmi").assign(weight=80.0))
    except ValueError as error:
        print(f"refused {' '.join(str(error).split())}")

    new = X.head(3).assign(bmi=np.nan, sex=pd.Categorical(["female", "male", "unheard of"]))
    print(f"bmi missing at predict only, an unknown sex: {model.predict(new).round(1)}")
    wild = X.head(1).assign(s5=1e9)
    loose = {"clip": False}
    far = regressor(hidden=loose, output=loose).fit(X, y).predict(wild)[0]
    print(f"one wild cell: {model.predict(wild)[0]:.1f}; with clip=False {far:.3g}; targets go to {y.max():.0f}")
    both = regressor().fit(X, np.column_stack([y, np.log(y)]))
    print(f"two targets at once: R2 {both.score(X, np.column_stack([y, np.log(y)])):.3f} on the training rows")


def weights_and_metrics(classifier: Callable[..., Any]) -> None:
    """Weights of classes and rows, named evaluation sets, metrics by name and of one's own."""
    title("weights and metrics")
    wine = load_wine()
    X, label = wine.data[:, :3], wine.target_names[wine.target]  # all 13 columns leave no mistakes
    X, X_test, label, label_test = train_test_split(X, label, stratify=label, random_state=0)
    weight = np.where(label == "class_2", 5.0, 1.0)
    heavy = classifier(class_weight={"class_0": 1.0, "class_1": 1.0, "class_2": 5.0}).fit(X, label)
    by_row = classifier().fit(X, label, sample_weight=weight)
    same = np.array_equal(heavy.predict_proba(X_test), by_row.predict_proba(X_test))
    print(f"class_weight is sample_weight by class: {same}")
    sets = {"spring": (X_test[::2], label_test[::2]), "autumn": (X_test[1::2], label_test[1::2])}
    for metric in ("mlogloss", "multi_error", "auc_mu", ("macro F1", partial(f1_score, average="macro"), True)):
        model = classifier(eval_metric=metric).fit(X, label, eval_set=[*sets.values()], eval_names=[*sets])
        best = model.history_[model.history_.best_epoch]
        print(f"{model.history_.metric:<12}", ", ".join(f"{name} {value:.3f}" for name, value in best.metrics.items()))
    print(f"labels come back as they were: {model.predict(X_test[:3]).tolist()}")


def training(regressor: Callable[..., Any], folder: Path) -> None:
    """Callbacks, Ctrl-C, a training that died and went on, and more epochs."""
    title("training")
    X, y = patients()
    X, X_valid, y, y_valid = train_test_split(X, y, random_state=0)
    watched = {"eval_set": [(X_valid, y_valid)]}

    def plateau(progress: Any) -> bool:
        """Stop when an epoch lowers the training loss by less than a thousandth; one's own."""
        loss = progress.history.loss
        return len(loss) > 1 and loss[-1] > 0.999 * loss[-2]

    seen: dict[str, Any] = {}
    logging.basicConfig(level=logging.INFO, format="log: %(message)s", stream=sys.stdout)
    theirs = [
        callbacks.log_evaluation(2),
        callbacks.record(seen),
        callbacks.early_stopping(3),
        callbacks.time_limit(60),
    ]
    model = regressor().fit(X, y, callbacks=[*theirs, plateau], **watched)
    logging.getLogger("boostbp").setLevel(logging.WARNING)
    print(f"recorded RMSE: {np.round(seen['valid_0']['rmse'], 1).tolist()}. {model.history_.stop.value}")

    def at(epoch: int, error: type[BaseException]) -> Callable[[Any], None]:
        def callback(progress: Any) -> None:
            if progress.epoch.epoch == epoch:
                raise error

        return callback

    stopped = regressor()
    with suppress(KeyboardInterrupt):  # it is raised when the model has its best state
        stopped.fit(X, y, callbacks=[at(2, KeyboardInterrupt)], **watched)
    print(f"Ctrl-C in epoch 2: {stopped.history_.stop.value} R2 {stopped.score(X_valid, y_valid):.3f}")

    state = folder / "training.boostbp"
    try:
        regressor().fit(X, y, checkpoint=state, callbacks=[at(2, MemoryError)], **watched)
    except MemoryError:
        print(f"died in epoch 2, and left {state.name}")
    resumed = regressor().fit(X, y, checkpoint=state, **watched)
    expected = regressor().fit(X, y, **watched)
    print(f"resumed, the model is that of a whole fit: {np.array_equal(resumed.predict(X), expected.predict(X))}")

    longer = regressor().fit(X, y, keep_state=True, **watched)
    epochs = longer.n_iter_
    print(f"fit_more(2): {epochs} epochs, then {longer.fit_more(2).n_iter_}")


def files(model: Any, X: pd.DataFrame, folder: Path) -> None:
    """One file without pickle; pickle and joblib work too; what is torn is refused."""
    title("files")
    path = folder / "model.boostbp"
    save(model, path)
    joblib.dump(model, folder / "model.joblib")
    copies = {"save": load(path), "joblib": joblib.load(folder / "model.joblib")}
    copies["pickle"] = pickle.loads(pickle.dumps(model))
    for name, copy in copies.items():
        print(f"{name:<7} the same bits: {np.array_equal(copy.predict(X), model.predict(X))}")
    path.write_bytes(path.read_bytes()[:-100])
    try:
        load(path)
    except ValueError as error:
        print(f"refused {str(error).replace(str(folder), '...')}")


def explanations(model: Any, X: pd.DataFrame) -> None:
    """Hidden representation with names, and what moved one prediction."""
    title("explanations")
    hidden, slopes = model.hidden_representation(X, 0), model.jacobian(X)
    print(f"hidden representation {hidden.shape}, Jacobian {slopes.shape}, and the former with names:")
    print(model.set_output(transform="polars").transform(X.head(2)))
    integrated = model.attributions(X.head(1))
    quick = model.attributions(X.head(1), "gradient_x_input")
    print(f"{'feature':<8} {'integrated gradients':>20} {'gradient x input':>17}")
    for j in np.argsort(-np.abs(integrated.values[0, 0]))[:4]:
        print(f"{X.columns[j]:<8} {integrated.values[0, 0, j]:>20.2f} {quick.values[0, 0, j]:>17.2f}")
    print(f"off the output by {integrated.error:.0e} and {quick.error:.0e}")


def picture(model: Any, X: pd.DataFrame, y: pd.Series, file: str) -> None:
    """Training, importances, hidden representation and residuals, on axes of one's own."""
    from matplotlib.figure import Figure

    from boostbp import plots

    figure = Figure(figsize=(20, 4), layout="constrained")
    axes = figure.subplots(1, 5)
    plots.training_curves(model, axes[:2])
    plots.importances(model, axes[2])
    plots.representation(model.hidden_representation(X, 0), y, axes[3])
    plots.residuals(y, model.predict(X), axes[4])
    figure.savefig(file)


def main() -> None:
    """Go through the day."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smaller models")
    parser.add_argument("--backend", default="lightgbm")
    parser.add_argument("--picture", metavar="FILE")
    args = parser.parse_args()
    shape = {"n_estimators": 5, "epochs": 4} if args.quick else {"n_estimators": 20, "epochs": 12}
    shape |= {"hidden_layer_sizes": (4,), "deep": True, "backend": args.backend, "random_state": 0}
    regressor, classifier = partial(BoostBPRegressor, **shape), partial(BoostBPClassifier, **shape)

    tables(regressor, classifier)
    weights_and_metrics(classifier)
    X, y = patients()
    with tempfile.TemporaryDirectory() as name:
        training(regressor, Path(name))
        model = regressor().fit(X, y)
        files(model, X, Path(name))
    explanations(model, X)
    if args.picture:
        picture(model, X, y, args.picture)


if __name__ == "__main__":
    main()
