import pickle

import pytest

from linkwise.errors import DocumentError, Fault, InputError, UnknownName, nearest_names


def test_unknown_name_says_the_nearest_when_one_is_close():
    error = UnknownName.among(["dgx-h100", "dgx-a100", "gb200-nvl72"], kind="system", given="DGX_H1000")
    assert str(error).startswith("unknown system 'DGX_H1000'; did you mean dgx-h100")


def test_unknown_name_lists_the_valid_when_none_is_close():
    assert str(UnknownName.among(["a", "b"], kind="letter", given="zzzz")).endswith("; valid: a, b")


def test_unknown_name_names_the_command_when_the_catalogue_is_long():
    names = [f"gpu-{number}" for number in range(50)]
    assert "linkwise catalog gpu" in str(UnknownName.among(names, kind="GPU", given="xyz"))


def test_unknown_name_is_short_when_the_given_is_long():
    assert len(str(UnknownName.among(["a"], kind="system", given="x" * 10**6))) < 200


@pytest.mark.parametrize("given", ["H100 SXM", "h100_sxm", "H100-SXM"])
def test_nearest_ignores_case_and_separators_when_spelled_otherwise(given):
    assert nearest_names(given, ["a100-sxm", "h100-sxm"])[0] == "h100-sxm"


def test_faults_stand_one_per_line_when_printed():
    faults = [Fault(path="a.yaml", line=3, key="b.c", message="bad"), Fault(message="worse")]
    assert str(DocumentError(faults)) == "a.yaml:3: b.c: bad\nworse"


@pytest.mark.parametrize(
    "error",
    [
        UnknownName(kind="link", given="x", nearest=["y"]),
        DocumentError([Fault(path="a", line=1, key="k", message="m")]),
    ],
)
def test_errors_survive_when_sent_to_another_process(error):
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again)) == (type(error), str(error))
    assert isinstance(again, InputError | ValueError)
