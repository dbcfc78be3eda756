"""Every kind of picture feature alone, and all together."""

from __future__ import annotations

import pytest
from quick_runs import coarse_look, read, result_of, verdicts_of

from papers.n_plus_one import picture_kernels
from papers.n_plus_one.picture_kernels import Alone, Seen

pytest.importorskip("cv2", reason="needs the extra images")


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    with coarse_look(tmp_path_factory.mktemp("cache")):
        return result_of(picture_kernels)


def test_the_report_has_every_kind(result, tmp_path):
    report = picture_kernels.report(result, tmp_path)
    assert [row["features"] for row in read(tmp_path / "picture-kernels.csv")] == ["LBP", "SURF"]
    assert len(verdicts_of(report)) == 2
    for one in result.alone:
        assert min(one.default, one.rbf, one.intersection) >= 0
        assert max(one.default, one.rbf, one.intersection) <= 1


@pytest.mark.parametrize("better", [True, False], ids=["better", "worse"])
def test_the_verdicts_follow_from_the_figures(better, tmp_path):
    rates = (0.5, 0.4) if better else (0.4, 0.5)
    alone = (Alone("LBP", 9, *rates, 0.4), Alone("covariance", 45, 0.3, 0.3, None))
    seen = Seen(alone, 0.2, 0.6 if better else 0.3)
    report = picture_kernels.report(seen, tmp_path)
    assert [one.holds for one in verdicts_of(report)] == [better, better]
