import json
import subprocess
import sys
from pathlib import Path

import click
import pytest

from linkwise.cli import main as cli
from linkwise.errors import ExitCode, InputError

_HEAVY = ("numpy", "pint", "pydantic", "rich", "ruamel", "scipy", "sqlalchemy")


def _fails(error):
    def verb(*_args, **_kwargs):
        raise error

    return verb


def _run_raising(monkeypatch, error):
    monkeypatch.setattr(cli.linkwise, "main", _fails(error))
    return cli.run([])


def test_nothing_heavy_is_imported_when_only_help_is_asked():
    code = (
        "import sys, linkwise; from linkwise.cli.main import run; run(['--help']);"
        f"print([name for name in {_HEAVY} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"
    assert all(verb in done.stdout for verb in cli.VERBS)


def test_unknown_verb_gets_the_nearest(capsys):
    assert cli.run(["plna"]) == ExitCode.WRONG_INPUT
    assert "unknown verb 'plna'; did you mean 'plan'?" in capsys.readouterr().err


def test_version_is_printed(capsys):
    assert cli.run(["--version"]) == ExitCode.DONE
    assert capsys.readouterr().out.startswith("linkwise, version ")


@pytest.mark.parametrize(
    ("error", "code", "says"),
    [
        (InputError("no such thing"), ExitCode.WRONG_INPUT, "linkwise: no such thing"),
        (KeyboardInterrupt(), ExitCode.INTERRUPTED, "interrupted"),
        (
            FileNotFoundError(2, "No such file", "x.yaml"),
            ExitCode.WRONG_INPUT,
            "linkwise: x.yaml: No such file",
        ),
        (KeyError("odd"), ExitCode.WRONG_INPUT, "internal error, KeyError"),
    ],
)
def test_errors_become_a_message_and_an_exit_code(monkeypatch, capsys, error, code, says):
    assert _run_raising(monkeypatch, error) == code
    told = capsys.readouterr().err
    assert says in told
    assert "Traceback" not in told


def test_traceback_is_kept_when_debugging(monkeypatch):
    monkeypatch.setenv("LINKWISE_DEBUG", "1")
    with pytest.raises(KeyError):
        _run_raising(monkeypatch, KeyError("odd"))


def test_exit_code_of_a_verb_is_passed_on(monkeypatch):
    monkeypatch.setattr(cli.linkwise, "main", lambda *_args, **_kwargs: ExitCode.INFEASIBLE)
    assert cli.run([]) == 5


_CONFIG = {
    "model_type": "llama", "hidden_size": 256, "intermediate_size": 1024, "num_hidden_layers": 4,
    "num_attention_heads": 8, "num_key_value_heads": 8, "vocab_size": 1000, "tie_word_embeddings": False,
}  # fmt: skip

_LINKWISE = f"{sys.executable} -c 'from linkwise.cli.main import main; main()'"


def _shell(command):
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "words", ["catalog --format csv", "catalog --format json", "catalog model", "schema job"]
)
def test_pipe_is_quiet_when_its_reader_goes(words):
    done = _shell(f"{_LINKWISE} {words} | head -1 >/dev/null; echo ${{PIPESTATUS[0]}}")
    assert (done.stdout, done.stderr) == ("0\n", "")


@pytest.mark.parametrize("words", ["catalog --format csv", "catalog model", "schema job"])
def test_full_disk_is_a_message_not_an_internal_error(words):
    done = _shell(f"{_LINKWISE} {words} >/dev/full")
    assert done.returncode == ExitCode.WRONG_INPUT
    assert done.stderr == "linkwise: cannot write: No space left on device\n"


@pytest.mark.parametrize("words", ["catalog gpu", "catalog --format csv", "schema job >&- <&-"])
def test_closed_output_is_no_fault(words):
    done = _shell(f"{_LINKWISE} {words} >&-")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("folder", "encoding", "shown"),
    [("café", "ascii", "caf\\xe9,"), ("caf\udce9", "utf-8", "caf\\udce9,"), ("café", "utf-8", "café,")],
)
def test_names_that_the_output_cannot_spell_are_escaped(folder, encoding, shown, tmp_path):
    (tmp_path / folder).mkdir()
    (tmp_path / folder / "config.json").write_text(json.dumps(_CONFIG), encoding="utf-8")
    given = "--cluster dgx-h100:1 --sequence-length 1024 --global-batch 8 --top 1"
    command = f"cd {tmp_path}; PYTHONIOENCODING={encoding} {_LINKWISE} plan --model caf*/config.json {given}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode().startswith(shown)


def test_closed_input_is_empty_input():
    done = _shell(f"{_LINKWISE} plan - dgx-h100:2 <&-")
    assert done.returncode == ExitCode.WRONG_INPUT
    assert "<stdin>:1: is empty" in done.stderr


def test_init_writes_a_template_that_is_read_and_never_overwrites(tmp_path, monkeypatch, capsys):
    from linkwise.cluster import read_cluster
    from linkwise.job import read_job

    monkeypatch.chdir(tmp_path)
    assert cli.run(["init", "cluster"]) == cli.run(["init", "job", "j.yaml"]) == 0
    assert (read_cluster("cluster.yaml").gpus, read_job("j.yaml").sequence_length) == (256, 8192)
    (tmp_path / "j.yaml").write_text("mine")
    capsys.readouterr()
    assert cli.run(["init", "job", "j.yaml"]) == ExitCode.WRONG_INPUT
    assert "j.yaml exists and is left alone" in capsys.readouterr().err
    assert (tmp_path / "j.yaml").read_text() == "mine"


def test_init_says_that_there_is_no_directory(tmp_path, capsys):
    assert cli.run(["init", "job", str(tmp_path / "none" / "j.yaml")]) == ExitCode.WRONG_INPUT
    assert f"there is no directory {tmp_path / 'none'}" in capsys.readouterr().err


def test_init_leaves_no_half_of_a_template(tmp_path):
    target = tmp_path / "j.yaml"
    done = _shell(f"ulimit -f 0; trap '' XFSZ; {_LINKWISE} init job {target} 2>&1")
    assert done.returncode == ExitCode.WRONG_INPUT
    assert "File too large" in done.stdout
    assert not target.exists()


@pytest.mark.parametrize("document", ["cluster", "job", "prices", "rollout"])
def test_schema_is_a_json_schema_of_the_document(document, capsys):
    import jsonschema

    assert cli.run(["schema", document]) == 0
    schema = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["properties"]["linkwise"]["const"] == f"{document}/1"


def _options(command, path=()):
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            yield from _options(command.get_command(context, name), (*path, name))
        return
    for each in command.params:
        if isinstance(each.type, click.types.FloatParamType):
            yield path, each.opts[0]


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e999"])
@pytest.mark.parametrize(("path", "option"), list(_options(cli.linkwise)))
def test_numbers_of_options_are_finite(capsys, path, option, value):
    assert cli.run([*path, option, value]) == ExitCode.WRONG_INPUT
    assert f"{value!r} is not a finite number" in capsys.readouterr().err


_SMALL = ("--model", "llama-3.1-8b", "--sequence-length", "8192", "--global-batch", "64")
_DATA = Path(__file__).parents[1] / "data"


@pytest.mark.parametrize(
    "line",
    [
        ("plan", *_SMALL, "--cluster", "dgx-h100:2"),
        ("explain", *_SMALL, "--cluster", "dgx-h100:2"),
        ("compare", *_SMALL, "--cluster", "dgx-h100:2", "--cluster", "dgx-b200:2", "--wall-gpus", "64"),
        ("fabric", "dgx-b200:512"),
        ("collective", "all_reduce", "dgx-h100:2"),
        ("validate", "collectives", f"{_DATA}/collectives.csv", "--runs", f"{_DATA}/collective_runs.csv"),
        ("catalog", "gpu"),
        ("catalog", "gpu", "h100-sxm"),
    ],
)
def test_no_printed_line_ends_in_blanks(capsys, line):
    assert cli.run(line) == ExitCode.DONE
    out = capsys.readouterr().out
    assert out
    assert [each for each in out.splitlines() if each != each.rstrip()] == []


@pytest.mark.parametrize("verb", cli.VERBS)
def test_help_names_no_value_of_the_program(capsys, verb):
    assert cli.run([verb, "--help"]) == ExitCode.DONE
    assert "None" not in capsys.readouterr().out


def groups(command, words=()):
    """Yield every command that has commands below it, with the words that reach it."""
    if not isinstance(command, click.Group):
        return
    yield words
    context = click.Context(command)
    for name in command.list_commands(context):
        yield from groups(command.get_command(context, name), (*words, name))


@pytest.mark.parametrize("words", list(groups(cli.linkwise)), ids=" ".join)
def test_help_cuts_no_sentence(words, capsys):
    assert cli.run([*words, "--help"]) == ExitCode.DONE
    listed = capsys.readouterr().out.partition("\nCommands:")[2]
    assert "..." not in listed
