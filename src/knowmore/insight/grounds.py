"""The grounds of a prediction: the examples without which its score would be another one.

q = P k_* (n,) are the weights that the targets have in one score, mu(x) = sum_i q_i t_i: the vote
of example i is q_i t_i. Without a group g of examples (block inversion, as in leave-one-out)

    mu_-g^(c)(x) = mu^(c)(x) - q_g' P_gg^-1 A_gc

where q and P are those of the bordered matrix if there is a bias. The terms A_i k_i of a score (see
`explain`) grow with the condition of K~ and cancel: with wide kernels and little noise they are
1e5 where the score is one. Votes and scores without are of the size of the score.

Similar examples take each other's place: without one of them nothing changes. The correlation of i
and j given all others is -P_ij / sqrt(P_ii P_jj). Those of one class for which its square is one
half or more, so that one of them halves what the others leave open of the other, are one ground.

The first ground is the one that costs the score most; each further one costs most when the grounds
before it are gone. Greedy: a smaller set may do as much.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from scipy.sparse.csgraph import connected_components
from sklearn.base import is_classifier

from knowmore._base import Array, TableAnswer, flag, whole_number
from knowmore.errors import InvalidInput
from knowmore.insight.asking import GROUNDED, asked, has_grounds, processes
from knowmore.insight.explain import column_of, one_row, weights_of
from knowmore.models import KernelModel, columns_in

# Grounds are looked for among so many examples, those with the strongest votes.
_CANDIDATES = 100
# The square of the correlation from which on two examples stand for each other.
_STAND_INS = 0.5
# The serials of examples.
_Ground = tuple[int, ...]


@final
@dataclass(frozen=True, eq=False, repr=False)
class Grounds(TableAnswer):
    """What the score of `label` at one x rests on, the strongest ground first.

    A ground is an example, or several of one label that take each other's place.

    ids : (k,) of tuples, the examples of each ground
    labels : (k,), theirs; of a regressor the mean of their values
    votes : (k,), what their labels add to the score. The votes of all examples and `offset` sum to
        the score
    score_without : (k,), what the score would be had the model never seen this ground
    score_left : (k,), without this ground and all before it
    offset : the score that has no vote: a known source's, or the mean of the values that a
        regressor normalises; else zero
    instead : the label that is predicted without all these grounds. `label` itself if that does not
        change; None for a regressor, or if another label was asked about than the predicted one
    """

    label: Any
    score: float
    offset: float
    ids: Array
    labels: Array
    votes: Array
    score_without: Array
    score_left: Array
    instead: Any

    def _columns(self) -> dict[str, Array]:
        ids = np.array([", ".join(map(str, ground)) for ground in self.ids], dtype=object)
        columns = ids, self.labels, self.votes, self.score_without, self.score_left
        names = "id", "label", "vote", "score_without", "score_left"
        return dict(zip(names, columns, strict=True))

    def _summary(self) -> str:
        begin = f"{self.label!r} has score {self.score:.4g}"
        if not len(self.ids):
            return f"{begin}, and rests on no single example"
        count = sum(map(len, self.ids))
        end = f"{begin}, and {self.score_left[-1]:.4g} without these {count}"
        changed = self.instead is not None and self.instead != self.label
        return f"{end}: then {self.instead!r} is predicted" if changed else end


def grounds(
    model: Any, x: Any, label: Any = None, n: int = 10, *, against: bool = False
) -> Grounds:
    """The examples that the score at x rests on: without these it would be another one; exact.

    Each ground is the one without which the score falls most, when those before it are gone. The
    list ends when another label is predicted, after n grounds, or when no example holds the score
    up. Of a regressor the grounds are those without which the value changes most. Found among the
    100 examples with the strongest votes. Parameters of the kernel, the noise, weights by class,
    and what an `NPlusOneClassifier` takes from its source are kept fixed, and trees their shape.
    Not for loss="squared_hinge": without an active example others become active, in no closed form.

    Parameters
    ----------
    model : a fitted GPClassifier, GPRegressor, LSSVMClassifier, NPlusOneClassifier,
        ForestGPClassifier or ForestGPRegressor
    x : one row of features, (d,) or (1, d)
    label : as in `explain`
    n : the number of grounds, at most
    against : whether to list what holds the score down instead: without these it would be higher

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from knowmore import GPClassifier
    >>> X = [[0.0], [0.01], [1.0], [2.5]]
    >>> clf = GPClassifier(RBF(1.0), 1e-3).fit(X, ["cold", "cold", "cold", "hot"])
    >>> grounds(clf, [0.5])
    Grounds: 'cold' has score 1.19, and -0.1352 without these 3: then 'hot' is predicted
      id  label    vote  score_without  score_left
       2   cold  0.5772         0.7863      0.7863
    0, 1   cold   0.536          1.105     -0.1352
    """
    svm = asked(model, GROUNDED, linear="Ask explain(), which names the features that it adds up.")
    if not has_grounds(model):
        raise InvalidInput(
            'With loss="squared_hinge" an example that is left out makes others active, so what '
            "is left of a score has no closed form. Ask explain(), whose contributions are exact."
        )
    n, against = whole_number("n", n, 1), flag("against", against)
    row = one_row(model, x)
    scores = svm.mean(row)[0]
    c = column_of(model, svm.names, scores, label)
    said = _Said.of([gp for ((gp, _),) in processes(svm, row)], row, svm.names, c)
    classes = is_classifier(model)
    rest = said.grounds(classes=classes)
    alone = {ground: float((scores - said.lost(ground))[c]) for ground in rest}
    predicted = classes and int(scores.argmax()) == c
    found: list[tuple[_Ground, float]] = []
    gone: _Ground = ()
    left = scores
    while rest and len(found) < n and not (predicted and left.argmax() != c):
        then = {ground: scores - said.lost(gone + ground) for ground in rest}
        if classes:
            side = -1 if against else 1
            costs = {ground: side * float((left - one)[c]) for ground, one in then.items()}
        else:
            # A value has no side: it moves away from what it is.
            costs = {ground: abs(float((scores - one)[c])) for ground, one in then.items()}
            costs = {
                ground: cost - abs(float((scores - left)[c])) for ground, cost in costs.items()
            }
        best = max(rest, key=costs.__getitem__)
        if not costs[best] > 0:
            break
        rest.remove(best)
        gone, left = gone + best, then[best]
        found.append((best, float(left[c])))
    names = svm.names
    return Grounds(
        label=names[c].item(),
        score=float(scores[c]),
        offset=said.offset,
        ids=_tuples([tuple(said.ids[one] for one in ground) for ground, _ in found]),
        labels=_labels([[said.labels[one] for one in ground] for ground, _ in found], classes),
        votes=np.array([sum(said.votes[one] for one in ground) for ground, _ in found]),
        score_without=np.array([alone[ground] for ground, _ in found]),
        score_left=np.array([one for _, one in found]),
        instead=names[left.argmax()].item() if predicted else None,
    )


def _tuples(every: list[tuple[Any, ...]]) -> Array:
    """An array (k,) of tuples."""
    found = np.empty(len(every), dtype=object)
    found[:] = every
    return found


def _labels(every: list[list[Any]], classes: bool) -> Array:
    """The label that the examples of each ground share, or the mean of their values, (k,)."""
    return np.array([labels[0] if classes else np.mean(labels) for labels in every])


@dataclass(frozen=True)
class _Said:
    """The scores at one x, as a sum over examples that can be left out.

    parts : of each Gaussian process whose mean the model is
    votes : of all examples, by serial
    ids, labels : of the candidates, by serial
    """

    parts: list[_Part]
    votes: dict[int, float]
    offset: float
    ids: dict[int, Any]
    labels: dict[int, Any]

    @classmethod
    def of(cls, every: list[KernelModel], row: Array, names: Array, c: int) -> _Said:
        """What each Gaussian process says of a row (1, D) in column c of `names` (M,)."""
        votes: dict[int, float] = {}
        offsets, weights = [], [weights_of(gp, gp.covariance.cross(row)) for gp in every]
        for gp, q in zip(every, weights, strict=True):
            at, targets = int(columns_in(gp, names[[c]])[0]), gp.targets
            prior = float(np.broadcast_to(targets.prior_mean(row), (1, len(gp.names)))[0, at])
            units = targets.units
            offsets.append(prior if units is None else float(units.mean[at]))
            scale = 1.0 if units is None else units.scale[at]
            each = q[:, 0] * targets.T[:, at] * scale / len(every)
            for serial, vote in zip(gp.examples.serials.tolist(), each.tolist(), strict=True):
                votes[serial] = votes.get(serial, 0.0) + vote
        strongest = sorted(votes, key=lambda one: -abs(votes[one]))[:_CANDIDATES]
        ids: dict[int, Any] = {}
        labels: dict[int, Any] = {}
        parts = []
        for gp, q in zip(every, weights, strict=True):
            part = _Part.of(gp, row, q, columns_in(gp, names), strongest)
            said = gp.examples.labels[part.rows]
            said = said if said.ndim == 1 else said[:, c]
            ids |= {one: gp.examples.names[part.rows[i]] for one, i in part.at.items()}
            labels |= {one: said[i].item() for one, i in part.at.items()}
            parts.append(part)
        return cls(parts, votes, float(np.mean(offsets)), ids, labels)

    def lost(self, gone: _Ground) -> Array:
        """What the scores lose without some examples, (M,)."""
        return np.asarray(sum(part.lost(gone) for part in self.parts) / len(self.parts))

    def grounds(self, *, classes: bool) -> list[_Ground]:
        """The candidates; those that take each other's place, of one class if any, are one."""
        serials = [*self.ids]
        at = {serial: i for i, serial in enumerate(serials)}
        linked = np.zeros((len(serials), len(serials)), dtype=bool)
        for part in self.parts:
            rows = [at[serial] for serial in part.at]
            linked[np.ix_(rows, rows)] |= part.stand_ins
        if classes:
            labels = np.unique([*self.labels.values()], return_inverse=True)[1]
            linked &= labels[:, None] == labels
        _, of = connected_components(linked, directed=False)
        return [tuple(np.array(serials)[of == i].tolist()) for i in range(int(of.max()) + 1)]


@dataclass(frozen=True)
class _Part:
    """The scores by one Gaussian process, and what they lose without some of its examples.

    columns : of the process for each of the M names
    rows : of the candidates that it holds, (m,); at : their places in these by serial
    q : (m,); P : their rows and columns of the (bordered) inverse, (m, m)
    scores : (M',) with all; solved : what the basis of the targets predicts at x
    """

    gp: KernelModel
    columns: Array
    rows: Array
    at: dict[int, int]
    q: Array
    P: Array
    scores: Array
    solved: Array

    @classmethod
    def of(cls, gp: KernelModel, row: Array, q: Array, columns: Array, some: list[int]) -> _Part:
        """The part of a process, for the weights q (n, 1) of one row and some serials."""
        rows = np.flatnonzero(np.isin(gp.examples.serials, some))
        at = {serial: i for i, serial in enumerate(gp.examples.serials[rows].tolist())}
        P, solved = gp.left_out.inverse_block(rows), gp.covariance.cross(row).T @ gp.solved
        return cls(gp, columns, rows, at, q[rows, 0], P, gp.mean(row)[0], solved)

    @property
    def stand_ins(self) -> Array:
        """Whether two candidates take each other's place, (m, m)."""
        d = np.diagonal(self.P)
        return np.asarray(self.P < 0) & (self.P**2 / np.outer(d, d) >= _STAND_INS)

    def lost(self, gone: _Ground) -> Array:
        """What the scores lose without some examples, (M,)."""
        some = [self.at[serial] for serial in gone if serial in self.at]
        gp, rows = self.gp, self.rows[some]
        if not some:
            return np.zeros(len(self.columns))
        if gp.bias and len(some) == len(gp.examples):
            # There is nothing to score with.
            return self.scores[self.columns]
        weights = np.linalg.solve(self.P[np.ix_(some, some)], self.q[some])
        # Values are in other units without these.
        rest = gp.targets.rest(np.isin(np.arange(len(gp.examples)), rows))
        if rest is None:
            return np.asarray(weights @ gp.coefficients[rows])[self.columns]
        units = replace(rest, mean=rest.mean[rows[0]], scale=rest.scale[rows[0]])
        mean = gp.targets.mixed(self.solved - weights @ gp.solved[rows], units)[0]
        return np.asarray(self.scores - units.mean - units.scale * mean)[self.columns]
