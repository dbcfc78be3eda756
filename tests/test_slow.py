"""Tests that `make test` leaves out, and the cases of a product that it keeps."""

from __future__ import annotations

from slow import covering


def test_few_cases_show_every_value():
    product = [{("solver", s), ("edit", e)} for s in range(2) for e in range(5)]
    chosen = covering(product, 5)
    assert len(chosen) == 5
    assert set().union(*(product[i] for i in chosen)) == set().union(*product)


def test_no_more_cases_are_chosen_than_there_are():
    assert covering([{"a"}, {"b"}], 9) == [0, 1]
