"""Servers by what they show to Prometheus, in the names of two releases each."""

import http.server
import threading

import pytest

from linkwise.errors import InputError
from linkwise.monitor.endpoints import Endpoint, fetch_text
from tests.monitor.expositions import dcgm, sglang, vllm

_TTFT_BEFORE, _TTFT = (0, 0, 0, 0, 0, 0, 0), (0, 0, 80, 10, 10, 0, 0)
_TPOT_BEFORE, _TPOT = (0, 0, 0, 0, 0, 0), (0, 90, 10, 0, 0, 0)


def _looked(*texts, span_s=300.0, every_s=5.0):
    shown = iter(texts)
    endpoint = Endpoint(url="http://server/metrics", fetch=lambda _url: next(shown), span_s=span_s)
    for at in range(len(texts)):
        endpoint.look(at * every_s)
    return endpoint


@pytest.mark.parametrize("release", ["0.9", "0.12"])
def test_what_users_of_vllm_feel_is_read_in_both_names(release):
    felt = _looked(
        vllm(release=release, ttft=_TTFT_BEFORE, tpot=_TPOT_BEFORE),
        vllm(
            release=release, ttft=_TTFT, tpot=_TPOT, waiting=4, running=8, stopped=90, failed=4, aborted=6,
            answers={"2xx": 94, "5xx": 2},
        ),
    ).felt  # fmt: skip
    # The 50th of 100 is the 50th of 80 between 0.1 and 0.25 s; the 99th the 9th of 10 between 0.5 and 1 s.
    assert felt.ttft_s[0.5] == pytest.approx(0.1 + 0.15 * 50 / 80)
    assert felt.ttft_s[0.99] == pytest.approx(0.5 + 0.5 * 9 / 10)
    assert felt.tpot_s[0.5] == pytest.approx(0.01 + 0.015 * 50 / 90)
    assert (felt.queue, felt.running, felt.requests) == (4, 8, 100)
    assert felt.error_fraction == pytest.approx(0.04)
    assert felt.aborted_fraction == pytest.approx(0.06)


@pytest.mark.parametrize("release", ["2024", "2026"])
def test_what_users_of_sglang_feel_is_read_in_both_names(release):
    felt = _looked(
        sglang(release=release, ttft=_TTFT_BEFORE, tpot=_TPOT_BEFORE),
        sglang(
            release=release, ttft=_TTFT, tpot=_TPOT, queued=3, requests=100, aborted=5,
            answers={"200": 90, "500": 2, "504": 1},
        ),
    ).felt  # fmt: skip
    assert felt.tpot_s[0.99] == pytest.approx(0.025 + 0.025 * 9 / 10)
    assert felt.queue == 3
    assert (felt.errors, felt.timeouts) == ((None, None) if release == "2024" else (3, 1))
    assert felt.aborted_fraction == (None if release == "2024" else pytest.approx(0.05))


def test_percentiles_are_of_the_last_while_and_not_of_all_time():
    slow, quick = (0, 0, 0, 0, 0, 100, 0), (100, 0, 0, 0, 0, 100, 0)
    texts = [vllm(release="0.12", ttft=slow, tpot=_TPOT)] * 3 + [vllm(release="0.12", ttft=quick, tpot=_TPOT)]
    felt = _looked(*texts, span_s=10.0).felt
    assert felt.ttft_s[0.99] <= 0.05
    assert felt.span_s == 10.0


def test_a_server_that_began_anew_counts_from_its_start():
    felt = _looked(
        vllm(release="0.12", ttft=(0, 0, 0, 0, 0, 0, 500), tpot=_TPOT, stopped=500),
        vllm(release="0.12", ttft=(10, 0, 0, 0, 0, 0, 0), tpot=_TPOT_BEFORE, stopped=10),
    ).felt
    assert felt.requests == 10
    assert felt.ttft_s[0.99] <= 0.05


def test_without_a_request_there_is_no_percentile():
    felt = _looked(vllm(release="0.12", ttft=_TTFT_BEFORE, tpot=_TPOT_BEFORE)).felt
    assert felt.ttft_s == {}
    assert felt.error_fraction is None


def test_an_xid_from_before_the_watch_is_not_told_and_a_new_one_is():
    assert _looked(dcgm(release="3.3", xid=79), dcgm(release="3.3", xid=79)).gpus.xids == frozenset()
    assert _looked(dcgm(release="3.3"), dcgm(release="3.3", xid=79)).gpus.xids == {("GPU-1", 79)}


def test_counted_xids_are_found_where_the_last_one_hides_them():
    found = _looked(
        dcgm(release="4.6", xid=31, counted={"31": 1}),
        dcgm(release="4.6", xid=31, counted={"31": 1, "94": 2}),
    ).gpus
    assert found.xids == {("GPU-1", 94)}


def test_link_errors_are_told_as_they_grow():
    found = _looked(dcgm(release="4.6", replays=5), dcgm(release="4.6", replays=9)).gpus
    assert found.link_errors == {("GPU-1", "DCGM_FI_DEV_PCIE_REPLAY_COUNTER"): 4}


def test_a_fault_is_kept_until_the_server_answers_again():
    answers = iter(
        [InputError("http://server: gives no answer"), vllm(release="0.12", ttft=_TTFT, tpot=_TPOT)]
    )

    def fetch(_url):
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    endpoint = Endpoint(url="http://server", fetch=fetch)
    endpoint.look(0.0)
    assert "no answer" in endpoint.fault
    endpoint.look(5.0)
    assert endpoint.fault == ""
    assert endpoint.server == "vllm"


class _Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/metrics" else 404)
        self.end_headers()
        self.wfile.write(b"up 1\n")

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    made = http.server.HTTPServer(("127.0.0.1", 0), _Answer)
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{made.server_port}"
    made.shutdown()
    made.server_close()
    thread.join()


def test_an_address_is_fetched(server):
    assert fetch_text(f"{server}/metrics") == "up 1\n"


def test_a_wrong_address_says_what_to_name(server):
    with pytest.raises(InputError, match=r"404.*name its /metrics"):
        fetch_text(f"{server}/other")
    with pytest.raises(InputError, match="gives no answer"):
        fetch_text("http://127.0.0.1:1/metrics")
