"""Each kind of instruction on right and nearly right replies; those on form are in test_instructions_layouts.py."""

from __future__ import annotations

import pytest

from tests.envs.text.test_instructions_layouts import CASES as LAYOUT_CASES
from tetrathlon.envs.text.instructions.catalog import KINDS
from tetrathlon.envs.text.instructions.instruction import Count, Instruction
from tetrathlon.envs.text.instructions.marks import (
    EndsWith,
    Highlights,
    Placeholders,
    Postscript,
    Quoted,
    RepeatRequest,
    StartsWith,
    Title,
    TitleInAngles,
)
from tetrathlon.envs.text.instructions.wording import (
    CapitalWords,
    ForbiddenWords,
    InLanguage,
    Keyword,
    LetterCount,
    Lowercase,
    NoCommas,
    Uppercase,
    Verdict,
)

GERMAN = "Am Morgen fällt oft Regen auf die Stadt. Die Kinder freuen sich und laufen durch die Pfützen."
ENGLISH = "In the morning the rain often falls on the town. The children are happy and run through the puddles."

CASES: list[tuple[Instruction, list[str], list[str]]] = [
    (
        Title(),
        [
            "# The Rain\n\ntext",
            "# On A Day In 'May'\r\ntext",
            "# Rain & Snow\ntext\n## more",
            "# Rain - A Walk\ntext",
            "# 10 Walks\ntext #1",
        ],
        [
            "# A Walk",
            "# A Walk\n...",
            "# A Walk\ntext\n#Other",
            "# A Walk\ntext\n#\ntext",
            "# A Walk\ntext\n # B",
            "# 10 walks\ntext",
            "# Rain & -\ntext",
            "# The rain\n\ntext",
            "The Rain\n\ntext",
            "## The Rain\ntext",
            "text\n# The Rain",
            "# Rain\ntext",
            "# A B\nx\n# C D",
            "#The Rain",
        ],
    ),
    (
        TitleInAngles(),
        ["<<rain>>\n\ntext", "text <<The Rain>> text", "<< rain >>"],
        ["<rain>", "<<>>", "<<.>>", "<<&nbsp;>>", "<<  >>", "«rain»", "<<ra\nin>>", "< <rain> >"],
    ),
    (
        RepeatRequest("Write about rain."),
        ["Write about rain.\n\nRain falls.", "Write about rain. Rain falls.", "Write about rain.\r\nRain"],
        [
            '"Write about rain." Rain',
            "Write about rain.",
            "write about rain. Rain",
            "Write about rain.Rain",
            "Write about rain. ...",
        ],
    ),
    (
        StartsWith("Good question"),
        ["Good question. Rain", "Good question", "\n Good question, rain"],
        [
            "good question. Rain",
            "Good questions",
            "A Good question",
            '"Good question"',
            "Good  question",
            "Gооd question",
        ],
    ),
    (
        EndsWith("Any other questions?"),
        ["Rain. Any other questions?", "Any other questions?\r\n", "a\nAny other questions?"],
        [
            "Any other questions? Bye",
            "Any other questions",
            "any other questions?",
            "Many other questions??",
            "TooAny other questions?",
        ],
    ),
    (
        EndsWith("Any other questions?", ignores_case=True),
        ["Rain. Any other questions?", '"Rain. ANY other questions?"', "any other questions?\n"],
        ["Any other questions", "Any other question?", "Any other questions?!"],
    ),
    (
        Quoted(),
        ['"rain"', ' "a\n\nb" ', '"it\'s"'],
        ["'rain'", "“rain”", '"rain', 'rain"', '""', '"a" and "b"', "''rain''", '"..."'],
    ),
    (Quoted(is_strict=False), ['"rain"', '"a "b" c"', '"a" b "c"'], ["'rain'", '"rain', '"']),
    (
        Postscript(),
        ["a\n\nP.S. b", "a\r\nP.S.: b\r\n", "P.S. b", "a\n**P.S.** b", "a\n*P.S. b*", "a\n**P.S.:** b"],
        ["a\n\np.s. b", "a\n\nPS b", "a\nP.S.", "P.S. b\n\na", "a P.S. b", "a\nP.S.b", "a\nP.P.S. b", "a\nP.S. ."],
    ),
    (
        Postscript("P.P.S"),
        ["a\nP.P.S b", "a\nP.P.S. b", "a\n**P.P.S.** b"],
        ["a\nP.S. b", "a\nP.P.S.", "a\nP.P.Sb", "a\nP.P.S.. b"],
    ),
    (
        Placeholders(Count(2, 2)),
        ["[a] and [b c]", "x [a][b]\r\n", "[name]\n[ date ]"],
        ["[a]", "[a] [.]", "[a] [&nbsp;]", "[a] [b] [c]", "[] [ ] [a]", "(a) (b)", "[a [b]", "[a\n] [b]"],
    ),
    (
        Highlights(Count(2, 2)),
        ["*a* and **b c**", "* point *a*\n* *b*", "*a*\r\n*b.*", "***a*** *b*"],
        [
            "*a*",
            "*a* *.*",
            r"*a* \*b\*",
            "*a* ****b****",
            "*a* *b* *c*",
            "* a * and * b *",
            "*a\n* b*",
            "_a_ _b_",
            "** ** *a*",
        ],
    ),
    (
        Keyword("rain", Count(2, 2)),
        ["Rain and RAIN.", "rain-rain", "the train, rain (rain)", "rain _rain_"],
        [
            "rain",
            "rain rains",
            "rain rain rain",
            "train rain",
            "rain r\u0430in",
            "rain train_",
            "rain \uff52ain",
            "rain rain \uff52ain",
        ],
    ),
    (
        ForbiddenWords(("wet", "cloud")),
        ["Rain is good.", "clouds and wetness", "w e t"],
        [
            "It is wet.",
            "WET!",
            "no-cloud",
            "a (cloud)",
            "_wet_",
            "w\u200bet",
            "we\u00adt",
            "\uff57\uff45\uff54",
            "\U0001d430\U0001d41e\U0001d42d",
            "w\ufe0fet",
            "w\u0336e\u0336t\u0336",
            "w\x00et",
        ],
    ),
    (LetterCount("k", Count(1, 2)), ["kick", "K", "look at k"], ["no", "kick k", "\u043a", ""]),
    (LetterCount("k", Count(most=0)), ["no", "\u043a", "&"], ["k", "K", "\uff4b", "\U0001d424", "\u212a"]),
    (
        Lowercase(),
        ["all small. 3 é", "ß", "a\r\nb", "rain™ in 5 ℃"],
        ["One", "all smalL", "É", "123", "a \u01c5", "a \U0001d400", "a \u24b6", "a \uff21"],
    ),
    (
        Uppercase(),
        ["ALL BIG. 3 É", "A\r\nB", "P.S. X", "LA 5ª"],
        ["ALL BIg", "é", "123", "STRAßE", "A \U0001d41a", "A \u24d0", "A \uff41"],
    ),
    (
        CapitalWords(Count(2, 2)),
        ["This IS BIG", "I saw A CAT-DOG, (YES)", "OK3 and NO!"],
        ["This IS big", "VERY VERY BIG", "A I IS", "This Is BIG", "IsNT BIG"],
    ),
    (
        NoCommas(),
        ["no comma.", "a; b", "'quoted'"],
        ["a, b", ",", "a，b", "a、b", "a، b", "a\u201a b", "a\u2e41 b", "a\ua4f9 b", "a\ufe10 b"],
    ),
    (
        Verdict(),
        [
            "I think so. My answer is yes.",
            "my answer is maybe.",
            "MY ANSWER IS NO.",
            "Well: my answer\nis  no.",
            "My answer is yes. My answer is nothing new.",
        ],
        [
            "My answer is yes. My answer is no!",
            "My answer is yes. my answer\nis maybe",
            "My answer is yes. My answer is yes?",
            "Yes.",
            "My answer is yes",
            "My answer is yes. My answer is no.",
            "My answer is perhaps.",
        ],
    ),
    (
        InLanguage("de"),
        [GERMAN, GERMAN.upper(), GERMAN * 2 + "\n\n```python\nfor item in items: print(item)\n```"],
        [ENGLISH, "Regen.", "", GERMAN + "\n\n" + ENGLISH, GERMAN.replace("e", "\u0435"), "Der der der"],
    ),
    (
        InLanguage("ja"),
        [
            "朝は雨がよく降ります。子どもたちはとても楽しそうです。",
            "パンとコーヒーが好きです。毎朝それを食べます。",
            "カタカナとひらがなと漢字",
        ],
        ["早上经常下雨。孩子们非常高兴。他们在雨里跑。", ENGLISH, "雨"],
    ),
]


@pytest.mark.parametrize(("instruction", "right", "wrong"), CASES, ids=lambda value: getattr(value, "kind", None))
def test_right_and_nearly_right_replies(instruction: Instruction, right: list[str], wrong: list[str]) -> None:
    assert len(right) >= 3 and len(wrong) >= 3
    assert [reply for reply in right if not instruction.check(reply)] == []
    assert [reply for reply in wrong if instruction.check(reply)] == []


def test_every_kind_has_cases() -> None:
    assert len(KINDS) >= 32
    assert {instruction.kind for instruction, _, _ in CASES + LAYOUT_CASES} == set(KINDS)
