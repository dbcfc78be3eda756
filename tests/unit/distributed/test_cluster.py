"""A real cluster of processes, and one that loses a worker in the middle of the work."""

from __future__ import annotations

import logging
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import psutil
import pytest
from distributed import Client, LocalCluster
from same_forest import assert_same_forest
from tolerance import assert_models

from knowmore import EigenspacePCA, ForestGPClassifier, KnowmoreError, LinearGPClassifier
from knowmore.distributed import eigenspace, fit, refresh_sums

X = np.random.default_rng(0).normal(size=(96, 5))
PARTS = np.array_split(X, 12)
PATIENCE = 120

# On a crowded machine a folder may take its time: that is no failure.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:Creating scratch directories:UserWarning"),
]


@contextmanager
def two_workers(folder):
    """A cluster of two workers in processes of their own, and a client."""
    # Its own port and folder; no limit of memory on a crowded machine; no word of lost workers.
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            scheduler_kwargs={"dashboard_address": ":0"},
            local_directory=str(folder),
            memory_limit=0,
            silence_logs=logging.CRITICAL + 1,
        ) as cluster,
        Client(cluster),
    ):
        yield cluster


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with two_workers(tmp_path_factory.mktemp("dask")) as cluster:
        yield cluster


@pytest.fixture
def mortal(tmp_path_factory):
    """A cluster to kill a worker of: on a crowded machine it may not get another in time."""
    with two_workers(tmp_path_factory.mktemp("dask")) as cluster:
        yield cluster


@pytest.fixture
def files(tmp_path):
    paths = [tmp_path / f"{k}.npy" for k in range(len(PARTS))]
    for path, part in zip(paths, PARTS, strict=True):
        np.save(path, part)
    return paths


def wait_until(true):
    """Look again and again; after a long while something is broken, and the test says so."""
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_the_active_client_does_the_work(cluster, files, tmp_path, capfd):
    def load(path):
        (tmp_path / f"{path.name} by {os.getpid()}").touch()
        return np.load(path)

    assert_models(eigenspace(files, load=load), X, edits=13)
    assert capfd.readouterr() == ("", "")
    workers = {int(path.name.split()[-1]) for path in tmp_path.glob("* by *")}
    assert workers
    assert os.getpid() not in workers
    pca = fit(EigenspacePCA(), files, progress=True)
    assert_models(pca.eigenspace_, X, edits=13)
    assert "% Completed" in capfd.readouterr().out


@pytest.mark.parametrize("progress", [False, True])
def test_errors_arrive_as_they_are(cluster, files, progress):
    files[7].unlink()
    with pytest.raises(KnowmoreError, match=r"^The file '.*7.npy' .*No such file or directory"):
        eigenspace(files, progress=progress)
    with pytest.raises(KnowmoreError, match=r"^Shard 0 and Shard 1 do not go together: "):
        eigenspace([X, X[:, :2]], progress=progress)


REPEATED = [(X, np.arange(96) % 2, None, np.arange(96))] * 2
MISTAKES = {
    "a shard": lambda at: eigenspace([X, X * np.nan]),
    "two shards": lambda at: fit(LinearGPClassifier(), [X, X[:, :2]], [X[:, 0] > 0] * 2),
    "a shard of a forest": lambda at: fit(ForestGPClassifier(), [X], [None]),
    "ids of a forest": lambda at: fit(ForestGPClassifier(capacity=8), REPEATED),
    "a folder": lambda at: (np.savez(at / "0.npz", X=X), refresh_sums(at)),
}


def test_workers_are_silent_about_mistakes_of_users(tmp_path, capfd):
    with (
        LocalCluster(
            n_workers=1,
            threads_per_worker=1,
            dashboard_address=None,
            local_directory=str(tmp_path / "dask"),
            memory_limit=0,
        ) as cluster,
        Client(cluster),
    ):
        for name, mistake in MISTAKES.items():
            with pytest.raises(KnowmoreError):
                mistake(tmp_path)
            assert "Traceback" not in capfd.readouterr().err, name


def test_an_error_ends_the_work_at_once(cluster, files, tmp_path):
    def load(path):
        if path.stem == "0":
            return np.full((1, 5), np.nan)
        time.sleep(0.2)
        (tmp_path / f"{path.name} was read").touch()
        return np.load(path)

    with pytest.raises(KnowmoreError, match=r"0.npy': X contains NaN"):
        eigenspace(files, load=load)
    assert len([*tmp_path.glob("* was read")]) < len(files) - 1


def killed_in_the_middle(work, tmp_path):
    """Result of `work(load)` if a worker is killed while it reads a file of the second half.

    The first half is learnt, in part by the worker that is killed.
    """
    go_on = tmp_path / "go on"

    def load(path):
        (tmp_path / f"{path.name} by {os.getpid()}").touch()
        while int(path.stem) >= 6 and not go_on.exists():
            time.sleep(0.01)
        return np.load(path)

    def began(stem):
        return {int(path.name.split()[-1]): path for path in tmp_path.glob(f"{stem}.npy by *")}

    def busy():
        return {pid: k for k in range(6, 12) for pid in began(k)}

    with ThreadPoolExecutor(1) as pool:
        try:
            whole = pool.submit(work, load)
            wait_until(lambda: len(busy()) == 2 or whole.done())
            assert not whole.done(), whole
            victim, shard = busy().popitem()
            process = psutil.Process(victim)
            os.kill(victim, signal.SIGKILL)
            wait_until(lambda: not process.is_running() or process.status() == psutil.STATUS_ZOMBIE)
        finally:
            go_on.touch()
        result = whole.result(PATIENCE)
    again = set(began(shard)) - {victim}
    assert again, "the shard that was being read was read again, by another process"
    return result


def test_a_worker_that_dies_takes_nothing_with_it(mortal, files, tmp_path):
    whole = killed_in_the_middle(lambda load: eigenspace(files, load=load), tmp_path)
    assert_models(whole, X, edits=13)


def test_a_worker_that_dies_does_not_change_a_bit(mortal, files, tmp_path):
    """The worker dies in the second pass, which sums."""
    labels = np.arange(len(X)) % 3
    shards = np.array_split(labels, len(PARTS))

    def work(load):
        def load_again(path):
            if (surveyed := path.with_suffix(".surveyed")).exists():
                return load(path)
            surveyed.touch()
            return np.load(path)

        return fit(LinearGPClassifier(), files, shards, load=load_again)

    whole = killed_in_the_middle(work, tmp_path)
    assert whole.digest() == LinearGPClassifier().fit(X, labels).digest()


@pytest.mark.parametrize("weighted", [False, True])
def test_a_worker_that_dies_does_not_change_a_leaf(mortal, files, tmp_path, weighted):
    labels, weights = np.arange(len(X)) % 3, np.arange(len(X)) % 4 if weighted else None
    shards = np.array_split(labels, len(PARTS))
    forest = ForestGPClassifier(capacity=4, n_trees=2)

    def work(load):
        given = np.array_split(weights, len(PARTS)) if weighted else None
        return fit(forest, files, shards, sample_weight=given, load=load)

    whole = killed_in_the_middle(work, tmp_path)
    alone = ForestGPClassifier(capacity=4, n_trees=2).fit(X, labels, None, weights)
    assert_same_forest(alone, whole, X)


def test_a_worker_that_dies_while_trees_grow_does_not_change_a_leaf(mortal, files, tmp_path):
    """The worker takes rows with it that were read before, and parts of grown trees."""
    labels = np.arange(len(X)) % 3
    shards = np.array_split(labels, len(PARTS))
    died = tmp_path / "died"

    def kernel(A, B):
        if len(A) > 1 and len(A) == len(B) and os.getpid() != caller and not died.exists():
            died.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return np.exp(-((A[:, None] - B) ** 2).sum(axis=2))

    caller = os.getpid()
    forest = ForestGPClassifier(kernel, capacity=4, n_trees=2)
    whole = fit(forest, files, shards)
    assert died.exists()
    assert whole.kernel is kernel
    alone = ForestGPClassifier(kernel, capacity=4, n_trees=2).fit(X, labels)
    assert_same_forest(alone, whole, X)


def test_workers_write_the_sums_of_a_folder(cluster, tmp_path, capfd):
    labels = np.arange(len(X)) % 3
    for k, rows in enumerate(np.array_split(np.arange(len(X)), 4)):
        np.savez(tmp_path / f"{k}.npz", X=X[rows], y=labels[rows])
    assert len(refresh_sums(tmp_path, progress=True).computed) == 4
    assert "% Completed" in capfd.readouterr().out
    whole = fit(LinearGPClassifier(), f"{tmp_path}/*.kms")
    assert whole.digest() == LinearGPClassifier().fit(X, labels).digest()
    np.savez(tmp_path / "2.npz", X=X * np.nan, y=labels)
    with pytest.raises(KnowmoreError, match=r"^'.*2.npz': .*NaN or infinity"):
        refresh_sums(tmp_path)
