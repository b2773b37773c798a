"""Alerts that hold, and those that were told: each once, and once more when it is over."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from linkwise.monitor.alert import Alert, AlertKind, Severity

__all__ = ["AlertBook"]

_MOST_TOLD = 1_000


@dataclass(slots=True)
class AlertBook:
    """What was told so far.

    Parameters
    ----------
    active
        What holds now, by kind and subject.
    told
        All alerts in their order, up to a thousand; `dropped` counts those after.
    """

    active: dict[tuple[AlertKind, str], Alert] = field(default_factory=dict)
    told: list[Alert] = field(default_factory=list)
    dropped: int = 0
    is_against: bool = False

    def tell(self, alert: Alert) -> tuple[Alert, ...]:
        """Return the alert where it is new, or where it is worse than what was told.

        Parameters
        ----------
        alert
            What holds.
        """
        key = (alert.kind, alert.subject)
        before = self.active.get(key)
        if before is not None and _rank(before.severity) >= _rank(alert.severity):
            return ()
        self.active[key] = alert
        self.is_against |= alert.severity is not Severity.INFO
        return self._kept(alert)

    def note(self, alert: Alert) -> tuple[Alert, ...]:
        """Return an alert about something that happened and does not last.

        Parameters
        ----------
        alert
            What happened.
        """
        self.is_against |= alert.severity is not Severity.INFO
        return self._kept(alert)

    def end(
        self, kind: AlertKind, subject: str, summary: str, *, at_s: float, step: int | None
    ) -> tuple[Alert, ...]:
        """Return that an alert is over, where it was told.

        Parameters
        ----------
        kind, subject
            Which.
        summary
            A sentence that says so.
        at_s, step
            When: the time of day [s], and the step if one is known.
        """
        before = self.active.pop((kind, subject), None)
        if before is None:
            return ()
        return self._kept(replace(before, summary=summary, at_s=at_s, step=step, is_over=True))

    def _kept(self, alert: Alert) -> tuple[Alert, ...]:
        if len(self.told) < _MOST_TOLD:
            self.told.append(alert)
        else:
            self.dropped += 1
        return (alert,)


_ORDER = (Severity.INFO, Severity.WARNING, Severity.CRITICAL)


def _rank(severity: Severity) -> int:
    return _ORDER.index(severity)
