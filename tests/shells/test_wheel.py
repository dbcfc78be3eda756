"""The wheel works by itself, in an environment that has never seen this tree."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

import knowmore

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
# What pip says where there is no network, and the backend is not installed.
OFFLINE = ("No matching distribution found for hatchling", "Could not find a version")

TINY = """
import knowmore
from knowmore import GPClassifier

clf = GPClassifier().fit([[0.0], [1.0], [2.0]], ["cold", "mild", "mild"])
ids = clf.add([[9.0]], ["hot"])
print(knowmore.__version__, clf.predict([[8.5]])[0], clf.remove(ids).predict([[8.5]])[0])
print(knowmore.__file__)
"""


def run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    # Sources of this tree must not stand in for what is missing in the wheel.
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=clean,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--no-deps"]
    done = run(*pip, "--wheel-dir", folder, ROOT, cwd=folder)
    if done.returncode != 0 and any(words in done.stderr for words in OFFLINE):
        pytest.skip("building a wheel needs hatchling, and pip cannot get it here")
    assert done.returncode == 0, done.stderr
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment with the wheel; what it depends on is lent by this one.

    A path in a .pth file comes after the environment's own packages, and .pth files in it are not
    followed: an editable knowmore beside the libraries stays unseen.
    """
    folder = tmp_path_factory.mktemp("clean")
    venv.create(folder)
    programs = folder / Path(sys.executable).parent.name
    python = programs / Path(sys.executable).name
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python]
    done = run(*pip, "install", "--no-deps", "--no-index", wheel, cwd=folder)
    assert done.returncode == 0, done.stderr
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = Path(run(python, "-c", where, cwd=folder).stdout.strip())
    assert packages.is_relative_to(folder)
    lent = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (packages / "lent.pth").write_text("\n".join(sorted(lent)), encoding="utf-8")
    return programs


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.split("/")[0] for name in names} == {
        "knowmore",
        f"knowmore-{knowmore.__version__}.dist-info",
    }
    assert "knowmore/py.typed" in names


def test_the_command_says_its_version(environment: Path, tmp_path: Path) -> None:
    done = run(environment / "knowmore", "--version", cwd=tmp_path)
    assert (done.stdout, done.stderr) == (f"knowmore {knowmore.__version__}\n", "")


def test_it_can_be_imported_and_learns(environment: Path, tmp_path: Path) -> None:
    done = run(environment / Path(sys.executable).name, "-W", "error", "-c", TINY, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    said, place = done.stdout.splitlines()
    assert said == f"{knowmore.__version__} hot mild"
    assert Path(place).is_relative_to(environment.parent)
