"""Figures: their basis, scaling and sources."""

import pickle

import pytest

from linkwise.figures import Basis, Figure, Source, weakest

BANDWIDTH = Figure(value=3.35e12, unit="B/s", basis=Basis.DATASHEET, source="stas_acc")


def test_weakest_of_several_is_the_one_known_worst() -> None:
    assert weakest(Basis.MEASURED, Basis.ASSUMED, Basis.DATASHEET) is Basis.ASSUMED
    assert weakest(Basis.DATASHEET, Basis.MEASURED) is Basis.MEASURED
    assert weakest(Basis.FITTED, Basis.DERIVED) is Basis.FITTED


def test_weakest_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        weakest()


def test_scaled_keeps_unit_and_source_and_is_derived_at_best() -> None:
    more = BANDWIDTH.scaled(1.1)
    assert more.value == pytest.approx(3.685e12)
    assert (more.unit, more.source, more.basis) == ("B/s", "stas_acc", Basis.DERIVED)
    assert more.note == "times 1.1"


def test_scaled_stays_assumed_when_it_was_assumed() -> None:
    guess = Figure(value=700.0, unit="W", basis=Basis.ASSUMED, source="estimate", note="as H100 SXM")
    assert guess.scaled(2).basis is Basis.ASSUMED
    assert guess.scaled(2).note == "times 2; as H100 SXM"


def test_figure_says_catalogue_unless_a_layer_is_named() -> None:
    assert BANDWIDTH.layer == "catalogue"


def test_values_survive_another_process() -> None:
    source = Source(key="stas_acc", reference="stas00/ml-engineering", date="2026-08")
    assert pickle.loads(pickle.dumps((BANDWIDTH, source))) == (BANDWIDTH, source)
