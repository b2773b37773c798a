"""The commands of a lab: every interface in its own namespaces, names that are told apart."""

import re

from hypothesis import given
from hypothesis import strategies as st

from linkwise.lab.wires import batches_of, lab_of, namespaces_of, node_namespace, switch_namespace
from tests.lab.test_design import cluster, design_of


def test_no_interface_is_ever_outside_the_namespaces_of_the_lab():
    for batch in batches_of("x", design_of(cluster("leaf-spine, oversubscription: 2", gpus=4, nics=4))):
        if batch.argv[:2] == ("ip", "-batch"):
            for line in batch.lines:
                assert re.fullmatch(
                    r"link add \S+ netns lw-x-n\d address \S+ type veth peer name \S+ netns lw-x-sw", line
                )
        else:
            assert batch.argv[1:3] == ("netns", "add") or batch.argv[1] == "-n"
            assert lab_of(batch.argv[2] if batch.argv[1] == "-n" else batch.argv[3]) == "x"


def test_names_of_interfaces_fit_the_kernel():
    design = design_of(cluster("leaf-spine, oversubscription: 2", nodes=8, gpus=4, nics=4))
    names = {
        word
        for b in batches_of("x", design)
        for line in b.lines
        for word in re.findall(r"(?:dev|set) (\S+)", line)
    }
    assert max(map(len, names)) <= 15


def test_both_ends_of_every_link_are_shaped():
    design = design_of(cluster("leaf-spine, oversubscription: 2"))
    classes = [line for b in batches_of("x", design) for line in b.lines if line.startswith("class add")]
    assert len(classes) == 2 * len(design.nics) + 2 * len(design.trunks)


def test_little_passes_for_nothing_after_a_pause():
    for dilation, burst, segment in ((400, 15_000, 65_536), (10_000, 5_000, 5_000), (40_000, 4_000, 3_000)):
        lines = [line for b in batches_of("x", design_of(cluster(), dilation=dilation)) for line in b.lines]
        bursts = {re.search(r"burst (\d+) cburst (\d+)", line).groups() for line in lines if "class" in line}
        assert bursts == {(str(burst), str(burst))}
        assert any(f"gso_max_size {segment} up" in line for line in lines)


@given(st.from_regex(r"\A[a-z0-9](?:[a-z0-9-]{0,18}[a-z0-9])?\Z"), st.integers(0, 7))
def test_a_namespace_tells_its_lab(name, node):
    assert lab_of(node_namespace(name, node)) == name
    assert lab_of(switch_namespace(name)) == name


@given(st.text(max_size=30))
def test_other_namespaces_are_of_no_lab(name):
    if not re.fullmatch(r"(?s)lw-.+-(sw|n\d+)", name):
        assert lab_of(name) is None


def test_labs_whose_names_begin_alike_are_told_apart():
    present = ("lw-a-n0", "lw-a-b-n0", "lw-a-b-sw", "other", "lw-a", "lw--n0")
    assert namespaces_of("a", present) == ("lw-a-n0",)
    assert namespaces_of("a-b", present) == ("lw-a-b-n0", "lw-a-b-sw")
