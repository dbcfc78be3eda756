"""The real WordNet, and the classes of the real data sets."""

from __future__ import annotations

import numpy as np
import pytest

from knowmore.errors import InvalidInput, MissingData
from papers.data import CLASS_MEANINGS, animals_with_attributes, caltech101, caltech256
from papers.data import wordnet as load_wordnet


def read(load, *arguments, **options):
    """WordNet, or a skip where the data are absent."""
    try:
        return load(*arguments, **options)
    except MissingData as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def wordnet():
    return read(load_wordnet)


@pytest.fixture(scope="module")
def classes():
    """The names of all classes by their data sets."""
    loads = {
        "caltech101": lambda: caltech101(leave_out=["BACKGROUND_Google"]),
        "caltech256": caltech256,
        "animals": lambda: animals_with_attributes("phog"),
    }
    return {name: np.unique(read(load).labels).tolist() for name, load in loads.items()}


def kinds(wordnet, name):
    """Every synset above a name."""
    (synset,) = wordnet.synsets(name)
    found, ring = {synset.name}, [synset]
    while ring:
        ring = [up for one in ring for up in wordnet.hypernyms(one.name)]
        found |= {one.name for one in ring}
    return found


@pytest.mark.parametrize(
    ("a", "b", "value"),
    [("dog", "cat", "7.9117"), ("dog", "airplane", "1.5318"), ("car", "motorcycle", "7.2734")],
)
def test_published_values(a, b, value):
    brown = read(load_wordnet, information="ic-brown")
    assert f"{brown.resnik(f'{a}.n.01', f'{b}.n.01'):.4f}" == value


@pytest.mark.parametrize(
    ("name", "others"), [("gas", "ga"), ("species", "specie"), ("glasses", "glass")]
)
def test_a_noun_is_no_plural_of_another(wordnet, name, others):
    meant = {synset.name for synset in wordnet.synsets(name)}
    assert meant
    assert not meant & {synset.name for synset in wordnet.synsets(others)}


def test_exceptions_are_found_with_blanks_or_hyphens(wordnet):
    for name in "men of war", "men-of-war", "man of war":
        assert wordnet.synsets(name) == wordnet.synsets("man-of-war")


def test_all_synsets_are_read(wordnet):
    assert len(wordnet.nouns) == 82115
    assert wordnet.hypernyms("entity.n.01") == ()
    roots = np.flatnonzero(np.diff(wordnet.nouns.above_from) == 0)
    assert roots.tolist() == [0]


@pytest.mark.parametrize(
    "information", ["ic-brown-resnik-add1", "ic-brown", "ic-semcor", "intrinsic"]
)
def test_hyponyms_have_at_least_the_content_of_their_hypernyms(wordnet, information):
    content = read(load_wordnet, information=information).content
    nouns = wordnet.nouns
    below = np.repeat(np.arange(len(nouns)), np.diff(nouns.above_from))
    # Counts are written in fifteen digits.
    assert (content[nouns.above] <= content[below] + 1e-14).all()
    assert content[0] == 0


def test_everything_can_be_compared_by_default(wordnet):
    assert np.isfinite(wordnet.content).all()
    assert len(np.unique(wordnet.content)) > 1000


@pytest.mark.parametrize(
    ("noun", "synset"),
    [
        ("mice", "mouse.n.01"),
        ("school buses", "school_bus.n.01"),
        ("Wolves", "wolf.n.01"),
        ("hot-air balloons", "hot-air_balloon.n.01"),
        ("speed-boat", "speedboat.n.01"),
        ("firemen", "fireman.n.01"),
        ("butterflies", "butterfly.n.01"),
        ("touring-bike", "bicycle.n.01"),
        ("electric-guitar-101", "electric_guitar.n.01"),
        ("grand_piano", "grand_piano.n.01"),
        ("car_side", "car.n.01"),
        ("252.car-side-101", "car.n.01"),
    ],
)
def test_nouns_as_people_write_them(wordnet, noun, synset):
    assert synset in {one.name for one in wordnet.synsets(noun)}


# -- the classes of the data sets ----------------------------------------------------------------


def test_every_class_means_something(classes, wordnet):
    names = {name for some in classes.values() for name in some}
    assert names == set(CLASS_MEANINGS)
    assert all(len(wordnet.synsets(name)) == 1 for name in names)
    assert "frobnicator" not in wordnet


KINDS = {
    "animal.n.01": "Leopards "
    "ant bass beaver brontosaurus butterfly cougar_body cougar_face crab crayfish "
    "crocodile crocodile_head dalmatian dolphin dragonfly elephant emu flamingo flamingo_head "
    "gerenuk hawksbill hedgehog ibis kangaroo llama lobster mayfly nautilus octopus okapi "
    "panda pigeon platypus rhino rooster scorpion sea_horse starfish stegosaurus tick "
    "trilobite wild_cat 007.bat 009.bear 024.butterfly 028.camel 038.chimp 040.cockroach "
    "048.conch 049.cormorant 052.crab-101 056.dog 057.dolphin-101 060.duck 064.elephant-101 "
    "065.elk 080.frog 084.giraffe 085.goat 087.goldfish 089.goose 090.gorilla 093.grasshopper "
    "100.hawksbill-101 105.horse 111.house-fly 113.hummingbird 114.ibis-101 116.iguana "
    "121.kangaroo-101 124.killer-whale 129.leopards-101 134.llama-101 150.octopus 151.ostrich "
    "152.owl 158.penguin 164.porcupine 166.praying-mantis 168.raccoon 179.scorpion-101 "
    "186.skunk 189.snail 190.snake 198.spider 201.starfish-101 207.swan 228.triceratops "
    "230.trilobite-101 250.zebra 254.greyhound 256.toad",
    "plant.n.02": "bonsai joshua_tree lotus sunflower water_lilly 015.bonsai-101 025.cactus "
    "068.fern 103.hibiscus 118.iris 154.palm-tree 204.sunflower-101",
    "fungus.n.01": "147.mushroom",
    "food.n.01": "pizza 078.fried-egg 095.hamburger 108.hot-dog 196.spaghetti 206.sushi",
    "food.n.02": "strawberry 092.grapes 221.tomato 242.watermelon",
    "body_part.n.01": "Faces Faces_easy brain 020.brain-101 253.faces-easy-101",
    "imaginary_being.n.01": "garfield snoopy 236.unicorn",
    "celestial_body.n.01": "177.saturn",
    "sign.n.02": "stop_sign",
    "paper_money.n.01": "dollar_bill",
}


def test_classes_are_what_the_pictures_show(classes, wordnet):
    """Animals are animals, and so on; what is nothing else was made by people."""
    kind_of = dict.fromkeys(classes["animals"], "animal.n.01")
    kind_of |= {name: kind for kind, names in KINDS.items() for name in names.split()}
    assert set(kind_of) <= set(CLASS_MEANINGS)
    for name in CLASS_MEANINGS:
        assert kind_of.get(name, "artifact.n.01") in kinds(wordnet, name), name


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("bass", "fish.n.01"),
        ("sea_horse", "fish.n.01"),
        ("crayfish", "crustacean.n.01"),
        ("lobster", "crustacean.n.01"),
        ("tick", "arachnid.n.01"),
        ("nautilus", "cephalopod.n.01"),
        ("wild_cat", "feline.n.01"),
        ("panda", "procyonid.n.01"),
        ("hedgehog", "insectivore.n.01"),
        ("emu", "bird.n.01"),
        ("dolphin", "whale.n.02"),
        ("car_side", "motor_vehicle.n.01"),
        ("Motorbikes", "motor_vehicle.n.01"),
        ("inline_skate", "skate.n.01"),
        ("ewer", "vessel.n.03"),
        ("cup", "container.n.01"),
        ("barrel", "vessel.n.03"),
        ("schooner", "sailing_vessel.n.01"),
        ("wrench", "hand_tool.n.01"),
        ("watch", "timepiece.n.01"),
        ("lamp", "furniture.n.01"),
        ("014.blimp", "aircraft.n.01"),
        ("069.fighter-jet", "aircraft.n.01"),
        ("065.elk", "deer.n.01"),
        ("256.toad", "amphibian.n.03"),
        ("054.diamond-ring", "jewelry.n.01"),
        ("mole", "insectivore.n.01"),
        ("seal", "aquatic_mammal.n.01"),
        ("chihuahua", "dog.n.01"),
        ("otter", "carnivore.n.01"),
        ("mouse", "rodent.n.01"),
        ("bat", "placental.n.01"),
    ],
)
def test_doubtful_names_mean_the_right_thing(wordnet, name, kind):
    assert kind in kinds(wordnet, name)


def test_relatives_are_found_among_the_classes(classes, wordnet):
    names = [name for name in classes["caltech101"] if name != "Faces_easy"]

    def nearest(name, k):
        return wordnet.most_similar(name, [one for one in names if one != name], k)

    assert nearest("okapi", 1) == ("gerenuk",)
    assert set(nearest("ketch", 2)) == {"schooner", "ferry"}
    assert nearest("cougar_face", 1) == ("cougar_body",)
    assert set(nearest("lobster", 2)) == {"crab", "crayfish"}
    assert set(nearest("emu", 4)) <= {"flamingo", "flamingo_head", "ibis", "pigeon", "rooster"}
    assert nearest("snoopy", 1) == ("garfield",)


def test_other_names_need_the_table():
    bare = read(load_wordnet, meanings={})
    with pytest.raises(InvalidInput, match="Did you mean 'water_lily' by 'water_lilly'"):
        bare.most_similar("gerenuk", ["okapi", "water_lilly", "stop_sign"], 1)
