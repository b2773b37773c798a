"""A PostgreSQL server of our own: started by hand, on a socket in a folder of its own, stopped after."""

import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.rollout.simulated import OPENED


@pytest.fixture(autouse=True)
def _no_store_stays_open():
    yield
    while OPENED:
        OPENED.pop().close()


def _programs():
    found = shutil.which("initdb")
    return Path(found).parent if found else max(Path("/usr/lib/postgresql").glob("*/bin/initdb")).parent


def _owner():
    """Return as whom the server runs: it refuses root."""
    if os.geteuid() != 0:
        return {}
    try:
        person = pwd.getpwnam("postgres")
    except KeyError:
        pytest.skip("PostgreSQL does not run as root, and there is no user postgres")
    return {"user": person.pw_uid, "group": person.pw_gid, "extra_groups": []}


@pytest.fixture(scope="session")
def postgres_server():
    """Yield the address of a server without its database."""
    programs, owner = _programs(), _owner()
    # The path of a socket has 107 characters at most, and folders of tests have long names.
    home = Path(tempfile.mkdtemp(prefix="lwpg"))
    if owner:
        os.chown(home, owner["user"], owner["group"])
    data = home / "data"

    def run(program, *arguments):
        done = subprocess.run(
            [str(programs / program), *arguments],
            capture_output=True, text=True, check=False, cwd=home, **owner,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr

    try:
        run("initdb", "-D", str(data), "-U", "tests", "--auth=trust", "--no-sync", "-E", "UTF8")
        options = f"-c listen_addresses='' -c unix_socket_directories={home} -c fsync=off"
        run("pg_ctl", "-D", str(data), "-w", "-t", "120", "-l", str(home / "log"), "-o", options, "start")
        try:
            yield f"postgresql://tests@/{{}}?host={home}"
        finally:
            run("pg_ctl", "-D", str(data), "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture
def postgres(postgres_server, request):
    """Return the address of an empty database."""
    import psycopg

    name = f"t{abs(hash(request.node.nodeid)):x}"
    with psycopg.connect(postgres_server.format("postgres"), autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    return postgres_server.format(name)
