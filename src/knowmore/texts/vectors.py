"""Vectors of texts: each depends on its text alone, so nothing is learnt, and nothing to forget.

Two blocks of unit length stand side by side. The letters of a text are counted: all runs of two to
five letters within its words, 1 + log(times) each, which a hash adds to one of the columns with a
sign (Weinberger et al. 2009). So a typing error changes little, and every language has vectors. The
other block is what a model makes of the text, by default the mean of the vectors of its words.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import murmurhash3_32

from knowmore._base import Array, a_type, whole_number
from knowmore.errors import InvalidInput, InvalidType
from knowmore.texts.reading import unusable
from knowmore.texts.words import WORDLLAMA, word_means

# The lengths of the runs of letters that are counted.
_SHORTEST, _LONGEST = 2, 5
# The bit of a hash that gives the sign; the lower ones give the column.
_SIGN: Final = 1 << 30


@final
@dataclass(eq=False, repr=False)
class TextVectors(TransformerMixin, BaseEstimator):
    """The vector of each text, of length one, by its letters and by a model.

    Parameters
    ----------
    model : None, letters alone; "wordllama", the mean of 256 numbers for each piece of a word,
        which the package of that name brings (extra `texts`; nothing is downloaded); or a callable
        that takes a list of n texts and returns (n, m), such as `SentenceTransformer(...).encode`.
        The `knowmore` command takes "wordllama" wherever it is installed; Python only if it is
        named, so that the same code has the same vectors everywhere
    letters : the number of columns that runs of letters are counted in; 0: none are counted

    A text without one letter or word has a vector of zeros. The order of words does not count.

    Examples
    --------
    >>> texts = ["Cheap pills, buy now!", "Minutes of the meeting", "Buy cheap pills"]
    >>> vectors = TextVectors().fit_transform(texts)
    >>> (vectors @ vectors.T).round(1)
    array([[1. , 0.1, 0.8],
           [0.1, 1. , 0.1],
           [0.8, 0.1, 1. ]])
    """

    model: str | Callable[[list[str]], Any] | None = None
    letters: int = 1024

    def fit(self, X: Any, y: Any = None) -> TextVectors:
        """Learn nothing; what is no list of texts is an error."""
        self._check()
        _listed(X)
        return self

    def transform(self, X: Any) -> Array:
        """The vectors of n texts, float64 (n, letters + m).

        X : a list or an array of texts, a column, or a table of one column, of pandas, polars or
            pyarrow
        """
        self._check()
        texts = _listed(X)
        blocks = [_unit(_counted(texts, self.letters))] if self.letters else []
        if self.model is not None:
            blocks.insert(0, _unit(self._by_model(texts)))
        return _unit(np.hstack(blocks))

    def _by_model(self, texts: list[str]) -> Array:
        if isinstance(self.model, str):
            return word_means(texts)
        assert self.model is not None
        found = np.asarray(self.model(texts), dtype=float)
        if found.ndim != 2 or len(found) != len(texts) or not np.isfinite(found).all():
            raise InvalidInput(
                f"The model returned shape {found.shape} for {len(texts)} texts. It must return "
                f"finite numbers, (n, m)."
            )
        return found

    def _check(self) -> None:
        whole_number("letters", self.letters, 0)
        if isinstance(self.model, str) and self.model != WORDLLAMA:
            raise InvalidInput(
                f"model={self.model!r} is not known. Choose {WORDLLAMA!r}, None, or a callable of "
                f"a list of texts."
            )
        if self.model is not None and not (isinstance(self.model, str) or callable(self.model)):
            raise InvalidType(f"model is {a_type(self.model)}. Give None, a name or a callable.")
        if self.model is None and not self.letters:
            raise InvalidInput("letters=0 and model=None leave no vector. Give one of them.")

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.string, tags.input_tags.two_d_array = True, False
        return tags


def _listed(X: Any) -> list[str]:
    """The texts of a list or of the only column; one alone, or what is no text, is an error."""
    shape = getattr(X, "shape", None)
    if (
        isinstance(X, (str, bytes, Mapping))
        or shape == ()
        or not (shape or isinstance(X, Iterable))
    ):
        raise InvalidType(f"A list of texts is needed, but {a_type(X)} was given. Give [text].")
    if shape is not None and len(shape) > 1:
        # Iterating over a table gives the names of its columns.
        if len(shape) > 2 or shape[1] != 1:
            raise InvalidInput(
                f"A list of texts or one column of them is needed, but {a_type(X)} of shape "
                f"{tuple(shape)} was given. Choose the column of texts, as table[name]."
            )
        X = np.asarray(X, dtype=object).reshape(-1)
    texts = X.to_pylist() if hasattr(X, "to_pylist") else [*X]
    if not texts:
        raise InvalidInput("No text was given: the list of texts is empty.")
    for i, text in enumerate(texts):
        why = unusable(text)
        if why is not None and not (isinstance(text, str) and not text.strip()):
            raise InvalidInput(f"Text {i} {why}")
    return [str(text) for text in texts]


def _unit(X: Array) -> Array:
    """Rows of length one; rows of zeros stay."""
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    return np.asarray(X / np.where(lengths > 0, lengths, 1.0))


def _counted(texts: list[str], d: int) -> Array:
    """The counts of runs of letters, (n, d), with signs."""
    X, known = np.zeros((len(texts), d)), dict[str, Array]()
    for row, text in zip(X, texts, strict=True):
        words = Counter(unicodedata.normalize("NFKC", text).casefold().split())
        hashes, times = [], []
        for word, count in words.items():
            if word not in known:
                known[word] = _runs(word)
            hashes.append(known[word])
            times.append(np.full(len(known[word]), count))
        if not words:
            continue
        runs, at = np.unique(np.concatenate(hashes), return_inverse=True)
        counts = np.bincount(at, np.concatenate(times))
        values = (1 + np.log(counts)) * np.where(runs & _SIGN, -1, 1)
        row += np.bincount((runs & (_SIGN - 1)) % d, values, minlength=d)
    return X


def _runs(word: str) -> Array:
    """The hashes of all runs of letters in a word between two blanks."""
    word = f" {word} "
    runs = [
        word[i : i + size]
        for size in range(_SHORTEST, _LONGEST + 1)
        for i in range(len(word) - size + 1)
    ]
    return np.array([murmurhash3_32(run, positive=True) for run in runs], dtype=np.int64)
