import io
import re

import pytest
from rich.console import Console

from linkwise.report.plan_table import print_plan
from linkwise.report.tables import console_for


def printed(result, width=100):
    file = io.StringIO()
    print_plan(result, console_for(file, width=width))
    return file.getvalue()


@pytest.mark.parametrize("width", [80, 100, 120, 160])
def test_print_plan_keeps_every_number_and_the_width(ten_layouts, make_plan, width):
    text = printed(make_plan(ten_layouts), width)
    assert max(len(line.rstrip()) for line in text.splitlines()) <= width
    assert "…" not in text
    for words in (
        "128x12",
        "65536",
        "7.95 to 11.0",
        "3,500",
        "105 to 146",
        "71.2",
        "85.5",
        "zero-bubble",
        "74.2",
    ):
        assert words in text, words


def test_print_plan_keeps_numbers_when_narrower_than_they_are(ten_layouts, make_plan):
    text = printed(make_plan(ten_layouts), 20)
    assert "tokens/s" in text
    assert "105 to 146" in text


def test_print_plan_fits_one_table_when_wide(make_layout, make_plan):
    lines = printed(make_plan([make_layout(), make_layout(step_time_s=9.9)]), 160).splitlines()
    assert sum("step time" in line for line in lines) == 1


def test_print_plan_leaves_out_columns_that_all_layouts_share(make_layout, make_plan):
    text = printed(make_plan([make_layout(), make_layout(step_time_s=9.9)]), 120)
    assert "all: sequence parallel, schedule 1f1b, rank order tensor-context-data-pipeline" in text
    assert "0 everywhere: context, expert" in text


@pytest.mark.parametrize(
    ("changes", "shown", "shared"),
    [
        ([{"tensor": 1}, {}], [], "sequence parallel"),
        ([{}, {"context": 2}], [], "context exchange ring"),
        ([{"pipeline": 1, "virtual_pipeline": 1, "schedule": "gpipe"}, {}], [], "schedule 1f1b"),
        ([{"context": 2, "context_exchange": "all-to-all"}, {"context": 2}], ["exchange"], None),
        ([{"sequence_parallel": False}, {}, {"tensor": 1}], ["SP"], None),
    ],
)
def test_print_plan_has_a_column_only_where_layouts_that_a_habit_concerns_differ(
    changes, shown, shared, make_layout, make_plan
):
    text = printed(make_plan([make_layout(**each) for each in changes]), 160)
    heading = next(line for line in text.splitlines() if line.startswith("#")).split()
    assert [word for word in ("SP", "exchange", "schedule", "ranks") if word in heading] == shown
    assert shared is None or shared in next(line for line in text.splitlines() if line.startswith("all:"))


LACKING = {f"memory: part {n}": n for n in range(1, 12)}
ILLEGAL = {f"{n} layers do not divide": 100 * n for n in range(1, 7)}


def test_print_plan_says_what_others_lack_biggest_first_and_apart_from_what_is_no_layout(
    make_layout, make_plan
):
    text = printed(make_plan([make_layout()], infeasible={**LACKING, **ILLEGAL}))
    lacking, illegal = text.split("Combinations of degrees that are no layout:\n")
    assert "Looked at 123,456 layouts, 24,691 of them fit. What the others lack:" in lacking
    assert re.search(r"11  memory: part 11\n +10  memory: part 10\n", lacking)
    assert "5 further reasons, 15 layouts" in lacking
    assert re.search(r"^  600  6 layers do not divide\n  500  5 layers", illegal)
    assert "2 further reasons, 300 combinations" in illegal


@pytest.mark.parametrize("infeasible", [{}, LACKING, ILLEGAL])
def test_print_plan_heads_no_empty_list(infeasible, make_layout, make_plan):
    text = printed(make_plan([make_layout()], infeasible=infeasible))
    assert ("What the others lack:" in text) == (infeasible is LACKING)
    assert ("that are no layout:" in text) == (infeasible is ILLEGAL)


@pytest.mark.parametrize("width", [40, 60])
def test_print_plan_wraps_every_sentence(width, make_layout, make_plan):
    tight = make_layout(memory_bytes=85e9)
    lines = printed(make_plan([tight], infeasible={**LACKING, **ILLEGAL}), width).splitlines()
    below = next(place for place, line in enumerate(lines) if line.startswith("Looked"))
    assert max(map(len, lines[below:])) <= width


@pytest.mark.parametrize(
    ("filled", "says"),
    [
        ((0.85, 0.89), None),
        ((0.85, 0.91), "Layout 2 leaves less than 10 % of the memory free"),
        ((0.99, 0.5, 0.95), "Layouts 1, 3 leave less than 10 % of the memory free"),
        ((0.99, 0.95), "All of these layouts leave less than 10 %"),
        ((0.5, *10 * [0.95]), "10 of these layouts leave less than 10 %"),
    ],
)
def test_print_plan_warns_of_memory_that_is_nearly_full(filled, says, make_layout, make_plan):
    layouts = [make_layout(memory_bytes=share * 85.52e9) for share in filled]
    text = printed(make_plan(layouts), 120)
    assert ("of the memory free" in text) == (says is not None)
    assert says is None or says in text


@pytest.mark.parametrize("hybrid", [True, False])
def test_print_plan_says_what_3h_is_when_it_is_there(hybrid, make_layout, make_plan):
    text = printed(make_plan([make_layout(zero_stage=3, hybrid_shard=hybrid), make_layout()]))
    assert ("ZeRO 3h: sharded inside one NVLink domain" in text) == hybrid


def test_print_plan_gives_parts_in_seconds_when_there_is_one_layout(make_layout, make_plan):
    text = printed(make_plan([make_layout()]))
    assert re.search(r"compute +6\.94 s +74\.2 %", text)
    assert re.search(r"weights +35\.6 GB +50\.0 %", text)


def test_print_plan_gives_the_closest_when_nothing_fits(make_layout, make_plan):
    closest = make_layout(memory_bytes=90e9, short_bytes=4.48e9, stage=3)
    text = printed(make_plan([], closest=closest))
    assert "No layout fits. The closest lacks 4.48 GB per GPU on stage 3" in text
    assert re.search(r"activations +45 GB +50\.0 %", text)


def test_print_plan_escapes_what_a_name_would_do_to_the_terminal(make_layout, make_plan):
    result = make_plan([make_layout()])
    cluster = result.cluster.model_copy(update={"name": "\x1b[31mred\rline"})
    text = printed(result.model_copy(update={"cluster": cluster}))
    assert "\\x1b[31mred\\rline: 256 h100-sxm" in text
    assert not set("\x1b\r") & set(text)


@pytest.mark.parametrize(("ratio", "says"), [(1.0, False), (2.0, True)])
def test_print_plan_says_how_far_the_fabric_is_oversubscribed(ratio, says, make_layout, make_plan):
    result = make_plan([make_layout()])
    cluster = result.cluster.model_copy(update={"oversubscription": ratio})
    text = printed(result.model_copy(update={"cluster": cluster}), 160)
    assert ("infiniband-ndr-400 oversubscribed 2:1" in text) is says


def test_print_plan_is_plain_when_piped(make_layout, make_plan):
    assert "\x1b" not in printed(make_plan([make_layout(), make_layout()]))


def test_print_plan_is_coloured_on_a_terminal_unless_no_color(make_layout, make_plan, monkeypatch):
    result = make_plan([make_layout(), make_layout()])
    for no_color, coloured in ((None, True), ("1", False)):
        monkeypatch.setenv("TERM", "xterm-256color")
        monkeypatch.setenv("NO_COLOR", "1") if no_color else monkeypatch.delenv("NO_COLOR", raising=False)
        file = io.StringIO()
        print_plan(result, Console(file=file, force_terminal=True, width=100, highlight=False))
        assert ("\x1b[32m" in file.getvalue()) is coloured
