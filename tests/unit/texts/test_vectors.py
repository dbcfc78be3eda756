"""Vectors of texts: each by its text alone, of length one, and the same everywhere."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from tolerance import tolerance

from knowmore import GPClassifier
from knowmore.errors import InvalidInput, InvalidType
from knowmore.texts import TextVectors, text_folder
from knowmore.texts.describing import TextDescriber
from knowmore.texts.words import is_installed

TEXTS = [
    "Cheap pills, buy now!",
    "Minutes of the meeting",
    "Größe: 5 µm",
    "買い物",
    "!!!",
    "a a a b",
]
# Every model that is there.
MODELS = [None, "wordllama"] if is_installed() else [None]


def test_the_vector_of_a_text_depends_on_that_text_alone():
    for model in MODELS:
        vectors = TextVectors(model)
        alone = np.vstack([vectors.transform([text]) for text in TEXTS])
        assert np.array_equal(vectors.transform(TEXTS), alone)
        assert np.array_equal(vectors.transform(TEXTS[::-1])[::-1], alone)


def test_vectors_have_length_one():
    for model in MODELS:
        lengths = np.linalg.norm(TextVectors(model).transform(TEXTS), axis=1)
        np.testing.assert_allclose(lengths, 1, rtol=tolerance(np.eye(2)))


def test_letters_are_counted_by_their_definition():
    """A second way to the numbers: each run of letters by itself."""
    from collections import Counter

    from sklearn.utils import murmurhash3_32

    text, d = "Ab ab c", 32
    runs = Counter(
        part[i : i + size]
        for part in (" ab ", " ab ", " c ")
        for size in (2, 3, 4, 5)
        for i in range(len(part) - size + 1)
    )
    expected = np.zeros(d)
    for run, times in runs.items():
        hashed = murmurhash3_32(run, positive=True)
        sign = -1 if hashed & 2**30 else 1
        expected[hashed % 2**30 % d] += sign * (1 + np.log(times))
    found = TextVectors(letters=d).transform([text])[0]
    scale = np.linalg.norm(expected)
    np.testing.assert_allclose(found, expected / scale, atol=tolerance(np.eye(d)))


def test_these_numbers_never_change():
    """Files hold vectors: a change needs another version in the note of a model."""
    vector = TextVectors(letters=8).transform(["Good morning"])[0]
    assert vector.round(4).tolist() == [0, 0, -0.1118, -0.4472, -0.1118, -0.2236, 0.3354, 0.7826]


def test_case_and_width_of_letters_do_not_count_but_accents_do():
    same = TextVectors(letters=64).transform(["STRASSE \uff21\uff22\uff23", "strasse abc"])
    assert np.array_equal(same[0], same[1])
    other = TextVectors(letters=64).transform(["resume", "résumé"])
    assert not np.array_equal(other[0], other[1])


def test_a_text_without_letters_is_zero():
    assert not TextVectors().transform([" "]).any()


def test_any_model_of_sentences():
    lengths = TextVectors(model=lambda texts: [[len(text), 1.0] for text in texts], letters=0)
    np.testing.assert_allclose(
        lengths.transform(["a" * 3]), [[3 / 10**0.5, 1 / 10**0.5]], rtol=tolerance(np.eye(2))
    )


def test_it_is_a_transformer_of_scikit_learn():
    texts = ["buy pills", "cheap pills", "meeting at ten", "minutes of a meeting"]
    pipeline = make_pipeline(clone(TextVectors(letters=128)), GPClassifier())
    assert pipeline.fit(texts, ["spam", "spam", "ham", "ham"]).predict(["pills"]) == "spam"


@pytest.mark.parametrize(
    ("given", "texts", "kind", "message"),
    [
        ({"model": "bert"}, ["a"], InvalidInput, r"model='bert' is not known. Choose 'wordllama'"),
        ({"model": 3}, ["a"], InvalidType, r"model is an int. Give None, a name or a callable."),
        ({"letters": 0}, ["a"], InvalidInput, r"letters=0 and model=None leave no vector."),
        ({}, "a", InvalidType, r"A list of texts is needed, but a str was given. Give \[text\]."),
        ({}, {"a": 1}, InvalidType, r"A list of texts is needed, but a dict was given."),
        ({}, np.array("a"), InvalidType, r"A list of texts is needed, but an ndarray was given."),
        ({}, np.array([["a", "b"]]), InvalidInput, r"one column .* an ndarray of shape \(1, 2\)"),
        ({}, np.array([[["a"]]]), InvalidInput, r"ndarray of shape \(1, 1, 1\) was given. Choose"),
        ({}, [], InvalidInput, r"No text was given: the list of texts is empty."),
        ({}, ["a", 1], InvalidInput, r"Text 1 is int, not text."),
        ({}, ["a\0"], InvalidInput, r"Text 0 has a NUL character at 1, so it is no text."),
        ({}, ["\ud800"], InvalidInput, r"Text 0 has half a character \(a surrogate\) at 0."),
        (
            {"model": lambda texts: [1.0]},
            ["a"],
            InvalidInput,
            r"The model returned shape \(1,\) for 1 texts. It must return finite numbers,",
        ),
    ],
)
def test_errors(given, texts, kind, message):
    with pytest.raises(kind, match=message):
        TextVectors(**given).transform(texts)
    with pytest.raises(kind):
        TextVectors(**given).fit_transform(texts)


def test_what_is_no_list_of_texts_is_not_fitted():
    with pytest.raises(InvalidType, match="a str was given"):
        TextVectors().fit("a text")


_TABLES = {
    "pandas": ("DataFrame", "Series"),
    "polars": ("DataFrame", "Series"),
    "pyarrow": ("table", "array"),
}


@pytest.mark.parametrize("package", _TABLES)
def test_a_table_of_one_column_is_a_list(package):
    module, (table, column) = pytest.importorskip(package), _TABLES[package]
    texts = ["Win money", "The minutes", ""]
    X, make = TextVectors(letters=64).transform(texts), getattr(module, table)
    for given in (make({"body": texts}), getattr(module, column)(texts)):
        assert np.array_equal(TextVectors(letters=64).fit_transform(given), X)
    with pytest.raises(InvalidInput, match=r"of shape \(3, 2\) was given. Choose the column of"):
        TextVectors().transform(make({"body": texts, "kind": texts}))
    with pytest.raises(InvalidInput, match="Text 1 is "):
        TextVectors().transform(make({"body": ["a", None]}))


def test_an_array_of_one_column_is_a_list():
    texts = ["Win money", "The minutes"]
    column = np.array(texts)[:, None]
    assert np.array_equal(TextVectors().transform(column), TextVectors().transform(texts))


def test_a_note_of_other_vectors_is_refused():
    note, arrays = TextDescriber(letters=64).kept()
    assert not arrays
    assert TextDescriber.stored(note).about == note
    with pytest.raises(InvalidInput, match=r"other vectors of texts .* \(version 0, here 1\)"):
        TextDescriber.stored(note | {"version": 0})
    with pytest.raises(InvalidInput, match=r"vectors of texts by 'bert', which this version"):
        TextDescriber.stored(note | {"model": "bert"})


def test_other_words_are_refused():
    if not is_installed():
        pytest.skip("wordllama is not installed")
    note, _ = TextDescriber("wordllama").kept()
    with pytest.raises(
        InvalidInput, match=r"version of wordllama .* \(digest 00, here [0-9a-f]+\)"
    ):
        TextDescriber.stored(note | {"digest": "00"})


def test_a_folder_of_texts(tmp_path):
    for name, data in {"a/2.txt": "two", "a/1.txt": "\ufeffone", "b/x/3.TXT": "three"}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(data, encoding="utf-8")
    (tmp_path / "a/.hidden.txt").write_text("no")
    (tmp_path / "a/no.md").write_text("no")
    found = text_folder(tmp_path)
    assert found.ids.tolist() == ["a/1.txt", "a/2.txt", "b/x/3.TXT"]
    assert found.labels.tolist() == ["a", "a", "x"]
    assert found.X.tolist() == ["one", "two", "three"]
    (tmp_path / "a/4.txt").write_bytes(b"caf\xe9")
    with pytest.raises(InvalidInput, match=r"'a/4.txt', is not UTF-8: byte 3 is 0xe9. Save it as"):
        text_folder(tmp_path)
