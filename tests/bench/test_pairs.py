"""Rounds of pairs, and the nodes that are slow in them."""

import pytest

from linkwise.bench.pairs import confirming_rounds, judged_nodes, measured_pairs, rounds_of
from linkwise.errors import InputError


def test_five_rounds_are_the_default_or_all_there_are():
    assert [len(rounds_of(nodes, None)) for nodes in (2, 3, 4, 8, 32)] == [1, 3, 3, 5, 5]
    with pytest.raises(InputError, match="1 to 3 rounds"):
        rounds_of(4, 4)


def test_one_node_has_no_pairs():
    with pytest.raises(InputError, match="two nodes"):
        rounds_of(1, None)


def test_suspects_meet_the_best_nodes_one_suspect_at_a_time():
    scores = {node: 100.0 + node for node in range(8)} | {3: 50.0, 5: 60.0}
    rounds = confirming_rounds((3, 5), scores)
    assert [pairs[0] for pairs in rounds] == [(3, 7), (3, 6), (3, 4), (5, 7), (5, 6), (5, 4)]
    for pairs in rounds:
        nodes = [node for pair in pairs for node in pair]
        assert len(nodes) == len(set(nodes))
        assert not {3, 5} <= set(nodes)
    assert {node for pairs in rounds for pair in pairs for node in pair} == set(range(8))


def test_a_node_whose_pairs_are_all_slow_is_low():
    said = [
        {"event": "sample", "round": number, "pair": list(pair), "time_s": 1e-3 * (1.2 if 6 in pair else 1.0)}
        for number, pairs in enumerate(rounds_of(8, 5))
        for pair in pairs
        for _ in range(5)
    ]
    scores, fleet = judged_nodes(measured_pairs(said), 4_000_000)
    assert scores[0] == pytest.approx(4e9)
    assert fleet.low == (6,)


@pytest.mark.parametrize("pair", [None, [1], [1, "x"], 3])
def test_a_pair_that_is_none_is_refused(pair):
    with pytest.raises(InputError, match="none such"):
        measured_pairs([{"event": "sample", "round": 0, "pair": pair, "time_s": 1.0}])
