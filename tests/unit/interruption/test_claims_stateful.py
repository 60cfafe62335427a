"""Any interleaving of deliveries, duplicates, kills and time: the drain ends, once, with nothing left in the queue."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from firstbell.capacity.claims import CLAIM_SECONDS, Claimed, Early, Merged, Stale, begin_or_merge, resume
from firstbell.capacity.drains import Drain, News, Phase, finished, released
from firstbell.errors import Conflict
from tests.fakes.drain_ledger import FakeDrainLedger

if TYPE_CHECKING:
    from collections.abc import Iterator

INSTANCE = "i-0aa"
FUNCTION_TIMEOUT_SECONDS = 15.0
PASSES_NEEDED = 3


@dataclass
class Message:
    id: str
    says: News | int
    """A notice, or the number of the pass that a continuation asks for."""
    visible_at: float
    deleted: bool = False


@dataclass
class Worker:
    """One invocation; `steps` yields between any two of its calls, where it may be killed."""

    message: Message
    started_at: float
    steps: Iterator[str] = field(default_factory=lambda: iter(()))
    at: str = "started"
    alive: bool = True


class DrainOfOneInstance(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0
        self.ledger = FakeDrainLedger()
        self.messages: list[Message] = []
        self.workers: list[Worker] = []
        self.pods = PASSES_NEEDED
        self.completions = 0
        self.announced: list[News] = []
        self.counter = 0

    @initialize()
    def a_notice_arrives(self) -> None:
        self._announce("spot", 1120.0)

    @rule(kind=st.sampled_from(["rebalance", "lifecycle", "spot"]), deadline=st.sampled_from([1050.0, 1500.0]))
    def another_notice(self, kind: str, deadline: float) -> None:
        if len(self.announced) < 4:
            self._announce(kind, deadline)

    @rule(data=st.data())
    def eventbridge_delivers_twice(self, data: st.DataObject) -> None:
        if len(self.messages) < 25:
            self._send(data.draw(st.sampled_from(self.announced)), 0)

    @precondition(lambda self: self._visible())
    @rule(data=st.data())
    def a_message_is_received(self, data: st.DataObject) -> None:
        self._receive(data.draw(st.sampled_from(self._visible())))

    @precondition(lambda self: self._alive())
    @rule(data=st.data())
    def an_invocation_makes_its_next_call(self, data: st.DataObject) -> None:
        self._step(data.draw(st.sampled_from(self._alive())))

    @precondition(lambda self: self._alive())
    @rule(data=st.data())
    def an_invocation_is_killed(self, data: st.DataObject) -> None:
        data.draw(st.sampled_from(self._alive())).alive = False

    @rule(seconds=st.sampled_from([0.5, 3.0, 10.0, 21.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        for worker in self._alive():
            if self.now - worker.started_at >= FUNCTION_TIMEOUT_SECONDS:
                worker.alive = False

    @invariant()
    def no_pass_has_two_holders(self) -> None:
        working = [w.message.id for w in self._alive() if w.at == "working"]
        assert len(set(working)) == len(working) <= 1

    @invariant()
    def the_deadline_is_never_later_than_what_was_merged(self) -> None:
        drain = self.ledger.drain(INSTANCE)
        if drain is not None and drain.phase is Phase.DRAINING and len(self.announced) == 1:
            assert drain.deadline == 1120.0

    def teardown(self) -> None:
        for worker in self.workers:
            worker.alive = False
        for _ in range(400):
            if all(message.deleted for message in self.messages):
                break
            visible = self._visible()
            if not visible:
                self.now = min(message.visible_at for message in self.messages if not message.deleted)
                continue
            worker = self._receive(visible[0])
            while worker.alive:
                self._step(worker)
        assert all(message.deleted for message in self.messages), "messages go round for ever"
        drain = self.ledger.drain(INSTANCE)
        if self.announced:
            assert drain is not None
            assert drain.phase is Phase.DONE
            assert self.pods == 0
            assert drain.event_ids == tuple(dict.fromkeys(drain.event_ids))
            assert {news.event_id for news in self.announced} <= set(drain.event_ids)

    def _announce(self, kind: str, deadline: float) -> None:
        self.counter += 1
        news = News(INSTANCE, kind, f"e{self.counter}", event_time=self.now, deadline=deadline, pool="p")
        self.announced.append(news)
        self._send(news, 0)

    def _send(self, says: News | int, delay_seconds: float) -> None:
        self.messages.append(Message(f"m{len(self.messages)}", says, self.now + delay_seconds))

    def _visible(self) -> list[Message]:
        return [m for m in self.messages if not m.deleted and m.visible_at <= self.now]

    def _alive(self) -> list[Worker]:
        return [w for w in self.workers if w.alive]

    def _receive(self, message: Message) -> Worker:
        message.visible_at = self.now + CLAIM_SECONDS
        worker = Worker(message, self.now)
        worker.steps = self._invocation(worker)
        self.workers.append(worker)
        return worker

    def _step(self, worker: Worker) -> None:
        try:
            worker.at = next(worker.steps)
        except StopIteration:
            worker.alive = False

    def _invocation(self, worker: Worker) -> Iterator[str]:
        """The order of calls that the service keeps: claim, work, send the next message, give the pass back, ack."""
        message = worker.message
        drain = self.ledger.read([INSTANCE]).drains.get(INSTANCE)
        yield "read"
        decision = self._decide(drain, message)
        try:
            match decision:
                case Stale():
                    message.deleted = True
                    return
                case Early(retry_seconds):
                    message.visible_at = self.now + retry_seconds
                    return
                case Merged(merged, changed, nudge_seconds):
                    if nudge_seconds is not None:
                        number = merged.number + 1 if merged.held(self.now) else merged.number
                        self._send(number, nudge_seconds)
                        yield "nudged"
                    if changed:
                        self.ledger.write(merged, self.now)
                        yield "merged"
                    message.deleted = True
                    return
                case Claimed(claim):
                    self.ledger.write(claim, self.now)
        except Conflict:
            message.visible_at = self.now + 1
            return
        yield "working"
        self.pods = max(0, self.pods - 1)
        yield "worked"
        if self.pods == 0:
            self.ledger.update(INSTANCE, lambda d: finished(d) if d.holder == message.id else d, self.now)
            yield "finished"
        else:
            self._send(claim.number + 1, 3)
            yield "sent"
            next_at = self.now + 3
            self.ledger.update(INSTANCE, lambda d: released(d, next_at) if d.holder == message.id else d, self.now)
            yield "released"
        message.deleted = True

    def _decide(self, drain: Drain | None, message: Message) -> Claimed | Merged | Stale | Early:
        if isinstance(message.says, News):
            return begin_or_merge(drain, message.says, message.id, self.now)
        assert drain is not None
        return resume(replace(drain), message.says, message.id, self.now)


TestDrainOfOneInstance = DrainOfOneInstance.TestCase
TestDrainOfOneInstance.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
