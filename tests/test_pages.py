"""The pages for people: commands run and print what the page shows, code runs, links lead somewhere.

``LINKWISE_REFRESH=1 pytest tests/test_pages.py`` writes what the commands print now into the pages.
"""

import datetime as dt
import os
import re
from pathlib import Path

import pytest

from linkwise.cli.main import run

ROOT = Path(__file__).parents[1]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
MAKE = {"make plan": "linkwise plan examples/llama-70b.yaml examples/h100-256.yaml"}
"""Targets of the Makefile that are one command of ours, once set up."""
NOT_RUN = ("make test", "make check", "make setup")
CONSOLE = re.compile(
    r"(?<=^```console\n)\$ (?P<command>[^\n]+)\n(?P<output>.*?)(?=^```$)", re.DOTALL | re.MULTILINE
)
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)#:]+)\)")
DAY = dt.date(2026, 11, 30)
"""The day on which pages are read: prices of examples must not grow old."""
EXIT_CODES = {"gpt-3-175b": 5, "faulty.sbatch": 1, "--against": 1, "GDR-02": 1, "gloo_logs": 1}
"""Exit code of the commands that have this word; 0 of all others."""


def name(page):
    return str(page.relative_to(ROOT))


def printed(command, capsys):
    code = run(command.split()[1:], today=lambda: DAY)
    told = capsys.readouterr()
    assert told.err == ""
    expected = next((code for word, code in EXIT_CODES.items() if word in command), 0)
    assert code == expected, command
    return "".join(f"{line.rstrip()}\n" for line in told.out.splitlines())


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "100")


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_commands_print_what_the_page_shows(page, capsys):
    text = page.read_text(encoding="utf-8")

    def now(match):
        command = match["command"]
        if command.startswith(NOT_RUN):
            return match[0]
        echo = f".venv/bin/{MAKE[command]}\n" if command in MAKE else ""
        return f"$ {command}\n{echo}{printed(MAKE.get(command, command), capsys)}"

    fresh = CONSOLE.sub(now, text)
    if os.environ.get("LINKWISE_REFRESH") == "1":
        page.write_text(fresh, encoding="utf-8")
    else:
        assert fresh == text, "stale: run LINKWISE_REFRESH=1 pytest tests/test_pages.py"


@pytest.mark.parametrize("page", [ROOT / "README.md"], ids=name)
def test_code_of_the_page_runs(page, capsys):
    for code in PYTHON.findall(page.read_text(encoding="utf-8")):
        exec(compile(code, name(page), "exec"), {})
    assert capsys.readouterr().out


def test_excerpts_of_the_page_on_architecture_stand_in_the_source():
    source = "".join(path.read_text(encoding="utf-8") for path in ROOT.glob("src/linkwise/*/*.py"))
    for code in PYTHON.findall((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")):
        assert code in source


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page):
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


def test_files_that_the_page_on_contributing_names_exist():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for target in re.findall(r"`((?:src|tests)/[a-z_./]+\.(?:py|json|csv))`", text):
        assert (ROOT / target).exists(), target
    for folder in re.findall(r"`((?:src|tests)/[a-z_./]+/)", text):
        assert (ROOT / folder).is_dir(), folder


def test_rooms_of_the_pages_are_those_that_exist():
    rooms = {path.parent.name for path in ROOT.glob("src/linkwise/*/__init__.py")}
    for page in ("README.md", "ARCHITECTURE.md"):
        table = (ROOT / page).read_text(encoding="utf-8").split("| room |")[1].split("\n\n")[0]
        named = {word for line in table.splitlines() for word in re.findall(r"`(\w+)`", line.split(" | ")[0])}
        named |= set(re.findall(r"`(\w+)`", table)) & rooms
        assert rooms <= named, page
