"""Folders and locks of labs: what is damaged is no lab, what is held is not taken."""

import json
from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkwise.errors import InputError
from linkwise.lab.folder import LabFolder, check_name, is_free, lab_folders, locked
from tests.lab.test_design import cluster, design_of

DESIGN = design_of(cluster("leaf-spine, oversubscription: 2"))


def test_a_design_is_read_as_it_was_written_once_it_stands(tmp_path):
    folder = LabFolder(path=tmp_path)
    folder.write(DESIGN, is_up=False)
    assert folder.read() is None
    folder.write(DESIGN, is_up=True)
    assert folder.read() == DESIGN


@pytest.fixture(scope="module")
def one_folder(tmp_path_factory):
    return LabFolder(path=tmp_path_factory.mktemp("lab"))


@given(st.binary(max_size=200))
def test_a_damaged_file_is_no_lab(one_folder, data):
    (one_folder.path / "lab.json").write_bytes(data)
    assert one_folder.read() is None


@given(
    st.sampled_from(sorted(asdict(DESIGN))),
    st.recursive(st.none() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3), max_leaves=4),
)
def test_a_design_with_a_wrong_value_is_no_lab_or_a_whole_one(one_folder, key, value):
    state = {"is_up": True, "design": {**asdict(DESIGN), key: value}}
    (one_folder.path / "lab.json").write_text(json.dumps(state))
    read = one_folder.read()
    assert read is None or len(read.switches) >= 0


def test_a_lock_is_held_by_one_and_free_again_afterwards(tmp_path):
    path = tmp_path / "lock"
    with locked(path, held="first"):
        assert not is_free(path)
        with pytest.raises(InputError, match="second is busy"), locked(path, held="second is busy"):
            pass
    assert is_free(path)


@pytest.mark.parametrize("name", ["", "A", "a b", "../x", "-a", "a-", "x" * 21, "a\n"])
def test_names_that_are_none_are_refused(name):
    with pytest.raises(InputError, match="no name for a lab"):
        check_name(name)


def test_only_folders_of_labs_count(tmp_path):
    for name in ("lab1", "Other", ".lock"):
        (tmp_path / name).mkdir()
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "lab1")
    assert [each.name for each in lab_folders(tmp_path)] == ["lab1"]
