"""A real Label Studio on this machine, and one way to ask it.

It is the command in KNOWMORE_LABEL_STUDIO, or `label-studio` on the PATH; no test installs it.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from http.cookiejar import CookieJar
from urllib.parse import urlencode
from uuid import uuid4

import pytest

COMMAND = os.environ.get("KNOWMORE_LABEL_STUDIO") or shutil.which("label-studio")
USER, PASSWORD = "somebody@example.com", uuid4().hex
# Nothing of it may ask other machines. A backend on this machine is refused by the last two.
SETTINGS = {
    "COLLECT_ANALYTICS": "false",
    "LATEST_VERSION_CHECK": "false",
    "SENTRY_DSN": "",
    "FRONTEND_SENTRY_DSN": "",
    "ML_BLOCK_LOCAL_IP": "false",
    "SSRF_PROTECTION_ENABLED": "false",
}


def free_port():
    """A port that nobody listened at a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]


class LabelStudio:
    """A Label Studio at an address, asked as its page asks it."""

    def __init__(self, address):
        self.address, self.cookies = address, CookieJar()
        self.opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPCookieProcessor(self.cookies)
        )
        self.opener.open(f"{address}/user/login/").read()
        form = {"email": USER, "password": PASSWORD, "csrfmiddlewaretoken": self._secret()}
        self("POST", "/user/login/", urlencode(form).encode(), "application/x-www-form-urlencoded")
        # It is shown once.
        self.token = self("POST", "/api/token/")["token"]

    def _secret(self):
        return next((one.value for one in self.cookies if one.name == "csrftoken"), "")

    def __call__(self, method, path, body=None, media="application/json"):
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        headers = {"X-CSRFToken": self._secret(), "Referer": self.address, "Content-Type": media}
        request = urllib.request.Request(self.address + path, data, headers, method=method)
        try:
            answer = self.opener.open(request, timeout=120).read()
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{method} {path}: {error.code} {error.read()[:500]}") from error
        try:
            return json.loads(answer)
        except ValueError:
            return answer

    def project(self, title, interface, backend):
        """The number of a new project that a model is connected to."""
        made = self("POST", "/api/projects", {"title": title, "label_config": interface})
        about = {"url": backend, "project": made["id"], "title": "knowmore"}
        connected = self("POST", "/api/ml", about)
        assert connected["state"] == "CO", connected
        return made["id"]

    def tasks(self, project):
        """The tasks of a project by their numbers."""
        found = self("GET", f"/api/tasks?project={project}&fields=all&page_size=100")["tasks"]
        return {one["id"]: one for one in found}

    def upload(self, project, pictures):
        """Import pictures, bytes by their names, and return the new tasks by their names."""
        before, mark = set(self.tasks(project)), uuid4().hex
        parts = [
            f'--{mark}\r\nContent-Disposition: form-data; name="{name}"; filename="{name}"\r\n'
            f"Content-Type: image/png\r\n\r\n".encode()
            + data
            + b"\r\n"
            for name, data in pictures.items()
        ]
        body = b"".join([*parts, f"--{mark}--\r\n".encode()])
        media = f"multipart/form-data; boundary={mark}"
        self("POST", f"/api/projects/{project}/import", body, media)
        new = {number: one for number, one in self.tasks(project).items() if number not in before}
        # Names get a prefix.
        return {
            next(name for name in pictures if one["data"]["image"].endswith(name)): number
            for number, one in new.items()
        }

    def annotate(self, task, choice, name="kind", subject="it"):
        """The number of a new annotation."""
        return self("POST", f"/api/tasks/{task}/annotations/", chosen(choice, name, subject))["id"]

    def change(self, annotation, choice, name="kind", subject="it"):
        self("PATCH", f"/api/annotations/{annotation}/", chosen(choice, name, subject))

    def suggestions(self, project):
        """The class that a model suggests for each task, None if none, by the tasks' numbers."""
        every = {"selectedItems": {"all": True, "excluded": []}}
        self("POST", f"/api/dm/actions?id=retrieve_tasks_predictions&project={project}", every)
        found = {}
        for number, task in self.tasks(project).items():
            last = max(task["predictions"], key=lambda one: one["id"], default=None)
            result = last["result"] if last else []
            found[number] = result[0]["value"]["choices"][0] if result else None
        return found

    def export(self, project, kind):
        return self("GET", f"/api/projects/{project}/export?exportType={kind}")


def chosen(choice, name, subject):
    value = {"choices": [choice]}
    item = {"from_name": name, "to_name": subject, "type": "choices", "value": value}
    return {"result": [item]}


@contextmanager
def label_studio(folder):
    """A Label Studio whose files are in a folder, with one user."""
    if not COMMAND:
        pytest.skip("needs Label Studio: KNOWMORE_LABEL_STUDIO names its command")
    port = free_port()
    known = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    env = known | SETTINGS | {"HOME": str(folder), "LABEL_STUDIO_BASE_DATA_DIR": str(folder)}
    (folder / "local").mkdir()
    env |= {"LOCAL_FILES_SERVING_ENABLED": "true"}
    env |= {"LOCAL_FILES_DOCUMENT_ROOT": str(folder / "local")}
    user = ["--username", USER, "--password", PASSWORD]
    where = ["--internal-host", "127.0.0.1", "--port", str(port)]
    command = [COMMAND, "start", "--no-browser", "--log-level", "ERROR", *where, *user]
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen(command, cwd=folder, env=env, stdout=log, stderr=log)
    try:
        address, end = f"http://localhost:{port}", time.monotonic() + 900
        while True:
            try:
                urllib.request.urlopen(f"{address}/health", timeout=5).read()
                break
            except OSError:
                assert process.poll() is None, (folder / "log").read_text()
                assert time.monotonic() < end, (folder / "log").read_text()
                time.sleep(0.5)
        yield LabelStudio(address)
    finally:
        process.terminate()
        process.wait(timeout=30)


@contextmanager
def served(path, token, env=None):
    """`knowmore serve` of a model for Label Studio: its address, and what it prints, in a file."""
    port, printed = free_port(), path.with_suffix(".log")
    command = [sys.executable, "-m", "knowmore", "serve", str(path), "--label-studio"]
    command += ["--port", str(port), "--token", token]
    with open(printed, "wb") as log:
        process = subprocess.Popen(command, env=os.environ | (env or {}), stderr=log)
    try:
        end = time.monotonic() + 120
        while "Serving" not in printed.read_text():
            assert process.poll() is None, printed.read_text()
            assert time.monotonic() < end
            time.sleep(0.05)
        yield f"http://knowmore:{token}@127.0.0.1:{port}", printed
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=30)
