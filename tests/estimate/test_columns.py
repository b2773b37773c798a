import numpy as np
import pytest

from linkwise.estimate.columns import Axis, Evaluation, Table
from linkwise.estimate.term import term, term_table

CALLS: list[int] = []


@term("1", "a + b", "test")
def total(a, b):
    CALLS.append(np.broadcast(a, b).size)
    return a + b


@term("1", "total x c", "test")
def scaled(total, c):
    return total * c


TERMS = term_table((total, scaled))


def axis(**columns):
    return Axis(columns={name: np.array(values, dtype=np.float64) for name, values in columns.items()})


PRODUCT = Table(
    rows=12,
    axes=(axis(a=[1, 2]), axis(b=[10, 20, 30], d=[3, 2, 1]), axis(c=[1, 100])),
    fixed={"e": np.ones(1)},
)


def test_product_when_a_term_reads_two_of_three_axes_computes_it_once_per_pair():
    CALLS.clear()
    evaluation = Evaluation(PRODUCT, TERMS)
    assert evaluation.compact("scaled").shape == (2, 3, 2)
    assert evaluation.compact("total").shape == (2, 3, 1)
    assert CALLS == [6]


def test_rows_when_a_product_is_spread_vary_fastest_along_the_last_axis():
    evaluation = Evaluation(PRODUCT, TERMS)
    assert list(evaluation["c"][:4]) == [1, 100, 1, 100]
    assert list(evaluation["scaled"][:4]) == [11, 1100, 21, 2100]
    assert list(evaluation["e"]) == [1] * 12


def test_take_when_rows_of_a_product_are_listed_gives_the_same_values():
    rows = np.array([11, 0, 5])
    listed = Evaluation(PRODUCT.take(rows), TERMS)
    assert list(listed["scaled"]) == list(Evaluation(PRODUCT, TERMS)["scaled"][rows])
    assert list(listed["d"]) == list(Evaluation(PRODUCT, TERMS)["d"][rows])


def test_take_when_rows_are_a_plain_list_keeps_their_order():
    table = Table(rows=3, fixed={}, varying={"a": np.arange(3.0), "b": np.ones(3)})
    assert list(Evaluation(table.take(np.array([2, 0])), TERMS)["total"]) == [3, 1]


def test_replaced_when_a_fixed_column_is_given_changes_every_row():
    table = Table(rows=2, fixed={"b": np.ones(1)}, varying={"a": np.arange(2.0)})
    assert list(Evaluation(table.replaced({"b": np.array([5.0])}), TERMS)["total"]) == [5, 6]


def test_column_when_nobody_has_it_is_a_key_error():
    with pytest.raises(KeyError):
        Evaluation(PRODUCT, TERMS)["nothing"]
