"""Trials of one kind in this process: Ctrl-C at a random moment of some work, and what becomes of it.

Run by `tests.signals`, as ``python -m tests.signals.trials '{"work": "fit", ...}'``; prints a JSON object of counts.
"""

from __future__ import annotations

import faulthandler
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from boostbp import BoostBPClassifier, BoostBPRegressor, callbacks, load, save
from boostbp.network.history import Stop
from tests.support.flat_parameters import parameters

LATEST = 1800.0  # seconds that a signal may take to be heard: others may use the machine
RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 5))
Y = X[:, 0] + np.sin(X[:, 1])
ENDLESS = {"epochs": 10**6, "n_iter_no_change": None}


class TimeIsUpError(Exception):
    """What the user's handler raises."""


def _raise(*_: object) -> None:
    raise TimeIsUpError("of the user's handler")


# Handlers of Ctrl-C by name, and what each raises.
HANDLERS: dict[str, tuple[Any, type[BaseException]]] = {
    "user": (_raise, TimeIsUpError),
    "python": (signal.default_int_handler, KeyboardInterrupt),
}


def model_of(spec: dict[str, Any], **params: Any) -> Any:
    """An estimator as a kind of trial asks for it."""
    common = {"backend": spec["backend"], "n_jobs": spec["n_jobs"], "random_state": 0, **params}
    if spec["model"] == "mixture":
        from benchmarks.mixtures import NNGBDTRegressor

        return NNGBDTRegressor((4,), **parameters(n_estimators=10, **common))
    kind = BoostBPClassifier if spec["model"] == "classifier" else BoostBPRegressor
    return kind((4,), **parameters(deep=True if spec["deep"] is True else "auto", **common))


def works(spec: dict[str, Any], stopping: threading.Event) -> tuple[Any, Callable[[], object]]:
    """An estimator, new or fitted, and what is done with it while the signal comes, or until it is to stop."""
    calls = [callbacks.time_limit(LATEST), lambda progress: stopping.is_set()]
    y = (Y > 0).astype(int) if spec["model"] == "classifier" else Y
    if spec["work"] in ("fit", "fit_again"):
        bounds = ENDLESS if spec["deep"] is True else {"epochs": 5}
        model = model_of(spec, **bounds)
        if spec["work"] == "fit_again":
            model.set_params(epochs=2).fit(X, y).set_params(**parameters(**bounds))
        return model, lambda: model.fit(X, y, callbacks=calls)
    model = model_of(spec, epochs=2).fit(X, y)
    if spec["work"] == "fit_more":
        model.set_params(backprop__n_iter_no_change=None).fit(X, y, keep_state=True)
        return model, lambda: model.fit_more(10**6, callbacks=calls)
    path = Path(tempfile.mkdtemp()) / "model"
    save(model, path)
    rows = np.tile(X, (20, 1))

    def use() -> None:
        for _ in range(10**6):
            model.predict(rows)
            model.jacobian(X)
            model.attributions(X[:5])
            load(path).predict(X)

    return model, use


def in_a_thread(work: Callable[[], object]) -> None:
    """Wait in the main thread for work in another one."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join()


def trial(spec: dict[str, Any], delay: float) -> str:
    """One signal after `delay` seconds of work: "heard", or what went wrong."""
    handler, expected = HANDLERS[spec["handler"]]
    stopping = threading.Event()
    model, work = works(spec, stopping)
    before = dict(vars(model))
    signal.signal(signal.SIGINT, handler)
    begun = time.monotonic()
    try:
        timer = threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        in_a_thread(work) if spec["threaded"] else work()
        timer.join()
        time.sleep(2.0)
        return "lost"
    except expected:
        pass
    except BaseException as error:
        return f"{type(error).__name__} in its place"
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        stopping.set()
    if time.monotonic() - begun > delay + LATEST:
        return "late"
    return "heard" if spec["threaded"] else state_of(model, before, kept=spec["handler"] == "python")


def state_of(model: Any, before: dict[str, Any], *, kept: bool) -> str:
    """Whether an estimator is as it was, or has the best state of an interrupted training, which may be kept."""
    now = vars(model)
    if now.keys() == before.keys() and all(now[name] is before[name] for name in before):
        return "heard"
    if not kept and model.history_.stop is Stop.INTERRUPTED:
        return "a model where none was to be kept"
    if not np.isfinite(model.predict(X)).all():
        return "no proper model"
    return "heard"


def main(spec: dict[str, Any]) -> dict[str, int]:
    """Run the trials of one kind."""
    faulthandler.enable()
    warnings.simplefilter("ignore")
    moments = random.Random(spec["seed"])
    model, work = works(spec | {"work": "fit", "deep": spec["deep"]}, threading.Event())
    model.set_params(epochs=3).fit(X, (Y > 0).astype(int) if spec["model"] == "classifier" else Y)
    model.predict(X)
    if spec["model"] != "mixture":
        model.jacobian(X)
        model.attributions(X[:5])
    begun = time.monotonic()
    if spec["deep"] is not True:
        work()
    longest = max(0.4, 0.8 * (time.monotonic() - begun))
    return Counter(trial(spec, moments.uniform(0.02, longest)) for _ in range(spec["trials"]))


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
