"""A simulated customer: a script, a memory of what was said, and simple words by which questions are recognized."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from tetrathlon.envs.tools.desk.announcement import Clarity

VAGUE = "I don't understand. Could you ask me something specific?"
"""What is said to whatever is not understood."""
AGREED = "Yes, please go ahead."
"""What is said to an announcement that names what is going to be done."""
UNCLEAR = "What exactly are you going to do? Tell me what you change, of which order or item, and any amount."
"""What is said to one that does not."""
RIGHT = "Yes, that is right."
"""What is said to a question whether a fact is so."""
MOST_FACTS = 2
"""Facts that are said in a turn."""
_LONGEST_HEARD = 4_000
_QUESTIONS: Mapping[str, re.Pattern[str]] = {
    fact: re.compile(pattern)
    for fact, pattern in {
        "name": r"\bnames?\b|\bwho (?:are you|am i)\b",
        "postal": r"\bpostal|\bzip\b|\bpost ?codes?\b",
        "order": r"\border (?:numbers?|ids?|no\b)|\b(?:number|id) of (?:the|that|this|an|your) (?:\w+ )?order|"
        r"\b(?:which|what) order|\border is it\b|\border_id\b",
        "item": r"\bitems?\b|\barticles?\b|\bproducts?\b|\bwhich ones?\b|"
        r"\bwhat (?:exactly )?(?:do|would|did|is|was) (?:you|it|the)\b",
        "variant": r"\bvariants?\b|\bcolou?rs?\b|\bsizes?\b|\binstead\b|\bexchange it for\b|\brather have\b",
        "address": r"\baddress|\bstreet\b|\bwhere (?:to|should|shall|do|would)\b|\bcity\b",
        "payment": r"\bpayment|\bpay\b|\bcards?\b|\bpaypal\b|\brefunded? to\b|\bmoney\b",
        "reason": r"\bwhy\b|\breasons?\b",
    }.items()
}
"""Fact -> words by which a question for it is recognized, in small letters."""
_WHO = re.compile(r"\bidentity\b|\bidentify\b|\bverify\b")
_ASKS = re.compile(r"\?|\b(?:please|tell|give|provide|need|state|share|send|let me know|could you|can you)\b")
_GO = re.compile(
    r"\b(?:shall|should) (?:i|we)\b|\b(?:may|can) i do\b|\bgo ahead\b|\bproceed\b|\bconfirm|\byes or no\b|\byes/no\b|"
    r"\bok(?:ay)?\s*\?|\b(?:right|correct|agreed)\s*\?|\bdo you (?:agree|want me to)\b|\bwould you like me to\b|"
    r"\bis (?:that|this|it|everything) (?:ok|okay|right|correct|fine|all right|alright)\b|"
    r"\bare you (?:sure|fine|happy|okay)\b"
)
_ANNOUNCES = re.compile(
    r"\b(?:i|we)(?:'ll| will| am going to| are going to|'m going to|'re going to) (?!need|check|look|verify)"
)
_REFUSES = re.compile(
    r"\bunfortunately\b|\bi(?:'m| am) (?:sorry|afraid|unable|not able)\b|\bnot (?:possible|allowed|eligible)\b|"
    r"\b(?:i|we) (?:cannot|can't|can not|are unable|have to decline|must decline)\b"
)
_CHECKS = re.compile(r"\b(?:right|correct)\s*\?|\bis (?:that|this|it|everything) (?:right|correct)\b")
_MORE = re.compile(r"\banything else\b|\bsomething else\b")
_OFFERS = re.compile(
    r"\b(?:how|what) (?:can|may|could) (?:i|we)\b|\bwhat happened\b|\byour (?:request|issue)\b|\bmore details\b|"
    r"\bwhat (?:would|do) you (?:like|want|need)\b|\btell me more\b"
)
_CLAIMS_DONE = re.compile(r"\b(?:done|has been|have been|is now|completed|processed|i have|i've|successfully)\b")
_ORDER = re.compile(r"\bw\d{5}\b")


class ScriptedUser:
    """A simulated customer, who says what is asked for, bit by bit, and nothing else.

    - A question is recognized by words such as "order number" or "colour". Of the facts that it asks for two are said,
      those first that were not said before. What is no question, or none that the customer can answer, is answered with
      :data:`VAGUE`.
    - An announcement ("I am going to ... Shall I go ahead?") is agreed to where it names the change and its object, and
      all is said that belongs to the request; who has second thoughts says them then. To any other the customer asks
      what exactly will be done.
    - Whether a request was dealt with, the customer sees in the world, not in what they are told.
    - Of a refusal they complain once or twice. After the last request they take leave.

    Args:
        script: From :func:`~tetrathlon.envs.tools.desk.script.write_script`.
    """

    def __init__(self, script: Mapping[str, Any]) -> None:
        self.script = script
        self.current = 0
        """The request that is spoken of."""
        self.told: list[str] = []
        """The facts of it, and of who calls, that were said."""
        self.agreed: list[str] = []
        """The announcements for it that were agreed to."""
        self.is_sure = False
        """Whether they had their second thoughts."""
        self.complaints = 0
        """How often they complained of its refusal."""
        self.postal = 0
        """How often they were asked for their postal code."""
        self.is_content = False
        """Whether they have nothing more to ask for."""
        self.is_gone = False
        """Whether they hung up."""

    @property
    def request(self) -> Mapping[str, Any]:
        """The request that is spoken of."""
        request: Mapping[str, Any] = self.script["requests"][self.current]
        return request

    @property
    def wanted(self) -> list[str]:
        """What they have not yet said of it, and nobody could do it without."""
        return [name for name, fact in self.request["facts"].items() if fact["values"] and name not in self.told]

    @property
    def postal_code(self) -> str:
        """The postal code that they gave last, or will give first."""
        codes = self.script["postal"]
        return str(codes[min(max(self.postal - 1, 0), len(codes) - 1)])

    def hear(self, text: str, *, is_settled: bool, is_declined: bool, named: Clarity) -> str:
        """Return what they say to a text.

        Args:
            text: What the agent says.
            is_settled: Whether the request that is spoken of was dealt with.
            is_declined: Whether it was declined.
            named: What the text names of the change that is asked for.
        """
        if is_settled:
            return self._go_on(is_declined)
        said = text[:_LONGEST_HEARD].casefold().replace("\u2019", "'")
        if wrong := self._other_order(said):
            return f"No, not {wrong}. {self._text('order')}"
        asked = self._asked(said)
        unsaid = [f for f in asked if self._values(f) and f not in self.told and not self._mentions(said, f)]
        goes = _GO.search(said) is not None
        if not unsaid and (goes or (not asked and _ANNOUNCES.search(said) and not _REFUSES.search(said))):
            return self._answer_announcement(text, said, named)
        if asked:
            first = [*unsaid, *(fact for fact in asked if fact not in unsaid)][:MOST_FACTS]
            return self._tell([fact for fact in asked if fact in first])
        if _MORE.search(said):
            return f"You have not dealt with this yet: {self.request['opening']}"
        if _REFUSES.search(said):
            return "Is that a no? Then please decline it, so that I have it in writing."
        if _OFFERS.search(said):
            return str(self.request["opening"])
        if "?" in said and any(self._mentions(said, fact) for fact in self.request["facts"]):
            return RIGHT
        return "I have had no word of that yet. Please see to it." if _CLAIMS_DONE.search(said) else VAGUE

    def _asked(self, said: str) -> list[str]:
        """Return the facts that a text asks for, of those that there are, in its order."""
        if not _ASKS.search(said):
            return []
        found = {fact: match.start() for fact, words in _QUESTIONS.items() if (match := words.search(said))}
        asked = sorted(found, key=found.__getitem__)
        if not asked and _WHO.search(said):
            asked = ["name", "postal"]
        return [fact for fact in asked if fact in ("name", "postal", "order") or fact in self.request["facts"]]

    def _other_order(self, said: str) -> str:
        """Return an order that a text names instead of the one that it is about, or nothing."""
        right = self.request["facts"].get("order", {"values": ()})["values"]
        named = [name.upper() for name in _ORDER.findall(said)]
        return named[0] if right and named and not set(right) & set(named) else ""

    def _go_on(self, is_declined: bool) -> str:
        """Complain of a refusal, come to the next request, or take leave."""
        insists = self.request["insists"]
        if is_declined and self.complaints < len(insists):
            self.complaints += 1
            return f"{insists[self.complaints - 1]} Please do it all the same."
        thanks = "All right then." if is_declined else "Thank you."
        if self.current + 1 < len(self.script["requests"]):
            self.current += 1
            self.told = [fact for fact in self.told if fact in ("name", "postal")]
            self.agreed, self.is_sure, self.complaints = [], False, 0
            return f"{thanks} There is one more thing. {self.request['opening']}"
        if self.script["stays"] and not self.is_content:
            self.is_content = True
            return f"{thanks} That is all."
        self.is_gone = True
        return f"{thanks} Goodbye."

    def _answer_announcement(self, text: str, said: str, named: Clarity) -> str:
        if named != "all" and _CHECKS.search(said) and any(self._mentions(said, f) for f in self.request["facts"]):
            return RIGHT
        if named == "nothing":
            return UNCLEAR
        if missing := [fact for fact in self.wanted if not self._mentions(said, fact)]:
            return self._tell(missing)
        if named == "kind":
            return UNCLEAR
        if self.request["first"] and not self.is_sure:
            self.is_sure = True
            changed = [f for f, fact in self.request["first"].items() if fact != self.request["facts"][f]]
            return f"Wait, I have changed my mind. {self._texts(changed)}"
        self.agreed.append(text[:_LONGEST_HEARD])
        return AGREED

    def _tell(self, facts: Iterable[str]) -> str:
        listed = list(facts)[:MOST_FACTS]
        self.postal += "postal" in listed
        self.told += [fact for fact in listed if fact not in self.told]
        return self._texts(listed)

    def _texts(self, facts: Iterable[str]) -> str:
        return " ".join(map(self._text, facts))

    def _text(self, fact: str) -> str:
        if fact == "name":
            return f"My name is {self.script['name']}."
        if fact == "postal":
            return f"My postal code is {self.postal_code}."
        if fact == "order" and fact not in self.request["facts"]:
            return f"I have an order {self.script['order']}."
        known = self.request["facts"] if self.is_sure or not self.request["first"] else self.request["first"]
        return str(known.get(fact, self.request["facts"][fact])["text"])

    def _mentions(self, said: str, fact: str) -> bool:
        """Tell whether a text holds a fact already."""
        return any(value.casefold() in said for value in self._values(fact))

    def _values(self, fact: str) -> list[str]:
        """Return by what a fact is recognized; nothing for one that nobody needs."""
        if fact == "name":
            return [str(self.script["name"])]
        if fact == "postal":
            return [self.postal_code]
        values: list[str] = self.request["facts"].get(fact, {"values": [self.script["order"]]})["values"]
        return values
