"""Laws of every import: a document that loads, or an error of ours; never a crash, a hang or a flood."""

import random
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
