"""The label audit: examples whose label the others contradict.

Leave-one-out predicts each example by a model that never saw it. Where that prefers another class
to the label, either the label is wrong or the example is a hard one. How likely it is wrong follows
from a model of labels (`mislabelling`): some were replaced by any, drawn blindly, some by a class
that is alike, with chances that the labels of all examples show. Few contradictions of the second
kind count as hard examples, many as wrong labels.

Wrong labels mislead the others, too, and the more so the closer a model follows its examples. So
two are asked: the model, and one of the same examples with ten times the noise. The one with less
doubt decides.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from scipy.special import expit

from knowmore._base import Array, Id, TableAnswer, as_ids, cached_property, ids_of
from knowmore.errors import InvalidInput
from knowmore.insight.asking import (
    EXPLAINABLE,
    WITH_VARIANCE,
    asked,
    last_step,
    left_out,
    processes,
    removal_weights,
)
from knowmore.models import (
    KernelModel,
    Trial,
    Unseen,
    class_probabilities,
    columns_in,
    mislabelling,
    one_vs_all,
    robust_model,
    unseen,
)

# How many contradicting examples are named for a label.
_NAMED = 3
# How many suspects are solved for at a time.
_BLOCK = 128
# How likely a label is wrong that is listed, at least.
_LEAST = 0.2


@final
@dataclass(frozen=True, eq=False, repr=False)
class Suspects(TableAnswer):
    """The k of n examples whose label is likely to be wrong, the most suspicious first.

    ids : (k,)
    labels : (k,), the labels held
    preferred : (k,), the class that the other examples give the largest score
    doubt : (k,), the chance that the label is wrong, at least one in five; it decides the order
    margin : (k,), by how much the preferred class's score exceeds the label's; above zero
    rows : (k,), their positions among the examples of the model whose weight is above zero, or
        among the rows given
    codes : (n,), the columns of the labels of all examples
    scores, variance : (n, M) and (n,), what the others predict for every example, suspect or not,
        as for a new row
    probabilities : (n, M), those that the others give the classes of every example, as sharp as
        those of `predict_proba`. The others of its class stand in for each example
    doubts : (n,), the chance that the label is wrong, of every example; zero if it cannot be judged
    rate : the part of the labels that is wrong, as far as the model can tell; 1.5 % of the examples
        may be hard ones, whose labels are right
    silent : (s,), the ids of examples that the others cannot judge, as when none is near: their
        labels are neither suspect nor confirmed
    model : the frozen model that was asked; later edits of the estimator do not change it

    Of the only example of a class the label is doubted as no other supports that class; unless it
    is so far from all others that it cannot be judged. `contradicting` and `duplicates` are for
    models that hold their examples.
    """

    ids: Array
    labels: Array
    preferred: Array
    margin: Array
    rows: Array
    codes: Array
    scores: Array
    variance: Array
    probabilities: Array
    doubts: Array
    rate: float
    silent: Array
    model: Any

    @cached_property
    def contradicting(self) -> tuple[tuple[Id, ...], ...]:
        """For each suspect the ids of up to three examples that speak most against its label.

        They are of the preferred class and contribute most to the margin. This takes a solve for
        each suspect, so it is done when first asked for.
        """
        model, k = self._with_examples, len(self.rows)
        parts = (slice(begin, begin + _BLOCK) for begin in range(0, k, _BLOCK))
        found = (_contradicting(model, self.rows[part], self.preferred[part]) for part in parts)
        return tuple(ids for some in found for ids in some)

    @cached_property
    def duplicates(self) -> tuple[tuple[Id, ...], ...]:
        """The ids of examples that have exactly the same features, but not all the same label."""
        model = self._with_examples
        examples, same = model.examples.counted, defaultdict(list)
        X = model.covariance.X if model.has_gram else examples.X
        # Adding zero turns -0.0 into 0.0.
        for i, x in enumerate(X + 0.0):
            same[x.tobytes()].append(i)
        groups = [g for g in same.values() if len(np.unique(examples.labels[g])) > 1]
        return tuple(tuple(examples.names[i] for i in g) for g in groups)

    @property
    def _with_examples(self) -> Any:
        """The model, if it holds examples."""
        if not self.model.keeps_rows:
            raise InvalidInput(
                "A linear model holds no rows to name. Fit a GPClassifier to some, and ask that."
            )
        return self.model

    @property
    def doubt(self) -> Array:
        """The chance that the label of each suspect is wrong, (k,)."""
        return np.asarray(self.doubts[self.rows])

    def without(self, ids: Any) -> Suspects:
        """The answer without these suspects, such as `kept_` of a store; other ids are ignored."""
        leaving = set(as_ids(ids, ordered=False))
        return self.part([i for i, one in enumerate(self.ids.tolist()) if one not in leaving])

    def part(self, which: Any) -> Suspects:
        """The answer with some of the suspects: a slice or positions in `ids`."""
        names = "ids", "labels", "preferred", "margin", "rows"
        return replace(self, **{name: getattr(self, name)[which] for name in names})

    def for_cleanlab(self) -> dict[str, Array]:
        """The keywords `labels` (n,) and `pred_probs` (n, M) of cleanlab's functions.

        `cleanlab.filter.find_label_issues(**suspects(model).for_cleanlab())` is cleanlab's verdict
        without its folds: labels are column numbers, rows are in the order of `ids_`, or as given.
        """
        return {"labels": self.codes, "pred_probs": self.probabilities}

    def to_pandas(self) -> Any:
        """The suspects as a pandas DataFrame, with the ids of the examples that contradict them.

        A linear model holds no examples: there are none of these ids.
        """
        table = super().to_pandas()
        if not self.model.keeps_rows:
            return table
        return table.assign(contradicting=list(self.contradicting))

    def _columns(self) -> dict[str, Array]:
        columns = self.ids, self.labels, self.preferred, self.doubt, self.margin
        return dict(zip(("id", "label", "preferred", "doubt", "margin"), columns, strict=True))

    def _summary(self) -> str:
        silent = f", {len(self.silent)} cannot be judged" if len(self.silent) else ""
        return f"{len(self.ids)} of {len(self.codes)} labels are suspect{silent}"


def suspects(
    model: Any, X: Any = None, y: Any = None, *, sample_weight: Any = None, ids: Any = None
) -> Suspects:
    """Examples of a classifier whose label is likely to be wrong, by leave-one-out, ranked.

    Parameters
    ----------
    model : a fitted GPClassifier, LSSVMClassifier, NPlusOneClassifier, ForestGPClassifier or
        LinearGPClassifier
    X, y, sample_weight : only for a LinearGPClassifier that keeps no rows: rows that it has
        learnt, all or some, as they were learnt. They are read in blocks, once
    ids : names for these rows; default: the index of a table, or their numbers

    Notes
    -----
    It takes about as long as two factorisations of the covariance, and the second one's memory; in
    a forest as long as one of all leaves. It follows every edit, and `relabel` without factorising
    anew: `relabel` or `remove` what turns out to be wrong, and ask again.

    Examples
    --------
    >>> from knowmore import GPClassifier
    >>> clf = GPClassifier().fit([[0.0], [0.2], [0.4], [0.6], [5.0], [5.2], [5.4]], list("aababbb"))
    >>> found = suspects(clf)
    >>> found
    Suspects: 1 of 7 labels are suspect
    id  label  preferred   doubt  margin
     2      b          a  0.6659    1.73
    >>> found.contradicting
    ((3, 1, 0),)
    >>> len(suspects(clf.relabel(found.ids, found.preferred)).ids)
    0
    """
    frozen = asked(model, EXPLAINABLE, "suspects()", "leave_one_out()")
    how = "Give rows that it has learnt: suspects(model, X, y)."
    given = ids_of(ids, X=X, y=y, sample_weight=sample_weight)
    left = left_out(model, frozen, how, X, y, sample_weight, given)
    if len(left.names) < 2:
        only = left.names[0].item()
        raise InvalidInput(f"All labels are {only!r}. Add examples of another class.")
    return _judged(last_step(model), frozen, left)


def _judged(estimator: Any, frozen: Any, left: Unseen) -> Suspects:
    """The suspects among examples that were left out."""
    labels, scores = left.labels, left.scores
    gaussian = isinstance(estimator, WITH_VARIANCE)
    trial, temperature = left.trial(gaussian=gaussian), estimator.model_temperature(frozen)
    odds, rate = _odds(trial)
    if frozen.has_gram and frozen.coding == one_vs_all:
        odds = np.minimum(odds, _odds(unseen(robust_model(frozen)).trial(gaussian=gaussian))[0])
    # A bias prefers the more frequent class even where no other example is near.
    own = scores[np.arange(len(labels)), left.codes]
    margin = np.where(left.silent, 0, scores.max(axis=1) - own)
    doubts = expit(odds)
    suspect = (doubts >= _LEAST) & (margin > 0)
    order = np.lexsort((-margin, -odds))
    rows = order[suspect[order]]
    return Suspects(
        ids=left.ids[rows],
        labels=labels[rows],
        preferred=left.names[scores[rows].argmax(axis=1)],
        margin=margin[rows],
        rows=rows,
        codes=left.codes,
        scores=scores,
        variance=left.variance,
        probabilities=class_probabilities(trial.completed, trial.variance, temperature),
        doubts=doubts,
        rate=rate,
        silent=left.ids[left.silent],
        model=frozen,
    )


def _odds(trial: Trial) -> tuple[Array, float]:
    """The log odds of each label being wrong, (n,), minus infinity if silent; and the rate.

    The rate is that of the examples that tell; of all that are judged if these have one class.
    """
    judged, logs = ~trial.silent, trial.logs
    telling = trial.telling if len(np.unique(trial.codes[trial.telling])) > 1 else judged
    odds = np.full(len(logs), -np.inf)
    if not telling.any():
        return odds, 0.0
    found = mislabelling(logs[telling], trial.codes[telling])
    odds[judged] = found.odds(logs[judged], trial.codes[judged])
    return odds, found.rate


def _contradicting(model: Any, rows: Array, preferred: Array) -> Iterator[tuple[Id, ...]]:
    """Ids of the examples that speak most for the preferred class of each of `rows` (k,)."""
    examples = model.examples.counted
    names, serials = examples.names, examples.serials
    spoken: list[list[tuple[Array, Array]]] = [[] for _ in rows]
    for tree in processes(model, examples.X[rows], [names[row] for row in rows]):
        for gp, some in tree:
            here = np.searchsorted(gp.examples.serials, serials[rows[some]])
            C = margin_contributions(gp, here, preferred[some])
            agree = gp.examples.labels[:, None] == preferred[some]
            at = np.searchsorted(serials, gp.examples.serials)
            for suspect, c, own in zip(some, C.T, agree.T, strict=True):
                spoken[suspect].append((at[own], c[own]))
    for each in spoken:
        # An example may speak in several trees.
        at, c = (np.concatenate(part) for part in zip(*each, strict=True))
        speakers, which = np.unique(at, return_inverse=True)
        total = np.bincount(which, c)
        strongest = np.argsort(-total, kind="stable")[:_NAMED]
        yield tuple(names[speakers[i]] for i in strongest if total[i] > 0)


def margin_contributions(model: KernelModel, rows: Array, preferred: Array) -> Array:
    """Contributions of all examples to the margins of the examples in `rows`, (n, k).

    Let d = t^(p) - t^(l) for the preferred class and the label of example s, and a = K~^-1 d.
    The margin of s is the sum of a_i kappa(x_i, x_s) over the others, with their coefficients
    without s, plus what a bias or a source adds.
    """
    own, A, at = model.examples.labels[rows], model.coefficients, np.arange(len(rows))
    a = A[:, columns_in(model, preferred)] - A[:, columns_in(model, own)]
    a = a - removal_weights(model, rows) * a[rows, at]
    a[rows, at] = 0
    return np.asarray(a * model.covariance.cross(model.examples.X[rows]))
