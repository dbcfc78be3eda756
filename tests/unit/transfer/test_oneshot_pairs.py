"""Two dependent Gaussian processes for all rho, against a solve for each."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import oracle
import pytest
from oneshot_tasks import model_of, pair_of
from sklearn.gaussian_process.kernels import RBF, DotProduct, WhiteKernel
from tolerance import assert_rounded, assert_solves, tolerance

from knowmore import GPRegressor
from knowmore.edits import Add, Remove
from knowmore.errors import NotPositiveDefinite
from knowmore.examples import Examples
from knowmore.kernels import On, Task, corner, cross, diagonal
from knowmore.linalg import Cholesky
from knowmore.transfer import OneShot, Rule, Support
from knowmore.transfer.dependent import LEVELS
from knowmore.transfer.pairs import Pair

RHOS = np.array([0.0, 0.01, 0.3, 0.77, 0.99, 1.0])
QUERIES = 6


# What Rodner and Denzler chose.
PAPER = Rule(criterion="ap", noise="adaptive", prior=0.0, members=1)


@dataclass
class Tasks:
    """Inputs and labels of both tasks, a kernel and a noise: everything by definition."""

    kernel: object
    noise: float
    X_T: np.ndarray
    y_target: np.ndarray
    X_S: np.ndarray
    y_support: np.ndarray

    @property
    def y(self):
        return np.concatenate([self.y_target, self.y_support])

    def matrix(self, rho):
        """K~(rho), entry by entry of eq. (3)."""
        X = np.vstack([self.X_T, self.X_S])
        task = np.arange(len(X)) >= len(self.X_T)
        same = task[:, None] == task
        return self.kernel(X) * np.where(same, 1.0, rho) + self.noise * np.eye(len(X))

    def pair(self, rho=1.0):
        return pair_of(
            self.kernel, self.X_T, self.y_target, self.X_S, self.noise, self.y_support, rho
        )

    def one_shot(self, **rule):
        """The model of the target with the support."""
        examples = Examples.of(self.X_T, self.y_target)
        support = Support.of(self.kernel, "support", self.X_S)
        return OneShot.of(self.kernel, examples, (support,), rule=replace(PAPER, **rule))

    def swapped(self):
        return Tasks(self.kernel, self.noise, self.X_S, self.y_support, self.X_T, self.y_target)


def tasks(n_T, n_S, kernel=None, noise=1e-3, seed=0, d=5):
    rng = np.random.default_rng(seed)
    positives = max(n_T // 10, 1)
    X_T = rng.normal(size=(n_T, d))
    X_T[:positives] += 1
    y_target = np.where(np.arange(n_T) < positives, 1.0, -1.0)
    X_S = rng.normal(size=(n_S, d)) + 0.8
    return Tasks(kernel or RBF(1.5), noise, X_T, y_target, X_S, np.ones(n_S))


def twins():
    """Equal pictures in both tasks, and two of them twice in one."""
    some = tasks(30, 12)
    some.X_S[:4] = some.X_T[5:9]
    some.X_S[10:] = some.X_S[8:10]
    return some


def mixed_labels():
    """A support task with labels of its own."""
    some = tasks(20, 25)
    some.y_support = np.random.default_rng(3).choice([-1.0, 1.0], size=25)
    return some


CASES = {
    "target larger": tasks(41, 15),
    "support larger": tasks(15, 41),
    "equal": tasks(20, 20),
    "one target": tasks(1, 7),
    "one support": tasks(30, 1),
    "over a panel": tasks(201, 30),
    "rank two": tasks(25, 14, kernel=DotProduct(0.0), d=2),
    "nothing in common": tasks(15, 9, kernel=RBF(1e-3)),
    "twins": twins(),
    "little noise": tasks(40, 15, noise=1e-8),
    "labels": mixed_labels(),
}
every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
# Those that a model may have: both classes in the target, one in the support.
TWO_CLASSES = {name: CASES[name] for name in CASES if name not in ("one target", "labels")}
two_classes = pytest.mark.parametrize("case", TWO_CLASSES.values(), ids=TWO_CLASSES.keys())


def assert_within(got, want, bound):
    excess = (abs(np.asarray(got) - want) / bound).max()
    assert excess <= 1, f"{excess:.2g} times the tolerance"


@every_case
def test_coefficients_are_those_of_a_solve(case):
    pair = case.pair()
    for rho in RHOS:
        K, y = case.matrix(rho), case.y[:, None]
        got = pair.coefficients(rho)[:, None]
        assert_solves(got, np.linalg.solve(K, y), K, y)


@every_case
def test_the_diagonal_is_that_of_the_inverse(case):
    pair = case.pair()
    for rho in RHOS:
        K = case.matrix(rho)
        P = np.linalg.inv(K)
        got = pair.inverse_diagonal(rho)
        assert_within(got, np.diagonal(P), tolerance(K) * np.linalg.norm(P, axis=0))


def conditional(case, rho):
    """log p(y_T | y_S): the density of the conditional normal distribution, and its rounding."""
    K, n = case.matrix(rho), len(case.y_target)
    A, C, B = K[:n, :n], K[:n, n:], K[n:, n:]
    mean = C @ np.linalg.solve(B, case.y_support)
    covariance = A - C @ np.linalg.solve(B, C.T)
    r = case.y_target - mean
    a = np.linalg.solve(covariance, r)
    value = -0.5 * (r @ a + np.linalg.slogdet(covariance)[1] + n * np.log(2 * np.pi))
    whole = np.linalg.norm(np.linalg.solve(K, case.y)) * np.linalg.norm(case.y)
    return value, tolerance(K) * (whole + n)


@every_case
def test_the_conditional_likelihood(case):
    for one in (case, case.swapped()):
        pair = one.pair()
        for rho in RHOS:
            assert_within(pair.conditional_likelihood(rho), *conditional(one, rho))


@every_case
def test_leaving_one_out_is_a_refit_without_it(case):
    for one in (case, case.swapped()):
        pair, y, n = one.pair(), one.y, len(one.y_target)
        for rho in (0.0, 0.77, 1.0):
            K = one.matrix(rho)
            mean, variance = np.empty(n), np.empty(n)
            for i in range(n):
                rest = np.delete(np.arange(len(K)), i)
                k = K[rest, i]
                solved = np.linalg.solve(K[np.ix_(rest, rest)], np.column_stack([y[rest], k]))
                mean[i], explained = k @ solved
                variance[i] = K[i, i] - explained
            left_out = pair.leave_one_out(rho)
            left = K[:, :n]
            assert_solves(left_out[0][:, None], mean[:, None], K, y[:, None], left=left)
            got, want = np.diag(left_out[1]), np.diag(variance)
            assert_solves(got, want, K, np.eye(len(K))[:, :n], left=left)


@two_classes
def test_means_and_variances_of_other_examples(case):
    X = np.random.default_rng(9).normal(size=(QUERIES, case.X_T.shape[1]))
    k_T, k_S = case.kernel(case.X_T, X), case.kernel(case.X_S, X)
    for rho in RHOS:
        model = case.one_shot(search=rho, noise=case.noise)
        K, y = case.matrix(rho), case.y[:, None]
        k = np.vstack([k_T, rho * k_S])
        mean = k.T @ np.linalg.solve(K, y)
        assert_solves(model.mean(X)[:, 1:], mean, K, y, left=k)
        assert_solves(model.mean(X)[:, :1], -mean, K, y, left=k)
        prior = case.kernel.diag(X)
        explained = np.einsum("ij,ij->j", k, np.linalg.solve(K, k))
        got = model.variance(X) - case.noise
        assert (got >= -np.spacing(case.noise)).all()
        rounding = 4 * np.finfo(float).eps * (prior + case.noise)
        size = np.linalg.norm(k, axis=0) * np.linalg.norm(np.linalg.solve(K, k), axis=0)
        assert_within(got, prior - explained, tolerance(K) * size + rounding)


@two_classes
def test_the_joint_model_is_that_of_the_pair(case):
    """The coefficients of one factor and of canonical correlations, and what follows from them."""
    pair, n = case.pair(), len(case.X_T)
    for rho in (0.3, 1.0):
        model = case.one_shot(search=rho, noise=case.noise)
        K, y = case.matrix(rho), case.y[:, None]
        assert_solves(
            model.members[0].model.coefficients[:, 1:], pair.coefficients(rho)[:, None], K, y
        )
        scores, variance, _ = model.left_out.scores()
        mean, want = pair.leave_one_out(rho)
        left = K[:, :n]
        assert_solves(scores[:, 1:], mean[:, None], K, y, left=left)
        assert_solves(np.diag(variance), np.diag(want), K, np.eye(len(K))[:, :n], left=left)
        assert model.residual() <= 4 * np.finfo(float).eps * len(K)


def test_the_kernel_of_both_tasks_is_the_product_with_the_task_kernel():
    case, kernel = CASES["target larger"], RBF(1.5) + WhiteKernel(0.1)
    model = replace(case, kernel=kernel).one_shot(search=0.3, noise=case.noise)
    covariance, want = model.members[0].model.covariance, On(slice(0, -1), kernel) * Task(0.3)
    X, Z = covariance.X, covariance.X[len(case.X_T) - 3 :]
    np.testing.assert_array_equal(cross(covariance.kernel, X, Z), cross(want, X, Z))
    np.testing.assert_array_equal(corner(covariance.kernel, X), corner(want, X))
    np.testing.assert_array_equal(diagonal(covariance.kernel, X), diagonal(want, X))


def test_an_array_that_the_kernel_keeps_is_not_written_to():
    case, blocks = CASES["target larger"], {}

    def kernel(X, Y):
        return blocks.setdefault((X.tobytes(), Y.tobytes()), case.kernel(X, Y))

    model = replace(case, kernel=kernel).one_shot(search=0.3, noise=case.noise)
    Z = np.random.default_rng(8).normal(size=(QUERIES, 5))
    np.testing.assert_array_equal(model.mean(Z), model.mean(Z))


def test_it_is_the_process_of_the_product_with_the_task_kernel():
    """Eq. (3): a Gaussian process under the product of two kernels."""
    case = CASES["target larger"]
    X = np.vstack([np.insert(case.X_T, 5, 0, axis=1), np.insert(case.X_S, 5, 1, axis=1)])
    Z = np.random.default_rng(8).normal(size=(QUERIES, 5))
    k_T, k_S = case.kernel(case.X_T, Z), case.kernel(case.X_S, Z)
    for rho in RHOS:
        kernel = On(slice(0, 5), case.kernel) * Task(rho)
        gp = GPRegressor(kernel, case.noise, normalize_y=False).fit(X, case.y)
        want = gp.predict(np.insert(Z, 5, 0, axis=1))[:, None]
        k = np.vstack([k_T, rho * k_S])
        got = (case.pair().coefficients(rho) @ k)[:, None]
        assert_solves(got, want, case.matrix(rho), case.y[:, None], left=k)


@every_case
def test_many_rhos_at_once_are_each_of_them(case):
    pair = case.pair()
    questions = {
        "coefficients": pair.coefficients,
        "inverse_diagonal": pair.inverse_diagonal,
        "left out, mean": lambda rho: pair.leave_one_out(rho)[0],
        "left out, variance": lambda rho: pair.leave_one_out(rho)[1],
        "likelihood": pair.conditional_likelihood,
    }
    K = case.matrix(1.0)
    for name, question in questions.items():
        table = question(RHOS.reshape(2, 3))
        single = np.array([question(rho) for rho in RHOS])
        assert table.shape == (2, 3, *single.shape[1:]), name
        # Products of one row and of many are summed in another order.
        scale = abs(single).max() + abs(np.linalg.solve(K, case.y)).max()
        assert_within(table.reshape(single.shape), single, tolerance(K) * scale)


def test_rho_zero_is_the_target_alone():
    case = CASES["target larger"]
    pair = case.pair()
    alone = pair.target
    np.testing.assert_array_equal(pair.coefficients(0.0)[:41], alone.coefficients[:, 1])
    np.testing.assert_array_equal(
        pair.inverse_diagonal(0.0)[:41], alone.left_out.inverse_diagonal()
    )
    support = tasks(3, 8, seed=5).pair().support
    other = Pair.of(alone, support, np.full((41, 8), 0.01), positive=1)
    for mine, theirs in zip(pair.leave_one_out(0.0), other.leave_one_out(0.0), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_no_matrix_is_factorised_for_a_rho(monkeypatch):
    pair, calls = CASES["target larger"].pair(), []
    append = Cholesky.append
    monkeypatch.setattr(
        Cholesky, "append", lambda self, *blocks: calls.append(1) or append(self, *blocks)
    )
    pair.leave_one_out(RHOS)
    pair.conditional_likelihood(RHOS)
    assert not calls


def test_the_target_grows_and_shrinks_like_any_model():
    case = tasks(30, 12)
    first = model_of(case.kernel, case.X_T[:25], case.y_target[:25], case.noise)
    more = Add(case.X_T[25:], case.y_target[25:])
    grown = first.follow(first.examples.apply(more).apply(Remove((2, 28))))
    kept = np.delete(np.arange(30), [2, 28])
    case.X_T, case.y_target = case.X_T[kept], case.y_target[kept]
    pair = Pair.of(grown, case.pair().support, case.kernel(case.X_T, case.X_S), positive=1)
    M = case.matrix(0.6)
    got = pair.coefficients(0.6)[:, None]
    assert_solves(got, np.linalg.solve(M, case.y[:, None]), M, case.y[:, None])
    assert first.covariance.factor.size == 25


# -- singular matrices and noise -----------------------------------------------------------------


def test_an_example_twice_in_a_task_without_noise():
    case = tasks(10, 5, noise=0.0)
    case.X_T[7] = case.X_T[2]
    with pytest.raises(NotPositiveDefinite, match="example 7") as error:
        case.pair()
    assert error.value.row == 7


@pytest.mark.parametrize("shape", [(20, 6), (6, 20)])
def test_an_example_in_both_tasks_without_noise(shape):
    case = tasks(*shape, noise=0.0)
    case.X_S[4] = case.X_T[3]
    with pytest.raises(NotPositiveDefinite, match="vanishes at rho = 1") as error:
        case.pair()
    assert error.value.row == shape[0] + 4


@pytest.mark.parametrize("shape", [(20, 6), (6, 20)])
def test_an_example_in_both_tasks_is_one_only_at_rho_one(shape):
    case = tasks(*shape, noise=0.0)
    case.X_S[4] = case.X_T[3]
    one = case.pair(0.9)
    K, y = case.matrix(0.9), case.y[:, None]
    got = one.coefficients(0.9)[:, None]
    assert_solves(got, np.linalg.solve(K, y), K, y)


@every_case
def test_pivots_are_those_of_rows_that_come_last(case):
    """No order of the rows makes the pivot of a row smaller."""
    pair = case.pair()
    rng = np.random.default_rng(2)
    for rho in (0.0, 0.77, 1.0):
        K = case.matrix(rho)
        variance = 1 / pair.inverse_diagonal(rho)
        last = np.empty(len(K))
        for i in range(len(K)):
            order = np.append(np.delete(np.arange(len(K)), i), i)
            last[i] = np.linalg.cholesky(K[np.ix_(order, order)])[-1, -1] ** 2
        assert_solves(np.diag(variance), np.diag(last), K, np.eye(len(K)), left=K)
        order = rng.permutation(len(K))
        L = np.linalg.cholesky(K[np.ix_(order, order)])
        assert (np.diagonal(L) ** 2 > (1 - tolerance(K)) * variance[order]).all()
    assert_rounded(pair.diagonal, np.diagonal(case.matrix(0.0)), 4)


def noise_of(kernel, X, supports):
    """The adaptive noise; the last example of X is negative, all others are positive."""
    examples = Examples.of(X, np.where(np.arange(len(X)) < len(X) - 1, 1, -1))
    tasks = tuple(Support.of(kernel, str(i), S) for i, S in enumerate(supports))
    return OneShot.of(kernel, examples, tasks, rule=PAPER).covariance.noise


def test_noise_is_added_where_zero_only_just_succeeds():
    """A twin but for a hair: the pivot decides, in the target, in a support and between them."""
    hair, near, apart, far = 1e-3, 1e-5, np.array([[3.0]]), np.array([[99.0]])
    kernel = RBF(1.0)
    for distance, want in (hair, 0.0), (near / 2, LEVELS[1]):
        # 1 - exp(-d^2) of the variance is left.
        X = np.array([[0.0], [distance]])
        for T, S in (X, apart), (apart, X), (X[:1], X[1:]):
            np.linalg.cholesky(kernel(np.vstack([T, S])))
            assert noise_of(kernel, np.vstack([T, far]), [S]) == want
        assert noise_of(kernel, np.vstack([X, far]), []) == want


def test_no_noise_is_added_where_none_is_needed():
    assert tasks(20, 8).one_shot().covariance.noise == 0


@pytest.mark.parametrize("scale", [1.0, 1e-6, 1e6])
def test_the_first_level_is_enough_for_twins(scale):
    """In units of the diagonal; with it every rho can be asked for."""
    case = tasks(20, 8, kernel=scale * RBF(1.5))
    case.X_S[4:6] = case.X_T[3:5] + 1e-9
    model = case.one_shot()
    assert_rounded(model.covariance.noise, 1e-8 * scale)
    (one,) = model.candidates.values()
    assert (one.pair.leave_one_out(RHOS)[1] > 0).all()


def test_one_noise_serves_the_most_difficult_support():
    """Smooth kernels of many examples need more than the first level."""
    rng = np.random.default_rng(0)
    X, kernel = rng.normal(size=(60, 2)), RBF(3.0)
    supports = [rng.normal(size=(n, 2)) for n in (3, 20, 3)]
    together = noise_of(kernel, X, supports)
    assert together == max(noise_of(kernel, X, [one]) for one in supports)
    assert together == noise_of(kernel, X, supports[::-1])
    assert together in LEVELS[1:]
    below = LEVELS[LEVELS.index(together) - 1]
    hardest = max(supports, key=lambda S: noise_of(kernel, X, [S]))
    case = Tasks(kernel, below, X, np.where(np.arange(60) < 3, 1.0, -1.0), hardest, np.ones(20))
    with pytest.raises(NotPositiveDefinite):
        case.one_shot(noise=below)


@pytest.mark.parametrize("noise", [1e-8, 1e-3, 1.0])
@pytest.mark.parametrize("width", [0.1, 1.0, 5.0])
def test_means_are_within_the_bound_of_their_rounding(noise, width):
    some = tasks(20, 8, RBF(width), noise)
    pair, n = some.pair(), 28
    for rho in (0.0, 0.4, 1.0):
        mean, _, error = pair._loo(rho)
        K, noises = some.matrix(rho) - noise * np.eye(n), np.full(n, noise)
        groups = np.minimum(np.arange(n), 20)
        want = oracle.left_out_precisely(K, noises, some.y[:, None], groups)[:20, 0]
        assert (abs(mean - want) <= error).all()
