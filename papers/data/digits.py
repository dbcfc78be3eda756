"""Pictures of digits."""

from __future__ import annotations

from sklearn.datasets import load_digits

from knowmore.examples import Examples


def digits() -> Examples:
    """The handwritten digits that come with scikit-learn: 1797 of 8 x 8 pixels.

    X (1797, 64) are the grey levels row by row, divided by 16 and so in [0, 1]; labels are 0 to 9,
    ids the places in scikit-learn's order. E. Alpaydin and C. Kaynak, Optical Recognition of
    Handwritten Digits, UCI, 1998.
    """
    X, y = load_digits(return_X_y=True)
    return Examples.of(X / 16, y)
