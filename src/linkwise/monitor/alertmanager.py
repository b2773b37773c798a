"""Alerts sent to Alertmanager by its own API, and taken back when they are over.

References
----------
Prometheus, Alertmanager, api/v2/openapi.yaml: ``postableAlerts``.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from linkwise.errors import InputError
from linkwise.monitor.alert import Alert, AlertKind, Severity

__all__ = ["Alertmanager", "post_json"]

_TIMEOUT_S = 5.0
_AGAIN_S = 60.0
_HOLDS_S = 300.0
"""Alertmanager forgets an alert that is not sent again for so long; without an end it takes its own five
minutes."""


def post_json(url: str, data: bytes) -> None:
    """Send JSON to an address.

    Parameters
    ----------
    url
        Where.
    data
        What.

    Raises
    ------
    InputError
        When it gives no answer or refuses.
    """
    import urllib.error
    import urllib.request

    try:
        request = urllib.request.Request(  # noqa: S310 (checked by the command line)
            url, data=data, headers={"Content-Type": "application/json"}, method="POST"
        )
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:  # noqa: S310
            answer.read(1)
    except urllib.error.HTTPError as error:
        raise InputError(f"{url}: refuses the alerts ({error.code} {error.reason})") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise InputError(f"{url}: gives no answer ({reason})") from None


@dataclass(slots=True)
class Alertmanager:
    """Where alerts are sent.

    Parameters
    ----------
    url
        Its address, without ``/api``.
    run
        What the label ``run`` says.
    post
        Sends JSON to an address, or raises `InputError`.
    """

    url: str
    run: str
    post: Callable[[str, bytes], None] = post_json
    fault: str = ""
    sent: int = 0
    _unsent: dict[tuple[AlertKind, str], Alert] = field(default_factory=dict)
    _sent_s: float = float("-inf")

    def send(
        self, new: Sequence[Alert], active: Mapping[tuple[AlertKind, str], Alert], *, now_s: float
    ) -> None:
        """Send what is new at once, and what holds every minute; what failed is tried again.

        Parameters
        ----------
        new
            What was told now.
        active
            What holds.
        now_s
            Seconds since 1970 [s].
        """
        for each in new:
            if each.severity is not Severity.INFO:
                self._unsent[each.kind, each.subject] = each
        is_due = now_s - self._sent_s >= _AGAIN_S
        if not self._unsent and not (is_due and active):
            return
        if self.fault and not is_due and not new:
            return
        wanted = {**(active if is_due else {}), **self._unsent}
        self._sent_s = now_s
        try:
            self.post(self._address, _body(wanted.values(), self.run, now_s))
        except InputError as error:
            self.fault = str(error)
            return
        self.fault = ""
        self.sent += len(wanted)
        self._unsent.clear()

    @property
    def _address(self) -> str:
        return f"{self.url.rstrip('/')}/api/v2/alerts"


def _body(alerts: Any, run: str, now_s: float) -> bytes:
    return json.dumps([_posted(each, run, now_s) for each in alerts]).encode()


def _posted(alert: Alert, run: str, now_s: float) -> dict[str, Any]:
    labels = {
        "alertname": "LinkwiseWatch" + "".join(word.title() for word in alert.kind.value.split("_")),
        "severity": alert.severity.value,
        "run": run,
        "subject": alert.subject,
    }
    # A moment in the past is taken as over: an event that does not last holds for a while.
    end_s = now_s if alert.is_over else now_s + _HOLDS_S
    return {
        "labels": {name: value for name, value in labels.items() if value},
        "annotations": {"summary": alert.summary},
        "startsAt": _moment(min(alert.at_s, now_s)),
        "endsAt": _moment(end_s),
    }


def _moment(seconds: float) -> str:
    return dt.datetime.fromtimestamp(seconds, tz=dt.UTC).isoformat(timespec="milliseconds")
