"""1F1B as torch's Schedule1F1B orders it, played through event by event over gloo's rules for messages.

A message goes once its receiver has said that it is ready. That word goes over the same connection, behind what
the receiver itself is sending there. Passes take their time, a message takes the time of its hop.
"""

import heapq
import itertools


def played(pipeline, micro_batches, hops, *, forward=10.0, backward=20.0):
    """Return when the last backward pass ends."""
    return _Play(pipeline, micro_batches, hops, forward, backward).end()


def _program(stage, pipeline, micro_batches):
    """Yield passes, and between them what is sent and what is waited for; messages are (kind, from, number)."""
    is_first, is_last = stage == 0, stage == pipeline - 1
    ahead = min(micro_batches, pipeline - stage)

    def given(kind, number):
        if kind == "F":
            return [] if is_first else [("F", stage - 1, number)]
        return [] if is_last else [("B", stage + 1, number)]

    def found(kind, number):
        is_end = is_last if kind == "F" else is_first
        return [] if is_end else [(kind, stage, number)]

    left = []
    for number in range(ahead):
        yield "exchange", left, given("F", number)
        yield "pass", "F", None
        left = found("F", number)
    for number in range(micro_batches):
        yield "exchange", left, given("B", number)
        yield "pass", "B", None
        left = found("B", number)
        if number + ahead < micro_batches:
            yield "exchange", left, given("F", number + ahead)
            yield "pass", "F", None
            left = found("F", number + ahead)
    yield "exchange", left, []


class _Play:
    def __init__(self, pipeline, micro_batches, hops, forward, backward):
        self.hops, self.takes = hops, {"F": forward, "B": backward}
        self.sent, self.heard, self.came, self.free = {}, {}, {}, {}
        self.events, self.count = [], itertools.count()
        self.programs = [list(_program(stage, pipeline, micro_batches)) for stage in range(pipeline)]
        self.places, self.begun = [0] * pipeline, [False] * pipeline
        self.last = 0.0

    def end(self):
        for stage in range(len(self.programs)):
            self._at(0.0, self._go_on, stage)
        while self.events:
            now, _, call, about = heapq.heappop(self.events)
            call(about, now)
        assert all(place == len(one) for place, one in zip(self.places, self.programs, strict=True))
        return self.last

    def _at(self, time, call, about):
        heapq.heappush(self.events, (time, next(self.count), call, about))

    def _go_on(self, stage, now):
        while self.places[stage] < len(self.programs[stage]):
            what, one, other = self.programs[stage][self.places[stage]]
            is_new, self.begun[stage] = not self.begun[stage], True
            if what == "pass":
                if is_new:
                    self._at(now + self.takes[one], self._go_on, stage)
                    return
                self.last = max(self.last, now)
            else:
                if is_new:
                    self._exchange(one, other, now)
                if any(self.came.get(message, now + 1.0) > now for message in other):
                    return
            self.places[stage], self.begun[stage] = self.places[stage] + 1, False

    def _exchange(self, given, wanted, now):
        for message in given:
            self.sent[message] = now
            self._carry(message, now)
        for message in wanted:
            hop, way = _way(message)
            self.heard[message] = max(now, self.free.get((hop, 1 - way), 0.0))
            self._at(self.heard[message], self._carry, message)

    def _carry(self, message, now):
        """Let a message go if it was given, is waited for, and has not gone."""
        if message in self.came or message not in self.sent or self.heard.get(message, now + 1.0) > now:
            return
        hop, way = _way(message)
        self.came[message] = self.free[hop, way] = max(now, self.free.get((hop, way), 0.0)) + self.hops[hop]
        self._at(self.came[message], self._arrive, message)

    def _arrive(self, message, now):
        kind, source, _ = message
        stage = source + 1 if kind == "F" else source - 1
        if self.begun[stage] and self.programs[stage][self.places[stage]][0] == "exchange":
            self._go_on(stage, now)


def _way(message):
    kind, source, _ = message
    return (source, 0) if kind == "F" else (source - 1, 1)
