"""Descriptors of animals."""

from __future__ import annotations

from typing import Literal, get_args

from knowmore.errors import InvalidInput
from knowmore.examples import Examples
from papers.data.location import arrays_of

Feature = Literal["sift", "surf", "lss", "rgsift", "phog"]


def animals_with_attributes(feature: Feature = "surf") -> Examples:
    """Animals with Attributes: sixty pictures of each of fifty animals, by one of their features.

    X (3000, D): "sift", "surf" and "lss" count visual words and "rgsift" is the parts they make
    up, D = 2000; "phog" is a histogram of edges, D = 252. Labels are the names of the animals, ids
    such as "antelope/123" add the number of the picture within its class. C. H. Lampert,
    H. Nickisch and S. Harmeling, Learning To Detect Unseen Object Classes by Between-Class
    Attribute Transfer, CVPR 2009.
    """
    if feature not in get_args(Feature):
        raise InvalidInput(
            f"feature={feature!r} is not among the features of the animals. "
            f"Choose one of {', '.join(get_args(Feature))}."
        )
    with arrays_of("awa_features.npz") as file:
        X = file[feature].astype(float)
        animals = file["class_names"][file["labels"]]
        numbers = file["index_in_class"]
        ids = tuple(f"{animal}/{number}" for animal, number in zip(animals, numbers, strict=True))
        return Examples.of(X, animals, ids)
