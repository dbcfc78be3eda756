"""The documentation is complete: every public name, command and equation is in it."""

from __future__ import annotations

import ast
import inspect
import re
import shutil
import subprocess
import tomllib
from functools import cache
from importlib import import_module
from importlib.metadata import packages_distributions, requires, version
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from sys import stdlib_module_names

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import knowmore
from knowmore.estimators.living import EditableEstimator, LivingEstimator
from papers import NAMES

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
NOTATION = (ROOT / "docs" / "notation.md").read_text(encoding="utf-8")
CHANGES = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
# Generated pages list every name but explain none.
GENERATED = {"commands.md", "reference.md", "results.md"}
WRITTEN = [path for path in sorted((ROOT / "docs").glob("*.md")) if path.name not in GENERATED]
GUIDE = README + "".join(path.read_text(encoding="utf-8") for path in WRITTEN)
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
SOURCES = sorted([*(ROOT / "src").rglob("*.py"), *(ROOT / "papers").rglob("*.py")])


def load_generator(name):
    spec = spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


REFERENCE, COMMANDS = load_generator("make_reference"), load_generator("make_commands")
PUBLIC = [(package, name) for package in REFERENCE.PACKAGES for name in REFERENCE.public(package)]
EXPORTING = sorted(
    path.relative_to(ROOT / "src")
    for path in (ROOT / "src").rglob("*.py")
    if re.search(r"^__all__ = ", path.read_text(encoding="utf-8"), re.MULTILINE)
)


def public_verbs():
    public = [getattr(knowmore, name) for name in knowmore.__all__ if name != "KnowmoreError"]
    own = {name for each in (EditableEstimator, LivingEstimator, *public) for name in vars(each)}
    # set_fit_request and the like are scikit-learn's, made for its metadata routing.
    return sorted(name for name in own if not re.match(r"_|set_\w+_request", name))


@pytest.mark.parametrize("name", public_verbs())
def test_every_verb_is_in_the_guide(name):
    assert re.search(rf"\b{name}\b", GUIDE)


@pytest.mark.parametrize("name", [n for n in knowmore.__all__ if n != "KnowmoreError"])
def test_every_public_name_is_in_readme_and_changes(name):
    assert name in README
    assert name in CHANGES


def test_a_star_import_leaves_open_alone():
    names = {}
    exec("from knowmore import *\nfrom knowmore.store import *", names)
    assert "open" not in names
    assert "Store" in names
    assert "open" in dir(knowmore)
    assert knowmore.open is knowmore.store.open


@pytest.mark.parametrize("name", NAMES)
def test_every_experiment_is_in_the_changes(name):
    assert f"`{name}`" in CHANGES


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
    for target, part in re.findall(
        r"\]\(([^)#]+)(?:#([^)]*))?\)", page.read_text(encoding="utf-8")
    ):
        assert target.startswith("https://") or (page.parent / target).exists(), target
        if part:
            headings = re.findall(r"^#+ (.*)$", (page.parent / target).read_text(), re.MULTILINE)
            assert part in {re.sub(r"[^\w -]", "", h).lower().replace(" ", "-") for h in headings}


@pytest.mark.parametrize("generated", [REFERENCE, COMMANDS])
def test_the_reference_is_up_to_date(generated):
    assert generated.PAGE.read_text(encoding="utf-8") == generated.page(), "run `make reference`"


def test_commands_have_each_heading_once():
    headings = re.findall(r"^#+ .*$", COMMANDS.page(), re.MULTILINE)
    assert len({*headings}) == len(headings)


@pytest.mark.parametrize(("package", "name"), PUBLIC)
def test_every_public_name_is_documented(package, name):
    one = getattr(import_module(package), name)
    if not (isinstance(one, type) or inspect.isroutine(one)):
        # Aliases and tables have no docstring of their own.
        assert f"`{name}`" in GUIDE
        return
    assert REFERENCE.documentation(one), f"{package}.{name} has no docstring"
    for member, value in REFERENCE.members(one).items() if isinstance(one, type) else ():
        assert REFERENCE.documentation(value), f"{package}.{name}.{member} has no docstring"


@cache
def reference_sections():
    sections = re.split(r"^## ", REFERENCE.page(), flags=re.MULTILINE)
    return {section.partition("\n")[0]: section for section in sections}


@pytest.mark.parametrize(("package", "name"), PUBLIC)
def test_every_public_name_is_in_the_reference(package, name):
    assert f"\n### {name}\n" in reference_sections()[package]


@pytest.mark.parametrize("path", EXPORTING, ids=str)
def test_what_a_module_exports_is_public(path):
    module = ".".join(path.with_suffix("").parts).removesuffix(".__init__")
    public = {name for _, name in PUBLIC}
    assert module in REFERENCE.PACKAGES or set(import_module(module).__all__) <= public


def documented_imports():
    """The names that pages import from knowmore, each with its page."""
    prompts = re.compile(r"^\s*(?:>>> ?|\.\.\. ?)", re.MULTILINE)
    lines = re.compile(r"^\s*from (knowmore[\w.]*) import (\([^)]*\)|[^(\n#]+)", re.MULTILINE)
    for page in PAGES:
        code = prompts.sub("", page.read_text(encoding="utf-8"))
        for package, names in lines.findall(code):
            for name in filter(None, re.split(r"[(),\s]+", re.sub(r" as \w+", "", names))):
                yield page.name, package, name


@pytest.mark.parametrize(("page", "package", "name"), sorted(set(documented_imports())))
def test_every_documented_import_is_public(page, package, name):
    assert (package, name) in PUBLIC, f"{page} imports {name} from {package}, which is private"


def test_pages_import_something():
    assert ("index.md", "knowmore", "GPClassifier") in set(documented_imports())


def test_the_readme_is_short():
    assert len(README.split()) <= 700


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.name)
def test_the_index_leads_to_every_page(page):
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert page.name == "index.md" or f"({page.name})" in index


def test_the_index_of_decisions_is_complete():
    folder = ROOT / "docs" / "decisions"
    index = (folder / "README.md").read_text(encoding="utf-8")
    pages = [path for path in sorted(folder.glob("*.md")) if path.name != "README.md"]
    titles = [
        (path.read_text(encoding="utf-8").partition("\n")[0][2:], path.name) for path in pages
    ]
    assert re.findall(r"^- \[(.*)\]\((.*)\)$", index, re.MULTILINE) == titles


def test_the_version_is_that_of_the_package():
    assert knowmore.__version__ == version("knowmore")


# -- what is installed ---------------------------------------------------------------------------

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]


def installed(requirements):
    """The names of all distributions that these requirements bring."""
    found, waiting = set(), [*map(Requirement, requirements)]
    while waiting:
        one = waiting.pop()
        if one.marker is not None and not one.marker.evaluate({"extra": ""}):
            continue
        if one.name == PROJECT["name"]:
            waiting += [Requirement(each) for extra in one.extras for each in EXTRAS[extra]]
        elif (name := canonicalize_name(one.name)) not in found:
            found.add(name)
            waiting += map(Requirement, requires(name) or ())
    return found


def imported():
    """The libraries that the package imports, always or when they are needed, each with a place."""
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [one.name for one in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module]
            elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in (
                "optional",
                "require",
            ):
                names = [one.value for one in node.args[:1] if isinstance(one, ast.Constant)]
            for name in names:
                yield name.partition(".")[0], path.name


@pytest.mark.slow
def test_the_line_of_the_readme_installs_what_its_commands_import():
    (line,) = re.findall(r'^pip install "\.\[(.+)\]"', README, re.MULTILINE)
    there = installed([*PROJECT["dependencies"], f"{PROJECT['name']}[{line}]"])
    owners = packages_distributions()
    needed = {
        name: place
        for name, place in imported()
        # Who has no scikit-activeml needs none: a class inherits from its own where it is there.
        if name not in {*stdlib_module_names, PROJECT["name"], "skactiveml"}
    }
    assert {"cv2", "fastapi", "matplotlib", "onnx", "pandas", "pyarrow", "typer"} <= needed.keys()
    lacking = {
        name: place
        for name, place in needed.items()
        if not there & {canonicalize_name(one) for one in owners.get(name, ())}
    }
    assert not lacking
    assert "torch" not in there
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert f'pip install ".[{line}]"' in index


def test_the_guide_lists_every_extra():
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    table = index.partition("| extra | what it adds |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == [*EXTRAS]


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_the_demonstration_installs_no_development_tools():
    command = ["make", "--dry-run", "--always-make", "-C", str(ROOT), "demo"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "knowmore demo" in done.stdout
    (extras,) = re.findall(r'-e "\.\[(.+)\]"', done.stdout)
    tools = {Requirement(one).name for one in EXTRAS["dev"]} - {PROJECT["name"], "pandas"}
    assert {"mypy", "pytest", "ruff"} <= tools
    assert not tools & installed([f"{PROJECT['name']}[{extras}]"])
