"""NCCL's graph XML, and what the doctor makes of it."""

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linkwise.diagnose.doctor import diagnose
from linkwise.errors import DocumentError
from linkwise.readers.job_log.reading import parse_job_log
from linkwise.readers.nccl_graph import parse_nccl_graphs

_GRAPH = """<graphs version="1">
  <graph id="0" pattern="4" crossnic="0" nchannels="2" speedintra="20" speedinter="12" typeintra="NVL" typeinter="PXB">
    <channel><net dev="0"/><gpu dev="0"/><gpu dev="1"/><net dev="0"/></channel>
    <channel><net dev="1"/><gpu dev="1"/><gpu dev="0"/><net dev="1"/></channel>
  </graph>
</graphs>
"""


def test_a_graph_is_read():
    (graph,) = parse_nccl_graphs(_GRAPH)
    assert (graph.id, graph.channels, graph.nets, graph.line) == (0, 2, ("0", "1"), 2)
    assert (graph.intra_bytes_per_s, graph.inter_bytes_per_s) == (20e9, 12e9)


def test_a_graph_of_links_that_cannot_be_is_a_wrong_topology():
    found = diagnose(parse_job_log([("g.xml", _GRAPH.replace('"20"', '"0.2"').encode())]))
    assert [(each.cause, each.evidence[0].line) for each in found.findings] == [("topology", 2)]
    sound = diagnose(parse_job_log([("g.xml", _GRAPH.encode())]))
    assert (sound.findings, sound.unread) == ((), ())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('<!DOCTYPE graphs [<!ENTITY a "aa">]><graphs><graph id="&a;"/></graphs>', "document type"),
        ("<graphs></graphs>", "has no graph"),
        ("<system/>", "not NCCL's graphs"),
        ("<graphs><graph", "not well-formed"),
        (_GRAPH.replace('"20"', '"nan"'), "speedintra is 'nan'"),
        ("<graphs>" + "<channel>" * 20, "nested more than 8 deep"),
        ("<graphs>" + "<net/>" * 50_001 + "</graphs>", "more than 50,000 elements"),
    ],
)
def test_what_is_no_graph_is_refused(text, said):
    with pytest.raises(DocumentError, match=said):
        parse_nccl_graphs(text)


@given(st.integers(0, len(_GRAPH)), st.text(max_size=20), st.integers(0, 40))
@settings(max_examples=60, deadline=None)
def test_a_damaged_graph_is_read_or_refused(at, piece, dropped):
    with suppress(DocumentError):
        assert parse_nccl_graphs(_GRAPH[:at] + piece + _GRAPH[at + dropped :])
