"""What every test may use: the marker `requires`, and no environment of the person who runs them."""

import importlib.metadata
import importlib.util
import os
import shutil
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("untimed", deadline=None)  # speeds live in benchmarks; a busy machine fails no test
settings.load_profile("untimed")


def _has(module):
    """Return whether a module of a package can be found; the package is imported for it."""
    try:
        return importlib.util.find_spec(module) is not None
    except ImportError:
        return False


def _version(distribution):
    """Return the version of what is installed, or an empty text."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _postgres_programs():
    """Return the folders that hold the programs of a PostgreSQL server: Debian does not put them on the path."""
    found = shutil.which("initdb")
    beside = [Path(found).parent] if found else []
    return [*beside, *(each.parent for each in sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb")))]


def _runs(*programs):
    """Return whether all programs are there, those of administrators too."""
    path = f"{os.environ.get('PATH', os.defpath)}:/usr/local/sbin:/usr/sbin:/sbin"
    return all(shutil.which(each, path=path) is not None for each in programs)


_PRESENT = {
    "matplotlib": lambda: importlib.util.find_spec("matplotlib") is not None,
    "torch": lambda: importlib.util.find_spec("torch") is not None,
    "kubernetes-validate": lambda: importlib.util.find_spec("kubernetes_validate") is not None,
    "kubeflow-trainer-api": lambda: importlib.util.find_spec("kubeflow_trainer_api") is not None,
    "kubeflow-training": lambda: _has("kubeflow.training"),
    "deepspeed": lambda: importlib.util.find_spec("deepspeed") is not None,
    "megatron-core": lambda: _has("megatron.core"),
    "megatron-lm": lambda: _has("megatron.training"),
    "torchtitan 0.2": lambda: _version("torchtitan").startswith("0.2."),
    "shellcheck": lambda: shutil.which("shellcheck") is not None,
    "netns": lambda: shutil.which("ip") is not None and os.geteuid() == 0,
    "slurm": lambda: _runs("slurmctld", "slurmd", "munged", "srun", "sbatch"),
    "prometheus": lambda: shutil.which("prometheus") is not None,
    "postgresql": lambda: bool(_postgres_programs()) and _has("psycopg"),
    "promtool": lambda: shutil.which("promtool") is not None,
    "alertmanager": lambda: shutil.which("prometheus-alertmanager") is not None,
    "browser": lambda: any(map(shutil.which, ("chromium", "google-chrome", "firefox"))),
}
"""How each thing that a machine may lack is looked for."""


def pytest_runtest_setup(item):
    """Skip a test that needs what is not there; fail it where LINKWISE_REQUIRE says it must be."""
    demanded = set(filter(None, os.environ.get("LINKWISE_REQUIRE", "").split(",")))
    for marker in item.iter_markers("requires"):
        name = marker.args[0]
        if not _PRESENT[name]():
            if name in demanded:
                pytest.fail(f"needs {name}, which LINKWISE_REQUIRE says this machine has")
            pytest.skip(f"needs {name}")


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch):
    for name in ("LINKWISE_DEBUG", "LINKWISE_ROLLOUT_STORE", "LINKWISE_ROLLOUT_KEY"):
        monkeypatch.delenv(name, raising=False)
