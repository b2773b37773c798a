"""What all files together say."""

from linkwise.cluster.claims import Claim, counted, groups_joined, weigh


def claim(key, value, path="f", **more):
    return Claim(key=key, value=value, path=path, why=str(value), **more)


def test_stated_goes_before_assumed_in_any_order():
    for claims in (
        [claim("nodes", 2, "a", assumed=True), claim("nodes", 3, "b")],
        [claim("nodes", 3, "b"), claim("nodes", 2, "a", assumed=True)],
    ):
        evidence = weigh(claims, nodes=None)
        assert (evidence.value("nodes"), evidence.where("nodes"), evidence.faults) == (3, "b", ())
        assert evidence.notes == ("a: 2; not used, b goes before it",)


def test_stated_claims_that_differ_are_a_fault_and_name_the_option():
    evidence = weigh([claim("nodes", 2, "a"), claim("nodes", 3, "b")], nodes=None)
    assert [str(fault) for fault in evidence.faults] == [
        "b: nodes: contradiction: b says: 3; a says: 2; leave one out, or give --nodes"
    ]


def test_number_of_an_option_goes_before_all():
    evidence = weigh([claim("nodes", 2, "a")], nodes=7)
    assert (evidence.value("nodes"), evidence.faults) == (7, ())
    assert evidence.notes == ("a: 2; not used, --nodes goes before it",)


def test_what_may_be_several_numbers_is_narrowed():
    evidence = weigh([claim("nvlinks", frozenset({4, 12})), claim("nvlinks", frozenset({12}))], nodes=None)
    assert (evidence.value("nvlinks"), evidence.faults, evidence.notes) == (frozenset({12}), (), ())


def test_notes_are_kept_in_order_and_once():
    notes = [Claim(key="note", value=None, path="f", why=why) for why in ("b", "a", "b")]
    assert weigh(notes, nodes=None).notes == ("f: b", "f: a")


def test_groups_are_what_pairs_join_directly_or_through_others():
    groups = groups_joined("abcde", [("a", "b"), ("b", "c"), ("c", "a"), ("d", "d")])
    assert sorted(map(sorted, groups)) == [["a", "b", "c"], ["d"], ["e"]]


def test_nouns_follow_their_number():
    assert (counted(1, "leaf", "leaves"), counted(2, "leaf", "leaves"), counted(0, "host")) == (
        "1 leaf",
        "2 leaves",
        "0 hosts",
    )
