"""Laws of every import: a document that loads, or an error of ours; never a crash, a hang or a flood."""

import random
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linkwise.cluster.importing import FORMATS, import_cluster
from linkwise.cluster.reading import parse_cluster
from linkwise.errors import InputError

DATA = Path(__file__).parents[1] / "data/imports"
FILES = sorted(path for path in DATA.iterdir() if path.name != "README.md")
LAWS = settings(max_examples=30, deadline=None)
PIECES = st.sampled_from(
    ["", "\n", "\t", "X", "NV99", "GPU0", '"', "<", ">", "{", "}", "[", "]", "[0-9999999999]", "999999999999"]
)


def try_import(text):
    try:
        imported = import_cluster({"f": text}, nodes=2, system="dgx-h100")
    except InputError as error:
        told = str(error)
    else:
        told = imported.text
        parse_cluster(told)
    assert len(told) < 100_000


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
@LAWS
@given(seed=st.integers(0, 10**6), piece=PIECES | st.text(max_size=20), cut=st.integers(0, 200))
def test_damaged_file_gives_a_document_or_an_error_of_ours(path, seed, piece, cut):
    text = path.read_text()
    at = random.Random(seed).randrange(len(text))
    try_import(text[:at] + piece + text[at + cut :])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
@LAWS
@given(seed=st.integers(0, 10**6))
def test_shuffled_lines_give_a_document_or_an_error_of_ours(path, seed):
    lines = path.read_text().splitlines()
    chosen = random.Random(seed)
    try_import("\n".join(chosen.choices(lines, k=len(lines))))


BLOCK = "SwitchName=a Nodes=b\n"
SCAN = 'Switch 2 "S-0a" # "s"\n'
LINK = '1 1[ ] ==( 4X 25.78125 Gbps Active/ LinkUp)==> 2 1[ ] "n mlx5_0" ( )\n'


@pytest.mark.parametrize(
    "text",
    [
        BLOCK + "a" * 1_900_000,
        BLOCK + "\\\n" * 900_000,
        BLOCK + "a = " * 400_000,
        BLOCK + "SwitchName=" + "[1" * 900_000,
        BLOCK + "SwitchName=x Nodes=" + "[1,2]" * 300_000,
        SCAN + "Switch" + " " * 1_000_000 + "x" * 300,
        SCAN + '[1] "S-0a"[1]' + " 4x" * 500_000,
        LINK + "CA:" + " " * 1_000_000 + "x" * 300,
        LINK + "1 1[ ] ==(" + " " * 1_000_000,
        "\tGPU0\nGPU0\tX\n" + "GPU0 " * 300_000,
        "<system>" + "<" * 1_000_000,
        "<system><a " + "b='c' " * 200_000 + "/>",
        '{"instances": ' + "[" * 1_000_000,
        '{"lldp": "' + "\\u0041" * 200_000,
        "- topology: x\n  tree: " + "{" * 100_000,
        "- topology: x\n  tree: " + "[a, " * 20_000,
        " " * 3_000_000,
    ],
    ids=lambda text: text[:12] + text[-6:],
)
def test_text_that_is_made_to_be_slow_is_refused_soon(text):
    start = time.process_time()
    try_import(text)
    assert time.process_time() - start < 10


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
@LAWS
@given(text=st.text(max_size=300))
def test_any_text_is_parsed_or_refused(form, text):
    form.is_it(text)
    try:
        found = form.parse(text, path="f")
    except InputError:
        return
    list(form.claims(found, "f"))
