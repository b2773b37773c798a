import csv
import io

from linkwise.report.plan_csv import write_plan


def rows_of(result):
    file = io.StringIO()
    write_plan(result, file)
    return list(csv.DictReader(io.StringIO(file.getvalue())))


def test_write_plan_gives_every_layout_a_row_with_full_digits(make_layout, make_plan):
    rows = rows_of(make_plan([make_layout(step_time_s=9.123456789), make_layout()]))
    assert [float(row["step_time_s"]) for row in rows] == [9.123456789, 9.351]
    assert rows[0]["hybrid_shard"] == "0"
    assert float(rows[0]["part_compute_s"]) == 0.7421 * 9.123456789
    assert rows[0]["fits"] == "1"


def test_write_plan_gives_the_closest_when_nothing_fits(make_layout, make_plan):
    rows = rows_of(make_plan([], closest=make_layout(short_bytes=1e9)))
    assert [(row["fits"], float(row["short_bytes"])) for row in rows] == [("0", 1e9)]


def test_write_plan_leaves_what_is_not_stated_empty(make_layout, make_plan):
    assert rows_of(make_plan([make_layout(training_time_s=None)]))[0]["training_time_s"] == ""
