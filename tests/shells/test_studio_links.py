"""Fresh links of a studio: Enter in its terminal prints another, for one more browser."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest

pytest.importorskip("uvicorn")
pty = pytest.importorskip("pty", reason="needs a terminal of Unix")

pytestmark = pytest.mark.slow

ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{43}\n")

# A shell whose terminal is its own, with a studio as a job in the background.
BACKGROUND = """
import fcntl, signal, subprocess, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
command = [sys.executable, "-m", "knowmore", "studio", "--no-open"]
studio = subprocess.Popen(command, process_group=0)
signal.signal(signal.SIGTERM, lambda *_: studio.kill())
studio.wait()
"""


def entered(address):
    """The status of a first visit by an address, and the cookie that it gave."""
    parts = urlsplit(address.strip())
    connection = HTTPConnection(parts.hostname, parts.port, timeout=60)
    connection.request("GET", f"/?{parts.query}")
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status, answer.headers["set-cookie"]


@contextmanager
def running(folder, terminal):
    """A studio whose standard input is this; it ends by Ctrl+C, as it should."""
    command = [sys.executable, "-m", "knowmore", "studio", "--no-open"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command, cwd=folder, stdin=terminal, **pipes)
    try:
        yield process
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130
    finally:
        process.kill()
        process.communicate()


def test_enter_in_its_terminal_prints_a_fresh_link(tmp_path):
    mine, theirs = pty.openpty()
    try:
        with running(tmp_path, theirs) as studio:
            first = studio.stdout.readline()
            assert ADDRESS.fullmatch(first)
            assert "Made plane.km" in studio.stderr.readline()
            assert "Enter prints a link for another browser" in studio.stderr.readline()
            assert entered(first)[0] == 303
            assert entered(first) == (403, None)
            os.write(mine, b"\n")
            second = studio.stdout.readline()
            assert ADDRESS.fullmatch(second)
            os.write(mine, b"n\n")
            third = studio.stdout.readline()
            # The latest alone counts, and once.
            assert entered(second) == (403, None)
            assert entered(third)[0] == 303
            assert entered(third) == (403, None)
    finally:
        os.close(mine)
        os.close(theirs)


def test_without_a_terminal_nothing_is_waited_for(tmp_path):
    with running(tmp_path, subprocess.DEVNULL) as studio:
        assert entered(studio.stdout.readline())[0] == 303
        assert "Made plane.km" in studio.stderr.readline()
        assert studio.stderr.readline() == "The studio of plane.km. Ctrl+C ends it.\n"


def test_a_studio_in_the_background_goes_on(tmp_path):
    """A job that reads its terminal from the background would be stopped."""
    mine, theirs = pty.openpty()
    command = [sys.executable, "-c", BACKGROUND]
    pipes = {"stdin": theirs, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    shell = subprocess.Popen(command, cwd=tmp_path, start_new_session=True, text=True, **pipes)
    try:
        address = shell.stdout.readline()
        assert entered(address)[0] == 303
        os.write(mine, b"\n")
        assert entered(address) == (403, None)
    finally:
        shell.terminate()
        shell.communicate(timeout=60)
        os.close(mine)
        os.close(theirs)
