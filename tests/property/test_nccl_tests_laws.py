"""Laws of the reader of nccl-tests: a run, or an error of ours; never a crash, a hang or a flood."""

import json
import random
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linkwise.cluster import load_cluster
from linkwise.errors import InputError
from linkwise.network.collective_comparison import compare_run
from linkwise.readers.nccl_tests import parse_nccl_tests

DATA = Path(__file__).parents[1] / "data/nccl_tests"
FILES = sorted(path for path in DATA.iterdir() if path.name != "README.md")
LAWS = settings(max_examples=30, deadline=None)
PIECES = st.sampled_from(
    [
        "",
        "\n",
        "#",
        "-1",
        "nan",
        "inf",
        "1e999",
        "0",
        "N/A",
        "{",
        "}",
        "[",
        "null",
        "true",
        "9" * 30,
        "\x00",
        " 0:",
    ]
)


def try_parse(text):
    told = ""
    try:
        run = parse_nccl_tests(text, path="f")
        assert run.rows
        assert all(row.time_s > 0 and row.size_bytes > 0 for row in run.rows)
        compare_run("all_reduce", load_cluster("dgx-h100:2"), run)
    except InputError as error:
        told = str(error)
    assert len(told) < 10_000


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
@LAWS
@given(seed=st.integers(0, 10**6), piece=PIECES | st.text(max_size=20), cut=st.integers(0, 200))
def test_damaged_log_gives_a_run_or_an_error_of_ours(path, seed, piece, cut):
    text = path.read_text(encoding="utf-8")
    at = random.Random(seed).randrange(len(text))
    try_parse(text[:at] + piece + text[at + cut :])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
@LAWS
@given(seed=st.integers(0, 10**6))
def test_shuffled_lines_give_a_run_or_an_error_of_ours(path, seed):
    lines = path.read_text(encoding="utf-8").splitlines()
    try_parse("\n".join(random.Random(seed).choices(lines, k=len(lines))))


@given(text=st.text(max_size=300))
def test_any_text_gives_a_run_or_an_error_of_ours(text):
    try_parse(text)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["size", "out_of_place", "in_place", "time", "alg_bw", "bus_bw", "devices", "rank", "ngpus"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=15,
)


@given(results=JSON_VALUES, config=JSON_VALUES, arguments=JSON_VALUES, version=JSON_VALUES)
def test_any_json_gives_a_run_or_an_error_of_ours(results, config, arguments, version):
    document = {"results": results, "config": config, "args": arguments, "nccl_version": version}
    try_parse(json.dumps(document))


@pytest.mark.parametrize(
    "text",
    [
        "1 " * 3_000_000,
        "1 1 float " * 500_000,
        "#  Rank 1 Pid 1 on n device 1 [" + "0" * 3_000_000,
        "1 1 float 1 1 1 0 1 1 1 0\n" * 200_000,
        "# nThread " + " " * 3_000_000,
        "\n" * 3_000_000,
        "a_perf/" * 300_000,
        " " * 1500 + "x\n" + (" " * 1500 + "x\n") * 2000,
    ],
    ids=range(8),
)
def test_large_text_is_read_or_refused_in_seconds(text):
    started = time.process_time()
    try_parse(text)
    assert time.process_time() - started < 10
