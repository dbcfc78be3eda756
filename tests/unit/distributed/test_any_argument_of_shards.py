"""Shards and files of sums: any argument at all gives a model, or an error of the library."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from anything import X, Y, assert_sound

from knowmore import LinearGPClassifier
from knowmore.distributed import eigenspace, fit, load_sums, read, refresh_sums, save_sums

LINEAR = LinearGPClassifier()
FITTED = LinearGPClassifier().fit(X, Y)
# Functions of a value; the folder they run in has the rows "day.npz" and the sums "all.kms".
ENTRIES = {
    "read": read,
    "read-name": partial(read, "day.npz"),
    "fit-estimator": lambda value: fit(value, [X], [Y]),
    "fit-X": lambda value: fit(LINEAR, value),
    "fit-shard": lambda value: fit(LINEAR, [value], [Y]),
    "fit-y": lambda value: fit(LINEAR, [X], value),
    "fit-target": lambda value: fit(LINEAR, [X], [value]),
    "fit-split_every": lambda value: fit(LINEAR, [X], [Y], split_every=value),
    "fit-progress": lambda value: fit(LINEAR, [X], [Y], progress=value),
    "fit-load": lambda value: fit(LINEAR, ["day.npz"], load=value),
    "eigenspace-X": eigenspace,
    "eigenspace-shard": lambda value: eigenspace([value]),
    "eigenspace-rank": partial(eigenspace, [X]),
    "save_sums-path": lambda value: save_sums(value, FITTED),
    "save_sums-estimator": partial(save_sums, "new.kms"),
    "save_sums-source": lambda value: save_sums("new.kms", FITTED, source=value),
    "save_sums-label": lambda value: save_sums("new.kms", FITTED, label=value),
    "load_sums-path": load_sums,
    "load_sums-estimator": partial(load_sums, "all.kms"),
    "load_sums-fresh": lambda value: load_sums("all.kms", fresh=value),
    "refresh_sums-folder": refresh_sums,
    "refresh_sums-label": partial(refresh_sums, "."),
    "refresh_sums-estimator": lambda value: refresh_sums(".", estimator=value),
    "refresh_sums-again": lambda value: refresh_sums(".", again=value),
    "refresh_sums-progress": lambda value: refresh_sums(".", progress=value),
}


@pytest.mark.parametrize("entry", ENTRIES)
def test_any_argument_is_answered_or_refused_in_words(entry, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("day.npz", X=X, y=Y)
    save_sums("all.kms", FITTED)
    assert_sound(ENTRIES[entry])
