"""Files that are written beside what is printed."""

from pathlib import Path

import pytest

from linkwise.cli.files import write_whole
from linkwise.errors import InputError


def test_file_that_is_there_is_replaced(tmp_path):
    target = tmp_path / "cables.csv"
    target.write_text("longer than what comes", encoding="utf-8")
    write_whole("--cables", target, "new")
    assert target.read_text(encoding="utf-8") == "new"
    assert [each.name for each in tmp_path.iterdir()] == ["cables.csv"]


def test_link_stays_a_link_and_what_it_names_is_written(tmp_path):
    real, link = tmp_path / "real.csv", tmp_path / "link.csv"
    link.symlink_to(real)
    write_whole("--cables", link, "new")
    assert link.is_symlink()
    assert real.read_text(encoding="utf-8") == "new"


@pytest.mark.parametrize("device", ["/dev/null", "/dev/full"])
def test_device_stays_a_device(device):
    target = Path(device)
    if not target.is_char_device():
        pytest.skip(f"there is no {device}")
    if device == "/dev/full":
        with pytest.raises(InputError, match="--cables /dev/full: cannot be written"):
            write_whole("--cables", target, "text")
    else:
        write_whole("--cables", target, "text")
    assert target.is_char_device()
