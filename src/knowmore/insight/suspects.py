"""The label audit: examples whose label the others do not believe.

Leave-one-out says of each example what the model would make of it had it never seen it. Where that
prefers another class to the label, either the label is wrong or the example is a hard one.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from knowmore.answers import Answer
from knowmore.arrays import Array, read_only
from knowmore.concurrency import cached_property
from knowmore.edits import Id
from knowmore.errors import InvalidInput
from knowmore.insight.asking import AnyModel, asked, machine, of_classes, unseen
from knowmore.models import GP, LSSVM, NPlusOne, class_probabilities

# Examples that are named as speaking against a label.
_NAMED = 3
# Suspects that are solved for at a time.
_BLOCK = 128


@final
@dataclass(frozen=True, eq=False, repr=False)
class Suspects(Answer):
    """The k of n examples whose label leave-one-out does not believe, the most suspicious first.

    ids : (k,)
    labels : (k,), as they are held
    preferred : (k,), the class that the other examples give the largest score
    margin : (k,), by how much that score is above the one of the label; above zero
    rows : (k,), where they stand among the examples of the model
    scores, variance : (n, M) and (n,), what the others say of all examples, suspect or not, as of
        new rows
    silent : (s,), the ids of examples of which the others say nothing, as when none is near: their
        labels are neither suspect nor confirmed
    model : the frozen model that was asked; what happens to the estimator later is nothing to it

    Only those that are not believed are listed. Who is alone in its class is, as no other example
    speaks for that class; unless it is so far from all that nothing is said of it.
    """

    ids: Array
    labels: Array
    preferred: Array
    margin: Array
    rows: Array
    scores: Array
    variance: Array
    silent: Array
    model: AnyModel

    @cached_property
    def contradicting(self) -> tuple[tuple[Id, ...], ...]:
        """For each suspect the ids of up to three examples that speak most against its label.

        They are of the preferred class and contribute most to the margin. This solves for each
        suspect, so it is done when it is first asked for.
        """
        names, classes = self.model.examples.names, self.model.examples.labels
        found: list[tuple[Id, ...]] = []
        for begin in range(0, len(self.rows), _BLOCK):
            part = slice(begin, begin + _BLOCK)
            C = to_margin(self.model, self.rows[part], self.preferred[part])
            C[classes[:, None] != self.preferred[part]] = 0
            for c in C.T:
                strongest = np.argsort(-c, kind="stable")[:_NAMED]
                found.append(tuple(names[i] for i in strongest if c[i] > 0))
        return tuple(found)

    @cached_property
    def duplicates(self) -> tuple[tuple[Id, ...], ...]:
        """The ids of examples that have the very same features, but not all the same label."""
        examples = self.model.examples
        alike = defaultdict(list)
        # Adding zero makes one of the two zeros.
        for i, x in enumerate(examples.X + 0.0):
            alike[x.tobytes()].append(i)
        groups = [g for g in alike.values() if len(np.unique(examples.labels[g])) > 1]
        return tuple(tuple(examples.names[i] for i in g) for g in groups)

    @cached_property
    def probabilities(self) -> Array:
        """The probabilities that the other examples give the classes of each, (n, M)."""
        return read_only(class_probabilities(self.scores, self.variance))

    def for_cleanlab(self) -> dict[str, Array]:
        """The keywords `labels` (n,) and `pred_probs` (n, M) of cleanlab's functions.

        `cleanlab.filter.find_label_issues(**suspects(model).for_cleanlab())` is cleanlab's verdict
        without its folds: labels are columns, rows are in the order of `ids_`.
        """
        codes = np.searchsorted(self.model.targets.names, self.model.examples.labels)
        return {"labels": codes, "pred_probs": self.probabilities}

    def to_pandas(self) -> Any:
        """The suspects as a pandas DataFrame, with the ids of those that speak against them."""
        return super().to_pandas().assign(contradicting=list(self.contradicting))

    def _columns(self) -> dict[str, Array]:
        return {
            "id": self.ids,
            "label": self.labels,
            "preferred": self.preferred,
            "margin": self.margin,
        }

    def _summary(self) -> str:
        told = f"{len(self.ids)} of {len(self.model.examples)} labels are not believed"
        return told + f", and of {len(self.silent)} nothing is said" * (len(self.silent) > 0)


def suspects(model: Any) -> Suspects:
    """Examples of a classifier whose label leave-one-out does not believe, ranked.

    model : a fitted GPClassifier, LSSVMClassifier or NPlusOneClassifier

    Nothing is fitted: it takes about as long as one factorisation of the covariance, and follows
    every edit. `relabel` or `remove` what turns out to be wrong, and ask again.

    Examples
    --------
    >>> from knowmore import GPClassifier
    >>> clf = GPClassifier().fit([[0.0], [0.2], [0.4], [0.6], [5.0], [5.2], [5.4]], list("aababbb"))
    >>> found = suspects(clf)
    >>> found
    Suspects: 1 of 7 labels are not believed
    id  label  preferred  margin
     2      b          a   1.784
    >>> found.contradicting
    ((3, 1, 0),)
    >>> len(suspects(clf.relabel(found.ids, found.preferred)).ids)
    0
    """
    frozen: AnyModel = asked(model, GP, LSSVM, NPlusOne, classes=True)
    of_classes(model, "suspects()", "leave_one_out()")
    names, labels = frozen.targets.names, frozen.examples.labels
    if len(names) < 2:
        raise InvalidInput(
            f"All labels are {names[0].item()!r}: there is no other class that leave-one-out "
            f"could prefer. Add examples of another class first."
        )
    (scores, variance), silent = unseen(frozen), frozen.verdicts().silent
    own = scores[np.arange(len(labels)), np.searchsorted(names, labels)]
    # A bias prefers the more frequent class also where nothing is said of the example itself.
    margin = np.where(silent, 0, scores.max(axis=1) - own)
    rows = np.argsort(-margin, kind="stable")[: int((margin > 0).sum())]
    return Suspects(
        ids=frozen.examples.ids[rows],
        labels=labels[rows],
        preferred=names[scores[rows].argmax(axis=1)],
        margin=margin[rows],
        rows=rows,
        scores=scores,
        variance=variance,
        silent=frozen.examples.ids[silent],
        model=frozen,
    )


def to_margin(model: AnyModel, rows: Array, preferred: Array) -> Array:
    """What each example contributes to the margin of those in `rows`, (n, k).

    Let d = t^(p) - t^(l) for the preferred class and the label of example s, and a = K~^-1 d.
    Without s the coefficients of the others are a_i - P_is a_s / P_ss (block inversion), and the
    margin of s is the sum of a_i kappa(x_i, x_s) over them; besides what a bias or a source add.
    With a bias P is the leading block of the inverse of the bordered matrix.
    """
    svm = machine(model)
    names, labels = svm.targets.names, svm.examples.labels[rows]
    A, at = svm.coefficients, np.arange(len(rows))
    a = A[:, np.searchsorted(names, preferred)] - A[:, np.searchsorted(names, labels)]
    E = np.zeros((len(A), len(rows)))
    E[rows, at] = 1
    P, _ = svm.eliminated(E, svm.covariance.factor.solve(E).astype(float))
    a = a - P * (a[rows, at] / P[rows, at])
    a[rows, at] = 0
    return np.asarray(a * svm.covariance.cross(svm.examples.X[rows]))
