"""Mixtures in several threads at once: each fits as it would alone, and torch stays as it was."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from flat_parameters import parameters

from benchmarks.mixtures import GBDTNNClassifier, GBDTNNRegressor, NNGBDTClassifier, NNGBDTRegressor

torch = pytest.importorskip("torch", reason="needs torch: pip install 'boostbp[torch]'")

QUICK = {"n_estimators": 5, "random_state": 0, "n_jobs": 1, "early_stopping": False}
# One of numbers and one of classes, with trees below and above the network; `.ci/run` takes all.
all_kinds = pytest.mark.parametrize(
    "kind",
    [
        GBDTNNRegressor,
        NNGBDTClassifier,
        *(pytest.param(kind, marks=pytest.mark.slow) for kind in (GBDTNNClassifier, NNGBDTRegressor)),
    ],
)
PATIENCE = 60.0


def data(kind, rows=200):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (rows, 4))
    y = np.sin(3 * X[:, 0]) + np.maximum(X[:, 1] - X[:, 2], 0)
    return X, np.digitize(y, [0.0, 0.6]) if issubclass(kind, GBDTNNClassifier | NNGBDTClassifier) else y


def weights(model):
    return [p.detach().numpy() for p in model.network_.parameters()]


def bits(model, X):
    return [a.tobytes() for a in (*weights(model), model.network_.predict(X), model.jacobian(X))]


def in_new_thread(work, *args):
    with ThreadPoolExecutor(1) as new:
        return new.submit(work, *args).result()


@pytest.fixture
def three_threads():
    """Three threads for torch, here and in threads to come."""
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def restless():
    """Python changes its thread as often as it can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@all_kinds
@pytest.mark.parametrize("epochs", [2, pytest.param(0, marks=pytest.mark.slow)])
@pytest.mark.usefixtures("restless")
def test_fits_at_the_same_time_give_the_bits_of_a_lone_one(kind, epochs):
    X, y = data(kind)
    model = kind((4, 3), **parameters(epochs=epochs, **QUICK))
    alone = bits(model.fit(X, y), X)
    together = threading.Barrier(6)

    def fit(seed):
        together.wait(PATIENCE)
        return [
            bits(kind((4, 3), **parameters(epochs=epochs, **QUICK | {"random_state": s})).fit(X, y), X)
            for s in (seed, 0)
        ]

    before = torch.get_rng_state()
    with ThreadPoolExecutor(6) as threads:
        found = list(threads.map(fit, range(6)))
    assert [again == alone for _, again in found] == [True] * 6
    assert [first == alone for first, _ in found] == [True] + [False] * 5
    assert torch.equal(torch.get_rng_state(), before)


@all_kinds
def test_generator_of_torch_is_the_users_also_during_a_fit(kind):
    states = []
    torch.manual_seed(5)
    X, y = data(kind)
    before = torch.get_rng_state()
    kind((4,), **parameters(epochs=2, **QUICK)).fit(X, y, callbacks=[lambda _: states.append(torch.get_rng_state())])
    assert [torch.equal(state, before) for state in states] == [True] * 3
    states.clear()
    kind((4,), **parameters(epochs=2, **QUICK)).fit(X, y, callbacks=[lambda _: states.append(torch.rand(1))])
    torch.manual_seed(5)
    assert states == [torch.rand(1) for _ in range(3)]


@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize("kind", [GBDTNNRegressor, NNGBDTRegressor])
def test_first_weights_are_those_that_torch_would_draw(kind, skip):
    seen = []

    def optimizer(parameters):
        seen.extend(p.detach().clone() for p in parameters)
        return torch.optim.SGD(parameters)

    X, y = data(kind)
    kind((7, 5), **parameters(epochs=0, skip=skip, optimizer=optimizer, **QUICK)).fit(X, y)
    besides = 4 if skip else 0
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(np.random.RandomState(0).randint(2**31 - 1)))
        if kind is NNGBDTRegressor:
            layers = [torch.nn.Linear(4, 7), torch.nn.Linear(7 + besides, 5)]
        else:  # the output is drawn first, and starts at the mean
            layers = [torch.nn.Linear(5 + besides, 1), torch.nn.Linear(7 + besides, 5)][::-1]
            torch.nn.init.constant_(layers[-1].bias, seen[-1].item())
    expected = [p.detach() for layer in layers for p in layer.parameters()]
    assert [torch.equal(a, b) for a, b in zip(seen, expected, strict=True)] == [True] * 4


@pytest.mark.usefixtures("three_threads")
@pytest.mark.parametrize("first_out", [0, 1])
def test_fits_that_overlap_leave_all_numbers_of_threads_as_they_were(first_out):
    X, y = data(NNGBDTRegressor)
    inside, outside, go = ([threading.Event() for _ in range(2)] for _ in range(3))
    seen = {}

    def fit(number):
        seen["before", number] = torch.get_num_threads()

        def stay(_):
            inside[number].set()
            assert go[number].wait(PATIENCE)
            seen["during", number] = torch.get_num_threads()

        NNGBDTRegressor((4,), **parameters(epochs=0, **QUICK | {"n_jobs": 1 + number})).fit(X, y, callbacks=[stay])
        seen["after", number] = torch.get_num_threads()
        outside[number].set()

    with ThreadPoolExecutor(2) as threads:
        fits = []
        for number in range(2):  # one enters after the other
            fits.append(threads.submit(fit, number))
            assert inside[number].wait(PATIENCE)
        seen["new"] = in_new_thread(torch.get_num_threads)
        for number in (first_out, 1 - first_out):
            go[number].set()
            assert outside[number].wait(PATIENCE)
        for done in fits:
            done.result()
    for number in range(2):
        assert [seen[when, number] for when in ("before", "during", "after")] == [3, 1 + number, 3]
    assert seen["new"] == 3
    assert torch.get_num_threads() == in_new_thread(torch.get_num_threads) == 3


@pytest.mark.usefixtures("three_threads")
def test_a_number_of_threads_that_is_set_during_a_fit_stays():
    def set_elsewhere(_):
        in_new_thread(torch.set_num_threads, 2)

    X, y = data(GBDTNNRegressor)
    GBDTNNRegressor((4,), **parameters(epochs=0, **QUICK)).fit(X, y, callbacks=[set_elsewhere])
    assert torch.get_num_threads() == 3
    assert in_new_thread(torch.get_num_threads) == 2


@pytest.mark.usefixtures("three_threads", "restless")
def test_predictions_at_the_same_time_leave_the_numbers_of_threads():
    X, y = data(GBDTNNRegressor)
    model = GBDTNNRegressor((4,), **parameters(epochs=0, **QUICK)).fit(X, y)
    expected = model.network_.predict(X)

    def predict(n_jobs):
        return [np.array_equal(model.network_.predict(X, n_jobs=n_jobs), expected) for _ in range(20)]

    with ThreadPoolExecutor(6) as threads:
        assert np.all(list(threads.map(predict, [1, 2, 1, 2, 1, 2])))
        assert list(threads.map(lambda _: torch.get_num_threads(), range(6))) == [3] * 6
    assert torch.get_num_threads() == in_new_thread(torch.get_num_threads) == 3


@pytest.mark.usefixtures("three_threads")
def test_predictions_need_no_new_threads(fails):
    X, y = data(GBDTNNRegressor)
    model = GBDTNNRegressor((4,), **parameters(epochs=0, **QUICK)).fit(X, y)
    expected = model.predict(X)
    fails(threading.Thread, "start", RuntimeError("can't create new thread at interpreter shutdown"))
    np.testing.assert_array_equal(model.predict(X), expected)
    assert torch.get_num_threads() == 3
