"""Layouts: derived degrees, words of the choices, and what is said of degrees that do not fit."""

import pytest

from linkwise.errors import InputError
from linkwise.layout import ContextExchange, Layout, RankOrder, Recompute, Schedule


def test_layout_on_gpus_derives_the_data_degree():
    assert Layout(tensor=4, context=2, pipeline=4).on(256).data == 8


def test_layout_on_gpus_says_which_product_does_not_divide():
    with pytest.raises(
        InputError, match=r"tensor 8 x context 1 x pipeline 3 = 24 does not divide 256 GPUs.*240"
    ):
        Layout(tensor=8, pipeline=3).on(256)


def test_layout_on_gpus_refuses_a_data_degree_that_disagrees():
    with pytest.raises(InputError, match=r"data 4 x 16 .* is 64 GPUs but the cluster has 256; .* data: 16"):
        Layout(tensor=4, pipeline=4, data=4).on(256)


@pytest.mark.parametrize("choices", [Recompute, Schedule, RankOrder, ContextExchange])
def test_every_choice_is_read_back_from_its_word(choices):
    for choice in choices:
        assert choices.from_word(choice.word) is choice


def test_words_are_those_of_the_field():
    assert [each.word for each in Schedule] == ["1f1b", "gpipe", "zero-bubble"]
    assert [each.word for each in ContextExchange] == ["ring", "all-to-all"]
    assert [each.word for each in Recompute] == ["none", "selective", "full"]


def test_an_unknown_word_lists_the_known_ones():
    with pytest.raises(InputError, match="'dualpipe' is not known; choose one of: 1f1b, gpipe, zero-bubble"):
        Schedule.from_word("dualpipe")
