"""Gates over HTTP, for the webhooks of other programs: 200 only where a gate is open."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

from linkwise.errors import InputError, LinkwiseError, UnknownName
from linkwise.rollout.gates.gate import Gate

__all__ = ["GateServer", "serve_gates"]

_PREFIX = "/gate/"
_PATIENCE_S = 10.0
_LARGEST_BODY_BYTES = 1 << 20


class GateServer:
    """An address that answers.

    Parameters
    ----------
    server
        What listens.
    thread
        In which it does.
    """

    def __init__(self, server: ThreadingHTTPServer, thread: threading.Thread) -> None:
        self._server, self._thread = server, thread

    @property
    def port(self) -> int:
        """Return the port it listens on."""
        return int(self._server.server_address[1])

    def wait(self) -> None:
        """Wait until somebody interrupts."""
        while self._thread.is_alive():
            self._thread.join(1.0)


@contextmanager
def serve_gates(ask: Callable[[str], Gate], *, host: str, port: int) -> Iterator[GateServer]:
    """Answer questions for gates until the context ends.

    Parameters
    ----------
    ask
        Returns the gate of a step; what it raises is told, and is no 200.
    host, port
        Where to listen; port 0 for any that is free.

    Raises
    ------
    InputError
        When it cannot be listened on.
    """
    lock = threading.Lock()

    class Handler(_GateHandler):
        def gate(self, step: str) -> Gate:
            with lock:
                return ask(step)

    try:
        server = ThreadingHTTPServer((host, port), Handler)
    except (OSError, OverflowError) as error:
        raise InputError(f"--bind {host}:{port}: cannot be listened on ({error})") from None
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
    thread.start()
    try:
        yield GateServer(server, thread)
    finally:
        server.shutdown()
        server.server_close()


class _GateHandler(BaseHTTPRequestHandler):
    """Answers one question; the body that Flagger sends says nothing that the path does not."""

    timeout = _PATIENCE_S
    server_version = "linkwise"
    sys_version = ""

    def gate(self, step: str) -> Gate:
        """Return the gate of a step."""
        raise NotImplementedError

    def do_GET(self) -> None:
        """Answer."""
        self._answer()

    def do_POST(self) -> None:
        """Read the body away, and answer."""
        length = self.headers.get("Content-Length", "0")
        if not length.isdecimal() or int(length) > _LARGEST_BODY_BYTES:
            self._say(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "the body is larger than any webhook's")
            return
        self.rfile.read(int(length))
        self._answer()

    def _answer(self) -> None:
        path = urlsplit(self.path).path
        if not path.startswith(_PREFIX):
            self._say(HTTPStatus.NOT_FOUND, f"ask for {_PREFIX}STEP")
            return
        try:
            found = self.gate(unquote(path.removeprefix(_PREFIX)))
        except UnknownName as error:
            self._say(HTTPStatus.NOT_FOUND, str(error))
        except (LinkwiseError, OSError) as error:
            self._say(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
        except Exception as error:  # noqa: BLE001 (whatever it is, it opens no gate)
            self._say(HTTPStatus.INTERNAL_SERVER_ERROR, f"internal error, {type(error).__name__}: {error}")
        else:
            self._say(HTTPStatus.OK if found.is_open else HTTPStatus.CONFLICT, found.why)

    def _say(self, status: HTTPStatus, text: str) -> None:
        data = f"{text}\n".encode("utf-8", "replace")
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the name of the base class)
        """Write no line for every request."""
