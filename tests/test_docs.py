"""Documentation that can fail: every public name, command and equation is in it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import knowmore
from knowmore.estimators.living import LivingEstimator
from papers import MODULES

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
NOTATION = (ROOT / "docs" / "notation.md").read_text(encoding="utf-8")
CHANGES = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
GUIDE = README + "".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.md"))
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
SOURCES = sorted([*(ROOT / "src").rglob("*.py"), *(ROOT / "papers").rglob("*.py")])


def public_verbs():
    public = [getattr(knowmore, name) for name in knowmore.__all__ if name != "KnowmoreError"]
    own = {name for each in (LivingEstimator, *public) for name in vars(each)}
    # set_fit_request and the like are scikit-learn's, made for its metadata routing.
    return sorted(name for name in own if not re.match(r"_|set_\w+_request", name))


@pytest.mark.parametrize("name", public_verbs())
def test_every_verb_is_in_the_guide(name):
    assert re.search(rf"\b{name}\b", GUIDE)


@pytest.mark.parametrize("name", [n for n in knowmore.__all__ if n != "KnowmoreError"])
def test_every_public_name_is_in_readme_and_changes(name):
    assert name in README
    assert name in CHANGES


@pytest.mark.parametrize("name", MODULES)
def test_every_experiment_is_in_the_changes(name):
    assert f"reproduce {name}" in CHANGES


def test_every_equation_tag_is_in_the_notation():
    tags = re.compile(r"\b[Ee]qs?\. \((\d+)\)")
    used = {n for path in SOURCES for n in tags.findall(path.read_text(encoding="utf-8"))}
    assert used
    for number in used:
        covered = f"({number})" in NOTATION or 6 <= int(number) <= 9
        assert covered, f"eq. ({number}) is not in docs/notation.md"


def test_every_make_target_is_explained():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)[1].split()
    for target in set(targets) - {"clean"}:
        assert f"make {target}" in CONTRIBUTING


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        assert target.startswith("https://") or (page.parent / target).exists(), target
