"""Texts of three subjects, made up of words of each: enough for a small model."""

from __future__ import annotations

import csv

import numpy as np

_SPAM = "win money cash prize cheap pills offer free buy now click winner lottery"
_WORK = "meeting minutes agenda project budget deadline report team office review"
_HOME = "dinner garden mother weekend soup kitchen birthday cake children holiday"
_SPAM = "win money cash prize cheap pills offer free buy now click winner lottery"
_WORK = "meeting minutes agenda project budget deadline report team office review"
_HOME = "dinner garden mother weekend soup kitchen birthday cake children holiday"
SUBJECTS = {"spam": _SPAM.split(), "work": _WORK.split(), "home": _HOME.split()}
# Words that all subjects have.
COMMON = ["the", "a", "of", "and", "to", "we", "you", "for", "is", "with", "on", "please"]


def written(count=20, seed=0):
    """Texts and labels, `count` of each subject."""
    rng = np.random.default_rng(seed)
    texts, labels = [], []
    for label, words in SUBJECTS.items():
        for _ in range(count):
            some = [*rng.choice(words, 6), *rng.choice(COMMON, 4)]
            rng.shuffle(some)
            texts.append(" ".join(some).capitalize() + ".")
            labels.append(label)
    return texts, labels


def write_table(path, texts, labels, first=0):
    """A CSV table with ids, texts, labels, and a column that does not matter."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow(["nr", "body", "kind", "length"])
        for i, (text, label) in enumerate(zip(texts, labels, strict=True)):
            out.writerow([f"t{first + i}", text, label, len(text)])
    return path
