"""Ids and labels as people write them."""

from __future__ import annotations

import pytest

import knowmore
from knowmore.workbench import LearnOptions, learn
from knowmore.workbench.model import is_numeral, same_id


@pytest.mark.parametrize("digits", [10, 10_000])
def test_names_of_many_digits_are_names(digits):
    """Python converts no text of thousands of digits to a number."""
    name = "7" * digits
    assert is_numeral(name) == (digits == 10)
    assert same_id(name, {"rose"}) == name
    assert same_id(name, {name}) == name


def test_a_table_with_names_of_many_digits_is_learnt(tmp_path):
    names = ["1" * 5000, "2" * 5000]
    table, model = tmp_path / "table.csv", tmp_path / "m.km"
    table.write_text("id,label,f0\n" + "".join(f"{n},{n},{i}\n" for i, n in enumerate(names)))
    learn(LearnOptions(model, str(table)), lambda *_: None)
    with knowmore.open(model) as store:
        assert store.ids_.tolist() == names
        assert store.classes_.tolist() == names
