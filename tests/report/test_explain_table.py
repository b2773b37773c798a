import io

import pytest

from linkwise.report.explain_table import print_explanation, print_term
from linkwise.report.results import ExplainResult, InputResult, SensitivityResult, TermResult
from linkwise.report.tables import console_for

RATE = InputResult(
    name="memory_bytes_per_s", value=3.35e12, unit="B/s", origin="figure", basis="datasheet",
    source="data sheet", layer="catalogue",
)  # fmt: skip
TERM = TermResult(
    name="norm_s", group="compute", value=0.00123, unit="s", formula="bytes / BW", source="roofline",
    inputs=[InputResult(name="tokens", value=8192, origin="job"), RATE],
)  # fmt: skip


def printed(print_one, value, width):
    file = io.StringIO()
    print_one(value, console_for(file, width=width))
    return file.getvalue()


def explanation(make_layout, make_plan):
    planned = make_plan([])
    tenth = SensitivityResult(
        figure="NIC",
        change="10 % more",
        columns=["nic_bytes_per_s"],
        step_time_s=9.3,
        saved_s=0.05,
        saved_fraction=0.0053,
    )
    return ExplainResult(
        job=planned.job, cluster=planned.cluster, layout=make_layout(), terms=[TERM, TERM], sensitivities=[tenth],
        assumptions=["something"],
    )  # fmt: skip


def test_print_explanation_lists_each_figure_once(make_layout, make_plan):
    text = printed(print_explanation, explanation(make_layout, make_plan), 100)
    assert text.count("memory_bytes_per_s = 3.35 TB/s (datasheet, catalogue)") == 1
    assert "of tokens 8,192 (job), memory_bytes_per_s 3.35 TB/s (datasheet)" in text
    assert "10 % more: NIC" in text
    assert "  - something" in text


@pytest.mark.parametrize("short_bytes", [0.0, 14.3e9])
def test_print_explanation_says_first_that_the_layout_does_not_fit(short_bytes, make_layout, make_plan):
    one = explanation(make_layout, make_plan)
    one = one.model_copy(update={"layout": make_layout(short_bytes=short_bytes, stage=2)})
    above = printed(print_explanation, one, 100).split("step time")[0]
    says = "The layout does not fit. It lacks 14.3 GB per GPU on stage 2; times are as if it did."
    assert (says in above) == (short_bytes > 0)


def test_print_explanation_keeps_to_the_width(make_layout, make_plan):
    text = printed(print_explanation, explanation(make_layout, make_plan), 80)
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 80


def test_print_term_gives_each_input_a_line_and_its_source():
    lines = printed(print_term, TERM, 100).splitlines()
    assert lines[0] == "norm_s = 1.23 ms"
    assert any(
        line.split() == ["memory_bytes_per_s", "3.35", "TB/s", "figure", "datasheet", "catalogue"]
        for line in lines
    )
    assert "  memory_bytes_per_s: data sheet" in lines
