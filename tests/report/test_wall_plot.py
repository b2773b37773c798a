import importlib.util

import pytest

from linkwise.cluster import load_cluster
from linkwise.errors import InputError
from linkwise.job import Job
from linkwise.model import load_model
from linkwise.report.comparison import compare_result
from linkwise.report.wall_plot import check_plot, plot_walls
from linkwise.search import compare
from linkwise.search.network_wall import Scaling, network_wall

JOB = Job(model=load_model("llama-3.1-8b"), sequence_length=4096, global_batch=64)


@pytest.fixture(scope="module")
def result():
    cluster = load_cluster("dgx-h100:2")
    wall = network_wall(JOB, cluster, most_gpus=64, share_fraction=0.4)
    one = compare_result(compare(JOB, [cluster]), [wall], wall_share_fraction=0.4, scaling=Scaling.WEAK)
    names = ["$_{x}^ costs $2", *(f"other {number}" for number in range(8))]
    return one.model_copy(update={"wall": [one.wall[0].model_copy(update={"name": name}) for name in names]})


@pytest.mark.requires("matplotlib")
@pytest.mark.parametrize(("name", "starts"), [("a.svg", b"<?xml"), ("a.png", b"\x89PNG"), ("a.PDF", b"%PDF")])
def test_plot_walls_draws_the_kind_of_picture_that_the_name_says(result, tmp_path, name, starts):
    path = tmp_path / name
    plot_walls(result, path)
    assert path.read_bytes().startswith(starts)


@pytest.mark.requires("matplotlib")
def test_plot_walls_draws_the_same_bytes_each_time(result, tmp_path):
    one, two = tmp_path / "one.svg", tmp_path / "two.svg"
    plot_walls(result, one)
    plot_walls(result, two)
    assert one.read_bytes() == two.read_bytes()


@pytest.mark.requires("matplotlib")
def test_plot_walls_draws_text_as_it_is_and_the_wall_in_view(result, tmp_path):
    import matplotlib as mpl

    with mpl.rc_context({"svg.fonttype": "none"}):
        plot_walls(result, tmp_path / "a.svg")
    text = (tmp_path / "a.svg").read_text()
    for words in ("costs $2", "9  other 7", "wall, 40 %", "llama-3.1-8b, bf16"):
        assert words in text, words


@pytest.mark.parametrize(
    ("name", "says"), [("a.jpg", ".svg, .png"), ("a", "no picture"), ("no/a.svg", "no directory")]
)
def test_check_plot_refuses_what_is_no_picture_or_has_no_place(tmp_path, name, says):
    with pytest.raises(InputError, match=says):
        check_plot(tmp_path / name)


def test_check_plot_without_matplotlib_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", {}.get)
    with pytest.raises(InputError, match="linkwise\\[plot\\]"):
        check_plot(tmp_path / "a.svg")
