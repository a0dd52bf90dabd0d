"""Tree layers that are boosted on a loss, at the end of a torch model."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import make_targets, make_X
from tree_modules import module, rows, torch

from boostbp.losses import SquaredError


@pytest.mark.parametrize(
    ("loss", "outputs"),
    [("log_loss", 3), ("log_loss", 1), ("squared_error", 1)],
    ids=["softmax", "logistic", "squared"],
)
def test_boost_fits_the_loss_itself(loss, outputs):
    x = rows(300)
    score = make_targets(x.numpy(), 1)[:, 0]
    classes = np.digitize(score, np.quantile(score, [1 / 3, 2 / 3])) if outputs == 3 else (score > np.median(score))
    y = torch.tensor(score if loss == "squared_error" else classes.astype(int))
    made = module(outputs, n_estimators=20, learning_rate=0.3)
    made.boost(loss, y, x=x, sample_weight=np.full(300, 2.0))
    raw = made.eval()(x)
    if loss == "squared_error":
        assert ((raw[:, 0] - y) ** 2).mean() < 0.3 * y.var()
    else:
        hit = raw.argmax(1) == y if outputs == 3 else (raw[:, 0] > 0) == (y == 1)
        assert hit.float().mean() > 0.9


def test_boost_takes_the_gathered_rows():
    x = rows()
    y = make_targets(x.numpy(), 1)
    gathered, given = module(1), module(1)
    (gathered(x) ** 2).mean().backward()
    gathered.boost("squared_error", y)
    given(x)
    given.boost("squared_error", y, x=x)
    np.testing.assert_array_equal(gathered.eval()(x).numpy(), given.eval()(x).numpy())


def test_boost_keeps_to_the_rows_of_the_last_fit():
    made, x, y = module(1), rows(), make_targets(make_X(200), 1)
    made.boost("squared_error", y, x=x)
    with pytest.raises(ValueError, match=r"40 rows .* fitted to 200"):
        made.boost("squared_error", y[:40], x=x[:40])
    made.forget().boost("squared_error", y[:40], x=x[:40])
    assert made.n_rows == 40


def test_rows_of_weight_zero_are_no_rows():
    x, target = rows(300), make_targets(make_X(300), 1)
    weight = (np.arange(300) % 3 > 0).astype(float)
    some, fewer = module(1), module(1)
    some.boost("squared_error", target, x=x, sample_weight=weight)
    fewer.boost("squared_error", target[weight > 0], x=x[weight > 0])
    np.testing.assert_array_equal(some.eval()(x).numpy(), fewer.eval()(x).numpy())
    some, fewer = module(), module()
    some.begin(x, sample_weight=weight)
    fewer.begin(x[weight > 0])
    np.testing.assert_array_equal(some.eval()(x).numpy(), fewer.eval()(x).numpy())


def test_targets_of_boost_are_checked():
    x = rows()
    for y, says in ((np.zeros(150), "150 rows"), (0.5, "0 rows"), (np.full(200, np.nan), "finite")):
        with pytest.raises(ValueError, match=says):
            module(1).boost("squared_error", y, x=x)
    with pytest.raises(ValueError, match="class numbers"):
        module(3).boost("log_loss", np.full(200, 7), x=x)


@pytest.mark.parametrize(
    ("member", "returned", "says"),
    [
        ("gradient", lambda h, y: (h - y)[:, 0], r"gradient has shape \(200,\), not \(200, 1\), .*gradient\[:, None\]"),
        ("hessian", lambda h, y: -np.ones_like(h), r"hessian is \[-1\.\] in row 0"),
        ("baseline", lambda y, weight: 0.0, r"baseline has shape \(\), not \(1,\)"),
    ],
)
def test_losses_of_boost_are_checked(member, returned, says):
    own = type("Own", (SquaredError,), {member: lambda self, *given: returned(*given)})()
    x, made = rows(), module(1)
    with pytest.raises(ValueError, match=f"^loss='squared_error': its {says}"):
        made.boost(own, make_targets(x.numpy(), 1), x=x)
    assert made.layer is None
    np.testing.assert_array_equal(made.baseline, [0.0])
