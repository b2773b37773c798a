import io

import pytest

from linkwise.report.tables import PIPED_WIDTH, Column, console_for, print_line, split_table, wrapped


def column(heading, cells, group=""):
    return Column(heading=heading, cells=tuple(cells), group=group)


KEY = column("#", ["1", "2"])


def printed(columns, width):
    file = io.StringIO()
    console = console_for(file, width=width)
    tables = list(split_table(columns, key=KEY, width=width))
    for table in tables:
        console.print(table, crop=False)
    return len(tables), file.getvalue()


def test_split_table_is_one_table_when_all_fits():
    count, text = printed([column("a", ["10", "20"]), column("b", ["30", "40"])], 40)
    assert count == 1
    assert text.splitlines()[1].split() == ["1", "10", "30"]


def test_split_table_breaks_between_groups_when_narrow():
    columns = [
        column("aaaaaaaa", ["1", "2"], "x"),
        column("b", ["3", "4"], "y"),
        column("cccccccc", ["5", "6"], "y"),
    ]
    count, text = printed(columns, 20)
    assert count == 2
    assert [line.split() for line in text.splitlines() if "#" in line] == [
        ["#", "aaaaaaaa"],
        ["#", "b", "cccccccc"],
    ]


@pytest.mark.parametrize("width", range(1, 30))
def test_split_table_never_cuts_a_cell(width):
    columns = [column(name, ["123456789", "0.00012345"], name) for name in "abc"]
    text = printed(columns, width)[1]
    assert text.count("123456789") == 3
    assert text.count("0.00012345") == 3


def test_console_for_takes_columns_of_the_environment_else_a_fixed_width(monkeypatch):
    monkeypatch.setenv("COLUMNS", "133")
    assert console_for(io.StringIO()).width == 133
    monkeypatch.delenv("COLUMNS")
    assert console_for(io.StringIO()).width == PIPED_WIDTH


@pytest.mark.parametrize("text", ["0", "000", "-5", "abc", "", "\u00b2", "1e3", "8.5"])
def test_console_for_prints_all_when_columns_states_no_width(text, monkeypatch):
    monkeypatch.setenv("COLUMNS", text)
    file = io.StringIO()
    console = console_for(file)
    print_line(console, "all of it")
    assert (console.width, file.getvalue()) == (PIPED_WIDTH, "all of it\n")


def test_console_for_takes_no_width_that_memory_cannot_hold(monkeypatch):
    monkeypatch.setenv("COLUMNS", "99999999999999")
    assert console_for(io.StringIO()).width <= 10_000


def test_wrapped_keeps_long_words_whole():
    assert wrapped("a " + 50 * "b", width=20, indent="  ") == "  a\n  " + 50 * "b"
