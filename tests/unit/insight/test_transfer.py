"""The table and the bars of a new class say what beta says."""

from __future__ import annotations

import matplotlib.pyplot
import numpy as np
import pytest
from sklearn.datasets import load_iris
from tolerance import GAP

from knowmore import GPClassifier, KnowmoreError, LSSVMClassifier, NPlusOneClassifier
from knowmore.insight import TransferDisplay, transfer

matplotlib.use("agg")

X, y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])[y]
KNOWN = LSSVMClassifier().fit(X[:100], NAMES[:100])
CLF = NPlusOneClassifier(KNOWN).fit(X[::10], NAMES[::10])


def test_the_table_has_beta_in_order():
    found = transfer(CLF)
    beta = dict(zip(CLF.source_.classes_.tolist(), CLF.beta_.tolist(), strict=True))
    assert found.new == "virginica"
    assert dict(zip(found.classes.tolist(), found.weights.tolist(), strict=True)) == beta
    assert (np.diff(found.weights) <= 0).all()
    assert 0 <= found.gap <= GAP * max(found.loss, 1)
    table = found.to_pandas()
    assert table.columns.tolist() == ["class", "weight"]
    assert "'virginica' from 2 known classes" in repr(found)


def test_the_bars_are_the_table():
    _, ax = matplotlib.pyplot.subplots()
    display = TransferDisplay.from_estimator(CLF, shown=1, ax=ax)
    assert [bar.get_width() for bar in display.ax_.patches] == transfer(CLF).weights[:1].tolist()
    labels = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert labels == transfer(CLF).classes[:1].tolist()
    matplotlib.pyplot.close("all")


def test_mistakes():
    with pytest.raises(KnowmoreError, match="for a fitted NPlusOneClassifier"):
        transfer(GPClassifier().fit(X, y))
    with pytest.raises(KnowmoreError, match=r"^shown=0. Give a whole number of at least 1.$"):
        TransferDisplay.from_estimator(CLF, shown=0)
