"""The faults that `make deviations` plants."""

from collections import Counter

import pytest

from reliability.deviations.__main__ import SURFACES
from reliability.deviations.deviation import Deviation
from reliability.mutants.suites import ROOT

ALL = [deviation for surface in SURFACES for deviation in surface.deviations]


@pytest.mark.parametrize("deviation", ALL, ids=lambda it: it.name)
def test_each_has_its_place_in_the_code_of_today(deviation: Deviation) -> None:
    text = (ROOT / deviation.file).read_text()
    assert text.count(deviation.old) == 1


def test_there_are_enough_of_them_and_each_has_a_name_of_its_own() -> None:
    names = Counter((surface.name, it.name) for surface in SURFACES for it in surface.deviations)
    assert len(names) == len(ALL) >= 40
