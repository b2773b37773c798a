import pytest

from linkwise.documents.tree import parse_yaml
from linkwise.errors import DocumentError

_LAUGHS = "a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + "\n".join(
    f"{name}: &{name} [{', '.join(['*' + before] * 9)}]"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("15e12", 15e12),
        ("8192", 8192),
        ("0x10", 16),
        ("yes", "yes"),
        ("on", "on"),
        ("1_000", "1_000"),
        ("12:30", "12:30"),
        ("2026-01-01", "2026-01-01"),
        ("'8'", "8"),
        ("!!str 8", "8"),
        ("~", None),
        ("none", "none"),
        ("true", True),
        ("-.5", -0.5),
        (".inf", float("inf")),
    ],
)
def test_scalars_follow_the_core_schema_of_yaml_1_2(text, value):
    assert parse_yaml(f"a: {text}").value == {"a": value}


def test_lines_are_those_of_the_keys():
    tree = parse_yaml("a: 1\nb:\n  c:\n  - x\n  - y: 2\n")
    assert [tree.lines[at] for at in (("a",), ("b", "c"), ("b", "c", 1), ("b", "c", 1, "y"))] == [1, 3, 5, 5]


def test_duplicate_keys_are_faults_that_name_both_lines():
    tree = parse_yaml("a: 1\nb: {c: 1, c: 2}\na: 2\n", path="x.yaml")
    assert [str(fault) for fault in tree.faults] == [
        "x.yaml:2: b.c: the key stands here and in line 2; keep one",
        "x.yaml:3: a: the key stands here and in line 1; keep one",
    ]


def test_aliases_are_expanded_when_they_are_few():
    assert parse_yaml("a: &n {x: 1}\nb: *n\n").value == {"a": {"x": 1}, "b": {"x": 1}}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[" * 100_000, "nested more than"),
        ("{a: " * 1000, "nested more than"),
        (_LAUGHS, "values (aliases count"),
        ("a: &x [*x]", "no finished anchor"),
        ("a: *b", "no finished anchor"),
        ("a: [1", "not valid YAML"),
        ("a: 1\n---\nb: 1", "a second document"),
        ("? [a]\n: 1", "a key must be a word"),
        ("a: \x00", "not valid YAML"),
        ("\n".join(f"k{number}: 1" for number in range(30_000)), "values (aliases count"),
    ],
    ids=["brackets", "braces", "laughs", "own alias", "no anchor", "cut", "two", "list key", "nul", "many"],
)
def test_text_is_refused_when_it_is_broken_or_hostile(text, says):
    with pytest.raises(DocumentError) as caught:
        parse_yaml(text, path="x.yaml")
    assert says in str(caught.value)


@pytest.mark.parametrize("character", ["\x00", "\x1b", "\x07", "\ufffe"])
@pytest.mark.parametrize("lines", [1, 3, 5000])
def test_line_is_told_of_a_character_that_may_not_be_there(character, lines):
    text = "a: 1\n" * (lines - 1) + f"b: {character}\n"
    with pytest.raises(DocumentError, match=rf"^x\.yaml:{lines}: not valid YAML"):
        parse_yaml(text, path="x.yaml")


def test_tags_that_construct_objects_are_faults():
    (fault,) = parse_yaml("a: !!python/object/apply:os.system ['true']").faults
    assert "is not read here" in fault.message
