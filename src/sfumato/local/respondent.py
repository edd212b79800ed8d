"""The respondent's side: a device that randomises the truth before anyone hears it, and its memory."""

import json
import math
from collections.abc import Mapping
from threading import Lock
from typing import Any

import numpy as np

from sfumato.checks import Number
from sfumato.errors import BudgetExceeded, InvalidParameter, NotSupported
from sfumato.laws.bits import Bits, default_bits
from sfumato.local.cost import LocalDP, exact_number, questionnaire_cost
from sfumato.local.design import FORMAT, Channel
from sfumato.local.permanent import PermanentUnary
from sfumato.local.records import check_channel, check_format, design_from_dict
from sfumato.one_process import OneProcess
from sfumato.privacy.records import short_text


def _answerable(design: object) -> Channel:
    """A design that a device may follow."""
    channel = check_channel(design)
    if channel.trait:
        raise NotSupported("a real trait that others may know protects nobody: let the device draw it")
    return channel


class Memory(OneProcess):
    """What a respondent has answered: the same question asked again gets the same answer, at no new cost.

    Guarantee:
        Each question costs its epsilon once, however often it is asked. A question that was answered under
        one design is refused under another, which would need fresh coins; a question in other words is
        another question and costs anew. It holds no truth, but what it holds must stay on the device:
        whoever reads it learns the questions that were answered, and up to `spent` about the truths. That is
        no more than all answers told together, but of `PermanentUnary` the kept bits tell more than any one
        report. Store it before an answer is sent. A forked process is refused, since its copy would answer
        once more. Proof: docs/proofs/randomised-response.md.

    >>> from sfumato.local import Respondent, Warner
    >>> memory = Memory()
    >>> device = Respondent(Warner(keep=0.75), question="voted?", memory=memory, limit=2)
    >>> len({device.answer(True) for _ in range(100)}), memory.spent
    (1, LocalDP(epsilon=1.098612288669))
    """

    noun = "a memory"

    def __init__(self) -> None:
        self._kept: dict[str, tuple[Channel, Any]] = {}
        # Held by a device between its look at the limit and what it keeps; devices may share a memory.
        self.lock = Lock()

    @property
    def questions(self) -> tuple[str, ...]:
        """What was answered, in order."""
        return tuple(self._kept)

    @property
    def spent(self) -> LocalDP:
        """What all answers cost together."""
        return questionnaire_cost(design for design, _ in self._kept.values())

    def recall(self, question: str, design: Channel) -> Any:
        """The answer that was kept for a question, or None."""
        if question not in self._kept:
            return None
        earlier, answer = self._kept[question]
        if earlier != design:
            raise NotSupported("this question was answered under another design; fresh coins would cost more")
        return answer

    def keep(self, question: str, design: Channel, answer: Any) -> None:
        """Remember the answer to a question for good."""
        self.require_process()
        if question in self._kept:
            raise NotSupported("this question has an answer, which is kept for good")
        self._kept[question] = design, answer

    def to_json(self) -> str:
        """All of it as text, to be stored on the respondent's side; `from_json` reads it back."""
        kept = [
            {"question": question, "design": design.to_dict(), "answer": answer}
            for question, (design, answer) in self._kept.items()
        ]
        return json.dumps({"format": FORMAT, "kept": kept})

    @classmethod
    def from_json(cls, text: str) -> "Memory":
        """The memory that `to_json` wrote; each answer must be one that its design can give."""
        memory = cls()
        try:
            record = json.loads(text)
            check_format(record, "a memory")
            entries = [(entry["question"], entry["design"], entry["answer"]) for entry in record["kept"]]
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
            raise InvalidParameter(f"a memory must be JSON of format {FORMAT} that to_json wrote") from None
        for question, written, answer in entries:
            design = _answerable(design_from_dict(written))
            memory.keep(short_text("question", question), design, design.spoken(design.heard([answer])[0]))
        return memory


class Respondent(OneProcess):
    """A respondent's device: it is told the truth and gives a randomised answer, exactly by the design.

    Guarantee:
        Each fresh answer costs the respondent `design.cost`, and k fresh answers k times as much; an answer
        from a memory costs nothing more. What would cost more than `limit` in all is refused. Nothing else
        about the truth leaves: a truth that does not fit is refused without being shown. No ledger is
        involved. Proof: docs/proofs/randomised-response.md.

    Args:
        design: what the analyst sent, a design or the mapping that its `to_dict` wrote.
        question: what is asked; a memory tells questions apart by it.
        bits: where randomness comes from; private bits of this machine by default.
        memory: keeps the first answer to each question and repeats it; None draws each answer afresh.
        limit: what the respondent is willing to give away in all, an epsilon or a `LocalDP`. It counts every
            question of the memory, also the same one in other words; without a memory every answer of this
            device. Only `math.inf` accepts a design that can give the truth away.

    Raises:
        NotSupported: the design protects nobody and the limit is finite, a real trait decides innocuous
            answers, or the two stages of `PermanentUnary` have no memory.
        BudgetExceeded: from `answer`, if it would cost more than the limit in all.

    >>> from sfumato.local import Warner
    >>> device = Respondent(Warner.of_epsilon(1), question="voted?", limit=2)
    >>> device.answer(True) in (True, False), device.spent
    (True, LocalDP(epsilon=1.0))
    """

    noun = "a respondent's device"

    def __init__(
        self,
        design: Channel | Mapping[str, Any],
        *,
        question: str,
        limit: LocalDP | Number,
        bits: Bits | None = None,
        memory: Memory | None = None,
    ) -> None:
        known = _answerable(design_from_dict(design) if isinstance(design, Mapping) else design)
        self.design = known
        self.question = short_text("question", question)
        if memory is not None and not isinstance(memory, Memory):
            raise InvalidParameter(f"memory must be a Memory or None, got {type(memory).__name__}")
        self.memory = memory
        self._lock = Lock() if memory is None else memory.lock
        self.limit = _checked_limit(limit)
        self._bits = bits or default_bits()
        self._fresh = 0
        if not known.cost.bounded and self.limit.bounded:
            raise NotSupported("this design can give the truth away: epsilon is infinite")
        if isinstance(known, PermanentUnary) and memory is None:
            raise NotSupported("permanent bits need a memory: without one every report draws them afresh")

    @property
    def private(self) -> bool:
        """False if seeded bits draw the answers, which then protect nobody."""
        return self._bits.private

    @property
    def spent(self) -> LocalDP:
        """What the answers cost so far: those of the memory, or every fresh one of this device."""
        if self.memory is not None:
            return self.memory.spent
        return self.design.cost.repeated(self._fresh)

    def answer(self, truth: Any) -> Any:
        """The randomised answer to the question; True or False, a category, or bits."""
        self.require_process()
        with self._lock:
            return self._answer(truth)

    def _answer(self, truth: Any) -> Any:
        if self.memory is None:
            output = self._draw(truth)
            self._fresh += 1
            return self.design.spoken(output)
        kept = self.memory.recall(self.question, self.design)
        if kept is None:
            channel = self.design.kept if isinstance(self.design, PermanentUnary) else self.design
            kept = channel.spoken(self._draw(truth))
            self.memory.keep(self.question, self.design, kept)
        if isinstance(self.design, PermanentUnary):
            return self.design.spoken(self.design.report(np.array(kept, dtype=np.int64), self._bits))
        return kept

    def _draw(self, truth: Any) -> Any:
        cost = self.spent + self.design.cost
        if not cost.fits(self.limit):
            raise BudgetExceeded(f"this answer would cost {cost!r} in all, and the limit is {self.limit!r}")
        # A truth is checked before any coin is tossed, and the coins are those of the design alone.
        place = self.design.place([truth], self._bits)
        channel = self.design.kept if isinstance(self.design, PermanentUnary) else self.design
        return channel.draw(place, self._bits)[0]


def _checked_limit(limit: object) -> LocalDP:
    if isinstance(limit, LocalDP):
        return limit
    return LocalDP(
        math.inf if isinstance(limit, float) and limit == math.inf else exact_number("limit", limit)
    )
