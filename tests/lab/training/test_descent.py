"""The least value that our own descent finds is the one that scipy finds."""

import numpy as np
import pytest
from scipy import optimize

from clew.lab.training.descent import minimize


def logistic(seed, l2=0.1):
    random = np.random.default_rng(seed)
    rows = random.normal(size=(200, 12)) * random.uniform(0.1, 5, 12)
    signs = np.where(rows @ random.normal(size=12) + random.normal(size=200) > 0, 1.0, -1.0)

    def loss(parameters):
        margins = signs * (rows @ parameters)
        pull = -signs / (1 + np.exp(np.clip(margins, -500, 500)))
        return float(
            np.logaddexp(0, -margins).sum() + l2 / 2 * parameters @ parameters
        ), rows.T @ pull + l2 * parameters

    return loss


def rosenbrock(place):
    return float(optimize.rosen(place)), optimize.rosen_der(place)


@pytest.mark.parametrize("loss", [*map(logistic, range(8)), rosenbrock])
def test_it_finds_what_scipy_finds(loss):
    ours = minimize(loss, np.zeros(12))
    theirs = optimize.minimize(loss, np.zeros(12), jac=True, method="L-BFGS-B", options={"ftol": 1e-14, "gtol": 1e-10})
    assert loss(ours)[0] <= theirs.fun + 1e-6 * max(1.0, abs(theirs.fun))
    assert ours == pytest.approx(theirs.x, abs=1e-2)


def test_it_stays_where_nothing_is_gained_and_stops_in_time():
    assert minimize(lambda place: (0.0, np.zeros_like(place)), np.ones(3)).tolist() == [1, 1, 1]
    assert minimize(lambda place: (float(place @ place), 2 * place), np.ones(3), rounds=0).tolist() == [1, 1, 1]
    assert minimize(lambda place: (float(np.abs(place).sum()), -np.sign(place)), np.ones(3)).tolist() == [1, 1, 1]
