"""`knowmore export` and `knowmore serve`, as processes."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from http.client import HTTPConnection

import numpy as np
import pytest

import knowmore
from knowmore import GPClassifier

COMMAND = [sys.executable, "-m", "knowmore"]


@pytest.fixture
def model(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "m.km"
    with knowmore.open(path, GPClassifier()) as store:
        store.add(rng.normal(size=(9, 2)), [*"abcabcabc"], ids=[f"p{i}" for i in range(9)])
    return path


def run(*words, code=0):
    done = subprocess.run([*COMMAND, *map(str, words)], capture_output=True, text=True, timeout=60)
    assert done.returncode == code or (code and done.returncode), done.stderr
    return done.stderr if code else done.stdout


def test_all_ways_out(model, tmp_path):
    names = {"--onnx": "m.onnx", "--table": "m.csv", "--html": "m.html", "--javascript": "m.mjs"}
    options = [word for option, name in names.items() for word in (option, tmp_path / name)]
    before = model.read_bytes()
    told = run("export", model, *options)
    assert told.splitlines() == [f"Written: {tmp_path / name}" for name in names.values()]
    assert model.read_bytes() == before
    assert (tmp_path / "m.csv").read_text().startswith("id,label,weight,loo_predicted,loo_score")
    assert "export const predict" in (tmp_path / "m.mjs").read_text()


@pytest.mark.slow
def test_a_graph_without_variance(model, tmp_path):
    run("export", model, "--onnx", tmp_path / "large.onnx")
    run("export", model, "--onnx", tmp_path / "m.onnx", "--no-variance")
    assert b"probabilities" in (tmp_path / "large.onnx").read_bytes()
    assert b"probabilities" not in (tmp_path / "m.onnx").read_bytes()
    told = run("export", model, "--html", tmp_path / "m.html", "--no-variance", code=2)
    assert told == "knowmore: --no-variance is about the ONNX graph: give --onnx and a file, too.\n"
    assert not (tmp_path / "m.html").exists()


@pytest.mark.slow
def test_what_cannot_be_exported(model, tmp_path):
    assert "Say what to write: --onnx, --table, --sqlite, --html" in run("export", model, code=1)
    assert "is the model itself" in run("export", model, "--html", model, code=1)
    assert "does not end in .csv or .parquet" in run("export", model, "--table", "t.txt", code=1)
    assert "none.km" in run("export", tmp_path / "none.km", "--html", tmp_path / "p", code=1)
    with knowmore.open(tmp_path / "empty.km", GPClassifier()):
        pass
    told = run("export", tmp_path / "empty.km", "--onnx", tmp_path / "e.onnx", code=1)
    assert "holds no examples" in told
    assert not (tmp_path / "e.onnx").exists()


@pytest.mark.slow
def test_a_page_does_not_ask_for_the_numbers_of_a_picture(model, tmp_path):
    with knowmore.open(model) as store:
        store.set_notes(pictures={"about": {"kind": "phog"}})
    pages = ["--html", tmp_path / "m.html", "--table", tmp_path / "m.csv"]
    assert run("export", model, *pages, code=2) == (
        f"knowmore: {str(model)!r} has learnt pictures by phog, and a page would ask for the 2 "
        "numbers that describe one. Nothing was written. A page knows a network: knowmore init "
        "NEW.km --features embedding, and teach NEW.km. Or take --onnx or --javascript, and "
        f"describe pictures as the model does: knowmore features NEW -o new.npz --like {model}\n"
    )
    assert not (tmp_path / "m.csv").exists()


def asked(port, method, path, body=None):
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    headers = {"Content-Type": "application/json"}
    connection.request(method, path, None if body is None else json.dumps(body), headers)
    answer = connection.getresponse()
    found = answer.status, answer.read()
    connection.close()
    return found


@pytest.mark.slow
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_a_model_is_served_until_it_is_ended(model, end):
    command = [*COMMAND, "serve", str(model), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            line = process.stderr.readline()
            port = int(re.search(r"at http://127.0.0.1:(\d+)\. Ctrl\+C ends it", line)[1])
            # The line comes when the model is loaded.
            status, body = asked(port, "POST", "/predict", {"rows": [[0.0, 0.0]]})
            assert status == 200
            assert json.loads(body)["predictions"][0]["label"] in "abc"
        finally:
            process.send_signal(end)
        # As programs end that were interrupted.
        assert process.wait(30) in (0, -end, 128 + end)


@pytest.mark.slow
def test_what_cannot_be_served(model, tmp_path):
    assert "so a token is needed" in run("serve", model, "--host", "0.0.0.0", code=1)
    assert "at least 16 ASCII characters" in run("serve", model, "--token", "secret", code=1)
    assert "There is no file" in run("serve", tmp_path / "none.km", code=1)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        told = run("serve", model, "--port", taken.getsockname()[1], code=1)
    assert "Choose another --port" in told
    (tmp_path / "bad.km").write_bytes(os.urandom(5000))
    told = run("serve", tmp_path / "bad.km", "--port", 0, code=1)
    assert told.splitlines()[-1].startswith("knowmore: ")
    assert "Traceback" not in told
