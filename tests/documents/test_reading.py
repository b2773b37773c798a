import io
from typing import Annotated

import jsonschema
import pytest
from pydantic import AfterValidator, Discriminator, Tag, model_validator

from linkwise.documents import (
    Bytes,
    BytesPerSecond,
    Count,
    Document,
    Misfits,
    json_schema,
    parse_document,
    read_document,
)
from linkwise.documents.text import LARGEST_BYTES
from linkwise.errors import DocumentError, UnknownName


def _colour(given: str) -> str:
    if given not in ("red", "green"):
        raise UnknownName.among(("red", "green"), kind="colour", given=given)
    return given


class _Part(Document):
    size: Bytes
    rate: BytesPerSecond | None = None

    @model_validator(mode="after")
    def _fits(self):
        if self.rate is not None and self.rate > self.size:
            raise Misfits([("rate", "is faster than the part is large"), ("", "does not fit")])
        return self


class _Box(Document):
    name: str
    count: Count = 1
    colour: Annotated[str, AfterValidator(_colour)] = "red"
    part: Annotated[
        Annotated[str, Tag("name")] | Annotated[_Part, Tag("shape")],
        Discriminator(lambda given: "shape" if isinstance(given, dict) else "name"),
    ] = "none"
    parts: list[_Part] = []


def _faults(text):
    with pytest.raises(DocumentError) as caught:
        parse_document(text, _Box, "box/1", path="box.yaml")
    return str(caught.value).splitlines()


def test_document_is_read_when_it_is_right():
    box = parse_document("linkwise: box/1\nname: a\npart: {size: 80 GB}\n", _Box, "box/1")
    assert (box.name, box.part.size) == ("a", 80e9)


def test_all_faults_are_told_at_once_in_the_order_of_the_lines():
    text = (
        "linkwise: box/1\n"
        "nmae: a\n"
        "count: 0\n"
        "colour: gren\n"
        "part:\n"
        "  size: 80\n"
        "  rte: 1 B/s\n"
        "parts:\n"
        "- size: 5 s\n"
        "- size: 1 B\n"
        "  rate: 2 B/s\n"
        "count: 5\n"
    )
    assert _faults(text) == [
        "box.yaml:1: name: the key is required and missing",
        "box.yaml:2: nmae: unknown key; did you mean 'name'?",
        "box.yaml:3: count: 0 is not accepted: input should be greater than or equal to 1",
        "box.yaml:4: colour: unknown colour 'gren'; did you mean green?",
        "box.yaml:6: part.size: '80' has no unit; write a size in bytes as '80 GB'",
        "box.yaml:7: part.rte: unknown key; did you mean 'rate'?",
        "box.yaml:9: parts.0.size: 's' is not a unit of a size in bytes; write it as '80 GB'",
        "box.yaml:10: parts.1: does not fit",
        "box.yaml:11: parts.1.rate: is faster than the part is large",
        "box.yaml:12: count: the key stands here and in line 3; keep one",
    ]


@pytest.mark.parametrize("given", ["true", "-5 GB", "0 GB", "[1]", "null", "5e400 GB"])
def test_quantity_is_refused_when_it_is_no_positive_number_with_a_unit(given):
    (fault,) = _faults(f"linkwise: box/1\nname: a\npart: {{size: {given}}}\n")
    assert fault.startswith("box.yaml:3: part.size: ")


@pytest.mark.parametrize("given", ["3.5", "'3'", "true", "1e3", "99999999999999999999999"])
def test_count_is_refused_when_it_is_no_whole_number_in_reach(given):
    (fault,) = _faults(f"linkwise: box/1\nname: a\ncount: {given}\n")
    assert fault.startswith("box.yaml:3: count: ")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty; start it with 'linkwise: box/1'"),
        ("- a", "is not a mapping"),
        ("name: a", "the header is missing"),
        ("linkwise: job/1\nfoo: 1", "this document is a job/1, but a box/1 is read here"),
        ("linkwise: box/2\nname: a", "it reads box/1"),
        ("linkwise: 1\nname: a", "is not a kind and a version"),
    ],
)
def test_header_is_checked(text, says):
    (fault,) = _faults(text)
    assert says in fault


def test_file_is_refused_with_the_nearest_name_when_it_is_missing(tmp_path):
    (tmp_path / "cluster.yaml").write_text("")
    with pytest.raises(DocumentError, match=r"no such file; did you mean '.*cluster\.yaml'"):
        read_document(tmp_path / "clutser.yaml", _Box, "box/1")


@pytest.mark.parametrize("missing", ["none.yaml", "x.yaml", "run"])
def test_no_name_is_offered_that_is_like_the_missing_one_by_its_ending_alone(tmp_path, missing):
    (tmp_path / "triton.yaml").write_text("")
    with pytest.raises(DocumentError, match="no such file") as caught:
        read_document(tmp_path / missing, _Box, "box/1")
    assert "did you mean" not in str(caught.value)


def test_file_is_refused_when_it_is_no_text_or_a_directory_or_too_large(tmp_path):
    latin = tmp_path / "latin"
    latin.write_bytes(b"a: 1\nb: \xff\n")
    with pytest.raises(DocumentError, match="latin:2: is not UTF-8"):
        read_document(latin, _Box, "box/1")
    with pytest.raises(DocumentError, match="is a directory"):
        read_document(tmp_path, _Box, "box/1")
    with pytest.raises(DocumentError, match="larger than 10 MB"):
        read_document("-", _Box, "box/1", stdin=io.BytesIO(b"#" * (LARGEST_BYTES + 1)))


def test_standard_input_is_read_for_a_dash():
    stdin = io.BytesIO(b'{"linkwise": "box/1", "name": "a"}')
    assert read_document("-", _Box, "box/1", stdin=stdin).name == "a"


def test_json_schema_accepts_what_is_read_and_refuses_bare_numbers():
    schema = json_schema(_Box, "box/1")
    jsonschema.validate({"linkwise": "box/1", "name": "a", "parts": [{"size": "80 GB"}]}, schema)
    for wrong in ({"name": "a"}, {"linkwise": "box/1", "name": "a", "parts": [{"size": "80"}]}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, schema)
