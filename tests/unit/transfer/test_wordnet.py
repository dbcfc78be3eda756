"""WordNet against its definition on small hierarchies, and what users get wrong."""

from __future__ import annotations

import pickle
import re
from copy import deepcopy
from itertools import product
from math import inf, log

import numpy as np
import pytest
from small_wordnet import LICENCE, Entry, Small

from knowmore.errors import InvalidInput, InvalidType, KnowmoreError, MissingData
from knowmore.semantics import WordNet
from knowmore.transfer.nouns import parse

ENTITY, ANIMAL, PET, TOOL, DOG, CAT, CRANE, HOIST, MOUSE, SNOOPY, UNMET = range(11)
SMALL = Small(
    [
        Entry(["entity"], met=0),
        Entry(["animal", "beast"], [ENTITY], met=2),
        Entry(["pet"], [ENTITY]),
        Entry(["tool"], [ENTITY], met=4),
        Entry(["dog", "Canis_familiaris"], [ANIMAL, PET], gloss="it barks; | or not", met=5),
        Entry(["cat"], [ANIMAL, PET], met=3),
        Entry(["crane"], [ANIMAL]),
        Entry(["hoisting_machine", "crane"], [TOOL]),
        Entry(["mouse"], [ANIMAL]),
        Entry(["Snoopy"], instances=[DOG]),
        Entry(["left-handed_spanner"], [TOOL], met=0),
        Entry(["gas", "gases"], [ENTITY], met=0),
        Entry(["Ga"], [ENTITY], met=0),
        Entry(["men"], [ENTITY], met=0),
        Entry(["man"], [ENTITY], met=0),
        Entry(["man-of-war"], [TOOL], met=0),
    ],
    exceptions="mice mouse\nmen man\nmen-of-war man-of-war\n",
    senses={"crane": [HOIST, CRANE]},
)


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def loaded(tmp_path, small=SMALL, **options):
    return WordNet.load(small.write(tmp_path / "wordnet"), **{"information": "ic-small"} | options)


@pytest.fixture
def wordnet(tmp_path):
    return loaded(tmp_path)


# -- what names mean -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "synset"),
    [
        ("sheep-dog", "dog.n.01"),
        ("big_white_cats", "cat.n.01"),
        ("church mice", "mouse.n.01"),
        ("056.dog", "dog.n.01"),
        ("snoopy-101", "snoopy.n.01"),
        ("cat_face", "cat.n.01"),
        ("012.tool-side-101", "tool.n.01"),
        # A compound that WordNet knows stays whole.
        ("left-handed spanner", "left-handed_spanner.n.01"),
        ("old left handed spanner", "left-handed_spanner.n.01"),
    ],
)
def test_a_compound_is_what_its_head_is(wordnet, name, synset):
    assert [one.name for one in wordnet.synsets(name)] == [synset]


@pytest.mark.parametrize("name", ["dog-biscuit", "101", "face", "cat-101-biscuit", "-", ""])
def test_a_compound_is_not_what_comes_before_its_head(wordnet, name):
    assert name not in wordnet


@pytest.mark.parametrize(
    ("name", "synsets"),
    [
        ("dog", ["dog.n.01"]),
        ("Dogs", ["dog.n.01"]),
        ("canis familiaris", ["dog.n.01"]),
        ("Canis-familiaris", ["dog.n.01"]),
        ("canis_familiaris.n.01", ["dog.n.01"]),
        ("crane", ["hoisting_machine.n.01", "crane.n.02"]),
        ("crane.n.02", ["crane.n.02"]),
        ("mice", ["mouse.n.01"]),
        ("hoisting machines", ["hoisting_machine.n.01"]),
        ("left handed spanner", ["left-handed_spanner.n.01"]),
        # A noun as it is written is no plural of another, unless the exceptions say so too.
        ("gas", ["gas.n.01"]),
        ("gases", ["gas.n.01"]),
        ("men", ["men.n.01", "man.n.01"]),
        ("men of war", ["man-of-war.n.01"]),
        ("Men-of-war", ["man-of-war.n.01"]),
        ("hoisting-men", ["men.n.01", "man.n.01"]),
        ("crane.n.00", []),
        ("crane.n.03", []),
        ("gnu", []),
        ("", []),
        (" ", []),
        ("s", []),
        ("-", []),
    ],
)
def test_names_mean_synsets(wordnet, name, synsets):
    assert [synset.name for synset in wordnet.synsets(name)] == synsets
    assert (name in wordnet) == bool(synsets)


def test_a_synset_is_its_nouns_and_a_gloss(wordnet):
    (dog,) = wordnet.synsets("dog")
    assert dog.lemmas == ("dog", "Canis_familiaris")
    assert dog.gloss == "it barks; | or not"


def test_meanings_come_first(tmp_path):
    wordnet = loaded(tmp_path, meanings={"crane": "crane.n.02", "Rex": "dog.n.01"})
    assert [synset.name for synset in wordnet.synsets("crane")] == ["crane.n.02"]
    assert [synset.name for synset in wordnet.hypernyms("Rex")] == ["animal.n.01", "pet.n.01"]
    assert "rex" not in wordnet


def test_instances_have_hypernyms(wordnet):
    assert [synset.name for synset in wordnet.hypernyms("snoopy")] == ["dog.n.01"]
    assert wordnet.hypernyms("entity") == ()


def test_there_may_be_several_lowest_common_subsumers(wordnet):
    found = [synset.name for synset in wordnet.lowest_common_subsumers("Snoopy", "cat")]
    # A pet says more than an animal.
    assert found == ["pet.n.01", "animal.n.01"]
    assert wordnet.information_content("pet") > wordnet.information_content("animal")
    assert wordnet.resnik("Snoopy", "cat") == wordnet.information_content("pet")
    assert [synset.name for synset in wordnet.lowest_common_subsumers("dog", "dog")] == ["dog.n.01"]


def test_ambiguous_names_are_refused_where_one_synset_is_needed(wordnet):
    words = (
        "'crane' means 2 things. Name one of hoisting_machine.n.01: a thing; crane.n.02: a thing."
    )
    with pytest.raises(InvalidInput, match=f"^{re.escape(words)}$"):
        wordnet.hypernyms("crane")


# -- similarities --------------------------------------------------------------------------------


def by_definition(small, content, a, b):
    """Resnik, Lin and path of two nouns: all pairs of senses, all that is above both."""

    def steps(low, high):
        ways = [1 + steps(up, high) for up in small.above(low)]
        return 0 if low == high else min(ways, default=inf)

    found = []
    for x, y in product(small.meanings()[a], small.meanings()[b]):
        common = small.subsumers(x) & small.subsumers(y)
        shared = max((content[c] for c in common), default=0.0)
        way = min((steps(x, c) + steps(y, c) for c in common), default=inf)
        same = shared == content[x] == content[y] and bool(common)
        lin = 1.0 if same else 2 * shared / (content[x] + content[y]) if common else 0.0
        found.append((shared, lin, 1 / (1 + way)))
    return tuple(map(max, zip(*found, strict=True)))


def random_hierarchy(rng, n=15, roots=1):
    """Synsets of up to three kinds, and nouns of several senses."""
    entries = []
    for number in range(n):
        up = rng.choice(number, min(number, rng.integers(1, 4)), replace=False).tolist()
        up = up if number >= roots else []
        words = [f"noun{chr(97 + one)}" for one in rng.choice(12, 2, replace=False)]
        instances = up if rng.random() < 0.2 else []
        kinds = [] if instances else up
        entries.append(Entry(words, kinds, instances, met=int(rng.integers(0, 3))))
    return Small(entries)


@pytest.mark.slow(fast=6)
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("roots", [1, 3])
@pytest.mark.parametrize("information", ["ic-small", "intrinsic"])
def test_similarities_are_as_defined(tmp_path, seed, roots, information):
    small = random_hierarchy(np.random.default_rng(seed), roots=roots)
    wordnet = loaded(tmp_path, small, information=information)
    nouns = sorted(small.meanings())
    for a in nouns:
        found = wordnet.similarities(a, nouns)
        expected = [by_definition(small, wordnet.content.tolist(), a, b) for b in nouns]
        for values, right in zip(
            (found.resnik, found.lin, found.path), zip(*expected, strict=True), strict=True
        ):
            np.testing.assert_array_equal(values, right)
        assert wordnet.resnik(a, nouns[0]) == wordnet.resnik(nouns[0], a) == found.resnik[0]
        assert wordnet.lin(a, nouns[0]) == found.lin[0]
        assert wordnet.path(a, nouns[0]) == found.path[0]


@pytest.mark.parametrize("seed", range(6))
def test_content_is_as_defined(tmp_path, seed):
    small = random_hierarchy(np.random.default_rng(seed), roots=2)
    n = len(small.entries)
    below = [sum(c in small.subsumers(one) for one in range(n)) for c in range(n)]
    counts, whole = small.counts(), sum(c for i, c in enumerate(small.counts()) if i < 2)
    by_counts = [-log(count / whole) if count else inf for count in counts]
    np.testing.assert_allclose(
        loaded(tmp_path, small).content,
        by_counts,
        rtol=0,
        atol=4 * np.finfo(float).eps * log(whole),
    )
    intrinsic = loaded(tmp_path, small, information="intrinsic").content
    by_hierarchy = [1 - log(h) / log(n) for h in below]
    np.testing.assert_allclose(intrinsic, by_hierarchy, rtol=0, atol=4 * np.finfo(float).eps)


def test_a_count_of_zero_has_infinite_content(wordnet):
    assert wordnet.information_content("left-handed spanner") == inf
    assert wordnet.resnik("left-handed spanner", "left-handed spanner") == inf
    assert wordnet.lin("left-handed spanner", "left-handed spanner") == 1
    assert wordnet.lin("left-handed spanner", "tool") == 0
    assert wordnet.resnik("left-handed spanner", "tool") == wordnet.information_content("tool")


def test_counts_may_be_a_file_of_their_own(tmp_path):
    small = Small([Entry(["entity"]), Entry(["dog"], [0])])
    path = tmp_path / "mine.dat"
    path.write_text(small.files()["ic-small.dat"])
    wordnet = loaded(tmp_path, small, information=path)
    np.testing.assert_array_equal(wordnet.content, loaded(tmp_path, small).content)
    assert wordnet.information == str(path)


# -- the most similar ----------------------------------------------------------------------------


def test_ties_go_to_lin_then_path_then_the_alphabet(tmp_path):
    root, kind, between = range(3)
    small = Small(
        [
            Entry(["root"], met=8),
            Entry(["kind"], [root], met=1),
            Entry(["between"], [kind], met=0),
            Entry(["zebu"], [kind], met=2),
            Entry(["gnu"], [kind], met=2),
            Entry(["far"], [between], met=2),
            Entry(["rare"], [kind], met=1),
            Entry(["target"], [kind], met=1),
        ]
    )
    wordnet = loaded(tmp_path, small)
    names = ["root", "rare", "zebu", "far", "gnu"]
    # Far below: one step more. Rare: it says more by itself, so less of it is shared.
    assert wordnet.most_similar("target", names) == ("gnu", "zebu", "far", "rare", "root")
    assert wordnet.most_similar("target", reversed(names), 2) == ("gnu", "zebu")
    by = wordnet.similarities("target", names)
    assert len(set(by.resnik[1:])) == 1
    assert len(set(by.lin[[2, 3, 4]])) == 1
    assert wordnet.most_similar("target", [*names, "target"], 1) == ("target",)


def test_unknown_names_are_listed(wordnet):
    words = (
        "WordNet does not know 'anima', 'gnu' (2 of 4 names). Did you mean 'animal' by 'anima'? "
        "Name its synset: WordNet.load(meanings={'anima': ...}), or pass unknown='keep'."
    )
    with pytest.raises(InvalidInput, match=f"^{re.escape(words)}$") as caught:
        wordnet.most_similar("dog", ["anima", "cat", "gnu"], 2)
    assert isinstance(caught.value, KnowmoreError)
    words = (
        "WordNet does not know 'gnu' (1 of 2 names). Name its synset: "
        "WordNet.load(meanings={'gnu': ...})."
    )
    with pytest.raises(InvalidInput, match=f"^{re.escape(words)}$"):
        wordnet.resnik("dog", "gnu")


def test_unknown_names_are_kept_if_asked(wordnet):
    names = ["yak", "tool", "cat", "gnu"]
    assert wordnet.most_similar("dog", names, 1, unknown="keep") == ("cat", "yak", "gnu")
    assert wordnet.most_similar("dog", names, 4, unknown="keep") == ("cat", "tool", "yak", "gnu")
    assert wordnet.most_similar("okapi", names, 1, unknown="keep") == tuple(names)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (("dog", ["cat"], 2), InvalidInput, "k=2. Give a whole number from 1 to 1."),
        (("dog", ["cat"], 0), InvalidInput, "k=0. Give a whole number from 1 to 1."),
        (("dog", ["cat"], 1.0), InvalidInput, "k=1.0. Give a whole number from 1 to 1."),
        (("dog", ["cat"], True), InvalidInput, "k=True. Give a whole number from 1 to 1."),
        (("dog", "cat"), InvalidType, "names='cat' must be a list of names: ['cat']."),
        (
            ("dog", ["cat", "pet", "cat"]),
            InvalidInput,
            "names has 'cat' more than once. Give each name once.",
        ),
        (("dog", [3]), InvalidType, "The name 3 is of type int. Names are strings."),
        ((None, ["cat"]), InvalidType, "The name None is of type NoneType. Names are strings."),
    ],
)
def test_wrong_arguments_of_most_similar_are_refused(wordnet, arguments, error, words):
    with pytest.raises(error, match=f"^{re.escape(words)}$"):
        wordnet.most_similar(*arguments)


def test_other_values_of_unknown_are_refused(wordnet):
    with pytest.raises(
        InvalidInput, match=r"^unknown='drop' is not known\. Choose one of 'raise', 'keep'\.$"
    ):
        wordnet.most_similar("dog", ["cat"], unknown="drop")


def test_no_names_give_empty_results(wordnet):
    assert wordnet.most_similar("dog", []) == ()
    assert wordnet.similarities("dog", []).resnik.shape == (0,)


# -- the value -----------------------------------------------------------------------------------


def test_it_is_a_value(tmp_path):
    meanings = {"Rex": "dog.n.01"}
    wordnet = loaded(tmp_path, meanings=meanings)
    assert deepcopy(wordnet) is wordnet
    assert repr(wordnet) == "WordNet(16 synsets, information='ic-small', 1 meanings)"
    meanings["Rex"] = "cat.n.01"
    assert wordnet.synsets("Rex")[0].name == "dog.n.01"
    with pytest.raises(ValueError, match="read-only"):
        wordnet.content[0] = 1
    with pytest.raises(TypeError):
        wordnet.meanings["Rex"] = "cat.n.01"


def test_it_can_be_pickled(tmp_path):
    wordnet = loaded(tmp_path, meanings={"Rex": "dog.n.01"})
    wordnet.most_similar("Rex", ["cat"])
    copy = pickle.loads(pickle.dumps(wordnet))
    assert repr(copy) == repr(wordnet)
    assert copy.synsets("Rex") == wordnet.synsets("Rex")
    np.testing.assert_array_equal(copy.content, wordnet.content)
    assert not copy.content.flags.writeable


def test_meanings_must_exist(tmp_path):
    words = (
        "meanings={'Rex': 'dog.n.02'}, but WordNet has no such synset. synsets(noun) lists those "
        "of a noun."
    )
    with pytest.raises(InvalidInput, match=f"^{re.escape(words)}$"):
        loaded(tmp_path, meanings={"Rex": "dog.n.02"})


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        (
            {"meanings": {"a": 3}},
            InvalidInput,
            "meanings={'a': 3}, but WordNet has no such synset.",
        ),
        (
            {"meanings": {3: "dog.n.01"}},
            InvalidType,
            "The name 3 is of type int. Names are strings.",
        ),
        ({"meanings": ["a"]}, InvalidType, "meanings=['a']. Give a dict of names and synsets."),
        ({"information": 3}, InvalidType, "information=3. Give a string or a path."),
        ({"path": 3}, InvalidType, "path=3. Give a string or a path."),
    ],
)
def test_wrong_arguments_of_load_are_refused(tmp_path, options, error, words):
    with pytest.raises(error, match=f"^{re.escape(words)}"):
        WordNet.load(**{"path": SMALL.write(tmp_path / "wordnet")} | options)


def test_without_browns_counts_the_hierarchy_decides(tmp_path):
    """As with Debian's package, which has no counts."""
    folder = SMALL.write(tmp_path / "wordnet")
    wordnet = WordNet.load(folder)
    assert repr(wordnet) == "WordNet(16 synsets, information='intrinsic')"
    (folder / "ic" / "ic-small.dat").rename(folder / "ic" / "ic-brown-resnik-add1.dat")
    counted = WordNet.load(folder)
    assert repr(counted) == "WordNet(16 synsets, information='ic-brown-resnik-add1')"
    np.testing.assert_array_equal(counted.content, loaded(tmp_path).content)


def test_missing_counts_are_named(tmp_path):
    words = (
        "information='ic-brown-resnik-add1' is neither a file nor one of the counts "
        "(ic-small). 'intrinsic' needs only the hierarchy."
    )
    with pytest.raises(MissingData, match=f"^{re.escape(words)}$"):
        loaded(tmp_path, information="ic-brown-resnik-add1")


# -- damaged files -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "old", "new", "words"),
    [
        ("data.noun", "n 01 cat", "n xx cat", "data.noun, line 8: not as WordNet writes it."),
        ("data.noun", "| it barks; |", "", "data.noun, line 7: not as WordNet writes it."),
        (
            "data.noun",
            "@ 00001740",
            "@ 00001741",
            "data.noun refers to the synset '00001741', which",
        ),
        ("index.noun", "dog n 1", "dog n 2", "index.noun, line 8: not as WordNet writes it."),
        ("index.noun", "00001740", "00000001", "index.noun refers to the synset '00000001', which"),
        ("ic-small.dat", "1740n", "1741n", "ic-small.dat counts '1741n', but the database"),
        ("ic-small.dat", " ROOT", "", "ic-small.dat has impossible counts: they must be finite"),
        (
            "ic-small.dat",
            "1740n ",
            "1740n -",
            "ic-small.dat has impossible counts: they must be finite",
        ),
        (
            "ic-small.dat",
            "1740n 19",
            "1740n inf",
            "ic-small.dat has impossible counts: they must be finite",
        ),
        ("ic-small.dat", "1740n ", "1740n x", "ic-small.dat, line 2: not as WordNet writes it"),
    ],
)
def test_damaged_files_are_refused(name, old, new, words):
    files = SMALL.files()
    assert old in files[name]
    files[name] = files[name].replace(old, new, 1)
    with pytest.raises(InvalidInput, match=f"^{re.escape(words)}"):
        parse(files)


@pytest.mark.parametrize("name", ["data.noun", "index.noun"])
def test_truncated_files_are_refused(name):
    """Within a line or between two."""
    files = SMALL.files()
    whole = files[name]
    for end in range(len(LICENCE), whole.rindex("|" if name == "data.noun" else "00")):
        with pytest.raises(InvalidInput):
            parse(files | {name: whole[:end]})


@pytest.mark.parametrize("name", ["ic-small.dat", "noun.exc"])
def test_files_truncated_within_a_line_are_refused(name):
    files = SMALL.files()
    whole = files[name]
    ends = [end for end in range(1, len(whole)) if whole[end - 1] != "\n"]
    for end in ends:
        with pytest.raises(InvalidInput, match=r"breaks off within|not as WordNet|counts '"):
            parse(files | {name: whole[:end]})


@pytest.mark.parametrize("apart", [True, False])
def test_counts_truncated_between_two_lines_are_refused(apart, tmp_path):
    folder = SMALL.write(tmp_path / "wordnet")
    lines = SMALL.files()["ic-small.dat"].splitlines(keepends=True)
    n = len(SMALL.entries)
    for kept in range(1, len(lines)):
        words = f"ic-small.dat lacks {n + 1 - kept} of {n} synsets. It is cut off,"
        path = tmp_path / "ic-small.dat" if apart else folder / "ic" / "ic-small.dat"
        path.write_text("".join(lines[:kept]))
        with pytest.raises(InvalidInput, match=re.escape(words)):
            WordNet.load(folder, information=path if apart else "ic-small")


def test_counts_that_contradict_the_hierarchy_are_refused():
    files = SMALL.files()
    text = files["ic-small.dat"]
    dog = int(SMALL.offset(DOG))
    assert f"{dog}n 6\n" in text
    raised = text.replace(f"{dog}n 6\n", f"{dog}n 16\n")
    with pytest.raises(
        InvalidInput, match=r"impossible counts: .* no larger than those of the hypernyms"
    ):
        parse(files | {"ic-small.dat": raised})
    with pytest.raises(InvalidInput, match=f"counts '{dog}n', but .* it was counted before"):
        parse(files | {"ic-small.dat": f"{text}{dog}n 6\n"})


def test_every_noun_of_the_data_is_in_the_index():
    files = SMALL.files()
    lines = [line for line in files["index.noun"].splitlines(True) if "canis" not in line]
    with pytest.raises(
        InvalidInput, match=r"^index\.noun does not list the synset .* 'canis_familiaris'"
    ):
        parse(files | {"index.noun": "".join(lines)})


def test_an_empty_database_is_refused():
    with pytest.raises(InvalidInput, match=r"data\.noun has no synset"):
        parse({"data.noun": "", "index.noun": "", "noun.exc": ""})
