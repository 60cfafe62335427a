"""One batch of the interruption queue: read, plan, act, hand over.

The order is what makes a kill at any point harmless: a drain is claimed before anything is done, the next message is
sent before the claim is given back, and only then is the message acknowledged.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from firstbell.capacity.drains import News, after_pass, finished, postponed, released
from firstbell.cloud.interruption_queue import Delayed
from firstbell.errors import AccessDenied, Conflict, RetryLater
from firstbell.interruption.claiming import next_message
from firstbell.interruption.evict import pod_name
from firstbell.interruption.plan import MARGIN_SECONDS, may_evict, next_pass_at, settle_at
from firstbell.interruption.sorting import pass_of, sort_wishes
from firstbell.interruption.working import each
from firstbell.telemetry import is_ledgers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from concurrent.futures import Executor

    from firstbell.capacity.drains import Drain
    from firstbell.cloud.drain_ledger import DrainLedger
    from firstbell.cloud.interruption_queue import InterruptionQueue
    from firstbell.interruption.claiming import Claimer
    from firstbell.interruption.cordon import Cordoner
    from firstbell.interruption.evict import Evictor
    from firstbell.interruption.finish import Finisher
    from firstbell.interruption.intake import Asked
    from firstbell.interruption.replace import Replacer
    from firstbell.interruption.sorting import Sorted
    from firstbell.interruption.surroundings import Surroundings, Surveyor
    from firstbell.interruption.telling import Teller
    from firstbell.interruption.working import Pass
    from firstbell.telemetry import Telemetry

HIDDEN_SECONDS = 20
"""Visibility of a received message: a killed pass resumes this much later, inside a Spot notice's two minutes."""
RETRY_SECONDS = 5
"""When a message comes back whose pass could not be done."""
RECEIVES_BEFORE_COPY = 3
"""A message that comes back this often is replaced by a new one: maxReceiveCount is for what nobody expects."""
POSTPONED_SECONDS = 15.0
BACKLOG_SECONDS = 1.0
"""A pass that comes this much after it was due met a queue that is behind."""
QUEUE_VISIBILITY_SECONDS = 90.0
"""What holds until we hide a message ourselves: six times the function's timeout."""
SPARE_SECONDS = 25.0
"""How much later than its pass a spare message comes: after a redelivery that was hidden in time would have."""
PAUSED_SECONDS = 60


@dataclass(slots=True)
class Drainer:
    ledger: DrainLedger
    queue: InterruptionQueue
    teller: Teller
    telemetry: Telemetry
    surveyor: Surveyor
    claimer: Claimer
    cordoner: Cordoner
    evictor: Evictor
    finisher: Finisher
    replacer: Callable[[], Replacer]
    """Made only where one is asked for: the cordon must not wait for its imports."""
    threads: Executor
    clock: Callable[[], float]
    _failed: set[str] = field(default_factory=set)

    def drain(self, asked: Sequence[Asked]) -> set[str]:
        """Does what a batch asks. Returns the ids of the messages that have to come again."""
        receipts = {one.message.id: one.message.receipt for one in asked}
        self._failed = set()
        self._hide(list(receipts.values()), HIDDEN_SECONDS)
        instances = self.surveyor.instances(asked)
        around = self.surveyor.survey(asked, sorted({i for ids in instances.values() for i in ids}))
        found = sort_wishes(asked, instances, around, self.clock())
        self._put_aside(found)
        passes = self._claim(found, around)
        self._observe(found.observed)
        self._cordon([*passes, *found.recommended])
        self._go_on(passes)
        self._hand_over(passes, [*found.observed, *passes])
        for one in (*passes, *found.recommended, *found.observed):
            if one.error is not None:
                self._come_back(one)
        self._report([*passes, *found.recommended])
        self._hide([receipts[message_id] for message_id in sorted(self._failed)], RETRY_SECONDS)
        return self._failed

    def _hide(self, receipts: Sequence[str], seconds: int) -> None:
        """Without it the queue's own visibility holds, which only makes a retry later."""
        try:
            self.queue.hide(receipts, seconds)
        except RetryLater as error:
            self.telemetry.log.warning("visibility could not be set", error=str(error))

    def _put_aside(self, found: Sorted) -> None:
        """What is not for now: announced changes, passes during a pause, and what is nobody's business."""
        for reason, instance_id in found.ignored:
            self.telemetry.emit("NoticesIgnored", reason=reason)
            self.telemetry.log.info("notice ignored", reason=reason, instance_id=instance_id)
        for change in found.changes:
            self.ledger.store_change(change)
        for wish in (wish for wishes in found.wishes.values() for wish in wishes):
            if isinstance(wish.ask, News):
                self.telemetry.emit("NoticesReceived", kind=wish.ask.kind)
        self.queue.send([Delayed(message.body, PAUSED_SECONDS) for message in found.paused])

    def _claim(self, found: Sorted, around: Surroundings) -> list[Pass]:
        work = list(found.wishes.items())
        kept = self.threads.map(lambda item: self.claimer.claim(item[0], item[1], around), work)
        passes = []
        for one in kept:
            self._failed.update(message.id for message in one.back)
            if one.carrier is None or one.drain is None:
                continue
            claimed = pass_of(one.carrier, one.drain, around)
            if claimed is None:
                self.telemetry.emit("NoticesIgnored", reason="pool_removed")
            else:
                passes.append(claimed)
        return passes

    def _observe(self, passes: Sequence[Pass]) -> None:
        """Plans what would be done, and says it; touches nothing."""
        self._each(passes, self.evictor.plan)
        for one in passes:
            steps = {pod_name(step.pod): f"{step.action}: {step.reason}" for step in one.steps}
            self.telemetry.log.info("only observed", instance_id=one.drain.instance_id, steps=steps)

    def _cordon(self, passes: Sequence[Pass]) -> None:
        """The whole batch at once, before anything else: no pod must move from one doomed node to the next."""
        self._each(passes, self.cordoner.hold_back)
        for one in passes:
            if one.error is not None:
                one.count("CordonFailures", pool=one.pool.name)

    def _go_on(self, passes: Sequence[Pass]) -> None:
        self._each(passes, self.cordoner.take_from_load_balancers)
        self._each(passes, self.finisher.keep_waiting)
        going = self._that_may_evict([one for one in passes if one.going_on])
        self._each(going, self.evictor.plan)
        if due := [one for one in going if one.going_on and one.asks_replacement]:
            self.replacer().replace(due)
        self.evictor.take_steps([one for one in going if one.going_on])
        self._each(going, self.finisher.look_for_the_end)
        self._each([one for one in passes if one.ending is not None], self.finisher.answer_hooks)
        for one in going:
            if one.going_on:
                one.next_at = next_pass_at(one.drain, one.steps, blocked=one.blocked, now=self.clock())

    def _that_may_evict(self, passes: Sequence[Pass]) -> list[Pass]:
        """The others are looked at again in a moment. The queue is asked once, and only by a pass that came late: one
        that came in time shows that nothing older waits."""
        now = self.clock()
        waiting: list[bool] = []

        def notices_wait(one: Pass) -> bool:
            if now - one.drain.next_at < BACKLOG_SECONDS or not one.drain.next_at:
                return False
            if not waiting:
                waiting.append(self.queue.waiting() > 0)
            return waiting[0]

        for one in passes:
            one.next_at = settle_at(one.drain, now)
        settled = [one for one in passes if one.node is None or may_evict(one.drain, notices_waiting=False, now=now)]
        return [
            one
            for one in settled
            if one.node is None or may_evict(one.drain, notices_waiting=True, now=now) or not notices_wait(one)
        ]

    def _hand_over(self, passes: Sequence[Pass], announced: Sequence[Pass]) -> None:
        """Says what happened, sends the next messages, gives the claims back; in this order."""
        now = self.clock()
        self.teller.say(announced, now)
        done = [one for one in passes if one.error is None]
        self.queue.send([message for one in done if one.ending is None for message in _next_messages(one, now)])
        self._each(done, self._give_back)

    def _give_back(self, one: Pass) -> None:
        """Stores the pass's outcome. Where the claim was lost meanwhile, its new holder goes on."""

        def given_back(stored: Drain) -> Drain:
            done = after_pass(stored, one.drain)
            if stored.holder != one.message.id:
                return stored
            return finished(done) if one.ending is not None else released(done, one.next_at)

        self._store(one, given_back)

    def _come_back(self, one: Pass) -> None:
        """A pass that could not be done is tried again by its own message, or by a new one for the same pass."""
        one.count("PassFailures", pool=one.pool.name)
        if isinstance(one.error, AccessDenied):
            one.count("ClusterAccessDenied")
        if one.error is not None and is_ledgers(one.error):
            one.count("LedgerErrors")
        healable = isinstance(one.error, RetryLater | AccessDenied)
        if one.message.receives < RECEIVES_BEFORE_COPY or not healable or one.drain.holder != one.message.id:
            self._failed.add(one.message.id)
            return
        next_at = self.clock() + POSTPONED_SECONDS
        self.queue.send([next_message(one.drain, one.drain.number, POSTPONED_SECONDS)])

        def put_off(stored: Drain) -> Drain:
            return postponed(after_pass(stored, one.drain), next_at) if stored.holder == one.message.id else stored

        self._store(one, put_off)

    def _store(self, one: Pass, change: Callable[[Drain], Drain]) -> None:
        """At once if nobody wrote the drain since it was claimed, else on what is there now."""
        try:
            self.ledger.write(change(one.drain), self.clock())
        except Conflict:
            self.ledger.update(one.drain.instance_id, change, self.clock())

    def _each(self, passes: Iterable[Pass], work: Callable[[Pass], None]) -> None:
        each(self.threads, [one for one in passes if one.error is None], work, self._log_failure)

    def _log_failure(self, one: Pass) -> None:
        self.telemetry.log.exception(
            "pass could not be done", instance_id=one.drain.instance_id, number=one.drain.number
        )

    def _report(self, passes: Iterable[Pass]) -> None:
        for one in passes:
            for name, value, dimensions in one.counts:
                self.telemetry.emit(name, value, **dimensions)


def _next_messages(one: Pass, now: float) -> list[Delayed]:
    """The next pass's message; and a spare near the deadline, because an invocation that is killed before it could hide
    its message brings it back only after the queue's own visibility. A spare that was not needed is stale."""
    drain, delay_seconds = one.drain, one.next_at - now
    messages = [next_message(drain, drain.number + 1, delay_seconds)]
    if drain.deadline - one.next_at < QUEUE_VISIBILITY_SECONDS + MARGIN_SECONDS:
        messages.append(next_message(drain, drain.number + 1, delay_seconds + SPARE_SECONDS))
    return messages
