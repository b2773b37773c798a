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


def test_print_plan_says_why_others_fell_biggest_first(make_layout, make_plan):
    reasons = {f"reason {n}": n for n in range(1, 12)}
    text = printed(make_plan([make_layout()], infeasible=reasons))
    assert "Looked at 123,456 layouts" in text
    assert re.search(r"11  reason 11\n +10  reason 10\n", text)
    assert "3 further reasons, 6 layouts" in text


def test_print_plan_gives_parts_in_seconds_when_there_is_one_layout(make_layout, make_plan):
    text = printed(make_plan([make_layout()]))
    assert re.search(r"compute +6\.94 s +74\.2 %", text)
    assert re.search(r"weights +35\.6 GB +50\.0 %", text)


def test_print_plan_gives_the_closest_when_nothing_fits(make_layout, make_plan):
    closest = make_layout(memory_bytes=90e9, short_bytes=4.48e9, stage=3)
    text = printed(make_plan([], closest=closest))
    assert "No layout fits. The closest lacks 4.48 GB per GPU on stage 3" in text
    assert re.search(r"activations +45 GB +50\.0 %", text)


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
