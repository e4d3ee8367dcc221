"""Each kind of instruction on right and nearly right replies."""

from __future__ import annotations

import json

import pytest

from tetrathlon.envs.text.instructions.catalog import KINDS
from tetrathlon.envs.text.instructions.data_formats import Csv, Json, JsonSchema
from tetrathlon.envs.text.instructions.instruction import Count, Instruction
from tetrathlon.envs.text.instructions.layouts import (
    Bullets,
    NamedSections,
    NumberedList,
    Sections,
    Table,
    TwoReplies,
)
from tetrathlon.envs.text.instructions.lengths import FirstWord, Lines, Paragraphs, Sentences, Words
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

SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {
            "title": {"type": "string", "minLength": 10},
            "count": {"type": "integer", "minimum": 1, "maximum": 9},
            "tags": {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 2, "maxItems": 2},
        },
        "required": ["title", "count", "tags"],
        "additionalProperties": False,
    }
)
GOOD = '{"title": "Rain at night", "count": 3, "tags": ["a", "b"]}'
TABLE = "Look:\n\n| name | use |\n| --- | :-: |\n| rain | a |\n| sun | b |"
GERMAN = "Am Morgen fällt oft Regen auf die Stadt. Die Kinder freuen sich und laufen durch die Pfützen."
ENGLISH = "In the morning the rain often falls on the town. The children are happy and run through the puddles."

CASES: list[tuple[Instruction, list[str], list[str]]] = [
    (
        Words(Count(3, 5)),
        ["one two three", "  a-b, c * d\r\n\r\n- e5 ", "It's 3 o'clock - now."],
        ["one two", "one two three four five six", "one * - … two", "", "雨雨雨雨"],
    ),
    (
        Sentences(Count(2, 2)),
        ["One. Two.", 'He said "No." Then 3.5 rain', "Wait... What?!"],
        ["One.", "One. Two. Three.", "One.Two.", "... ! ?", "One. Two. And a rest"],
    ),
    (
        Paragraphs(Count(2, 2)),
        ["a\n\nb", "a\r\n\r\nb\r\n", "a\nb\n \t\n\nc"],
        ["a\nb", "a\n\nb\n\nc", "a\\n\\nb", ""],
    ),
    (
        Paragraphs(Count(2, 2), "***"),
        ["a\n***\nb", "a\n\nc\n\n*** \n\nb", "a\r\n***\r\nb"],
        ["a *** b", "a\n\nb", "a\n***\nb\n***", "a\n***\n***\nb", "a\n****\nb"],
    ),
    (Lines(Count(most=2)), ["a", "a\n\n\nb", "a\r\nb\r\n"], ["a\nb\nc", "a\rb\rc", "a\n\nb\n.\n"]),
    (
        FirstWord(2, 2, "Today"),
        ["a\n\nToday it rains", "a\n\n*Today* b", 'a\n\n"today, b"'],
        ["Today\n\na", "a\n\nTodays b", "a\n\nThis Today", "a\n\nToday b\n\nc"],
    ),
    (
        Bullets(Count(2, 2)),
        ["* a\n* b", "Look:\n- a\n* b\n\nend", "* a\r\n*\tb"],
        ["* a", "* a\n* b\n* c", "*a\n*b", "* a\n  * b", "• a\n• b", "* a\n* \n", "* a\n---"],
    ),
    (
        NumberedList(3),
        ["1. a\n2. b\n3. c", "Look:\n1. a\n\n2. b\n\n3. c\nend", "1. a\r\n2. b\r\n3. c"],
        [
            "1. a\n2. b",
            "1. a\n2. b\n2. c",
            "1. a\n3. b\n2. c",
            "1) a\n2) b\n3) c",
            "1. a\n2. b\n3.c",
            "0. a\n1. b\n2. c",
        ],
    ),
    (
        Sections(("Past", "Present")),
        ["## Past\na\n## Present\nb", "Hi\n\n## Past\r\n\r\na\n\n## Present \nb", "## Past\n### More\n## Present\nb"],
        [
            "## Present\na\n## Past\nb",
            "## Past\na\n## Now\nb",
            "## Past\n## Present\nb",
            "## Past\na\n## Present\n",
            "# Past\na\n# Present\nb",
            "## Past\na\n## Present\nb\n## Future\nc",
            "## past\na\n## present\nb",
        ],
    ),
    (
        NamedSections("Day", Count(least=2)),
        ["Day 1\na\nDay 2\nb", "## Day 1: Rain\na\n**Day 2**\nb", "DAY 1\r\na\r\nDAY 2\r\nb\r\nDay 3\r\nc"],
        [
            "Day 1\na",
            "Day 2\na\nDay 1\nb",
            "Day 1\nDay 2\nb",
            "Day 1\na\nDay 3\nb",
            "Day 1\na\nDay 2\n",
            "Day I\na\nDay II\nb",
        ],
    ),
    (
        TwoReplies(),
        ["one\n******\ntwo", "one\n\n ****** \n\ntwo", "one\r\n******\r\ntwo"],
        ["one ****** two", "one\n*****\ntwo", "one\n******\nOne", "one\n******\n", "a\n******\nb\n******\nc"],
    ),
    (
        Table(("name", "use"), 2),
        [TABLE, TABLE.replace("\n", "\r\n"), TABLE + "\n\nThat is all.", TABLE.replace("| a |", r"| a \| b |")],
        [
            TABLE + "\n| snow | c |",
            TABLE.replace("| a |", "|  |"),
            TABLE.replace("| a |", "| a"),
            TABLE.replace("name", "Name"),
            TABLE.replace("| name | use |", "| use | name |"),
            TABLE.replace("| --- | :-: |\n", ""),
            TABLE.replace("| sun", "\n| sun"),
            TABLE.replace("|", "\uff5c"),
        ],
    ),
    (
        Json(),
        ['{"a": 1}', ' {"a": [1, {"b": null}]}\r\n', '{"é": "\\u00e9, }{"}'],
        [
            '{"a": 1,}',
            "{'a': 1}",
            '```json\n{"a": 1}\n```',
            'Here: {"a": 1}',
            '{"a": NaN}',
            '{"a": -Infinity}',
            '{"a": 1e999}',
            '{"a": 1, "a": 2}',
            '[{"a": 1}]',
            "{}",
            '{"a": 1',
            "{“a”: 1}",
            '{"a": ' + "9" * 401 + "}",
            '{"a":' * 65 + "1" + "}" * 65,
            '{"a":' * 100_000 + "1" + "}" * 100_000,
        ],
    ),
    (
        Json(may_be_fenced=True),
        ['{"a": 1}', '```json\n{"a": 1}\n```', "```\r\n[1, 2]\r\n```", "3"],
        ['```json\n{"a": 1,}\n```', '```json {"a": 1}```', 'Here:\n```json\n{"a": 1}\n```', "```\n```"],
    ),
    (
        JsonSchema(SCHEMA),
        [GOOD, GOOD.replace("3", "3.0"), GOOD.replace(", ", ",\r\n")],
        [
            GOOD.replace("3", "true"),
            GOOD.replace("3", "0"),
            GOOD.replace("3", '"3"'),
            GOOD.replace('"b"', '"b", "c"'),
            GOOD.replace('"b"', '""'),
            GOOD.replace('"count": 3, ', ""),
            GOOD.replace("{", '{"more": 1, '),
            GOOD.replace("{", '{"count": 2, '),
            GOOD.replace("]}", "],}"),
            f"```json\n{GOOD}\n```",
            SCHEMA,
        ],
    ),
    (
        Csv(("name", "use"), 2),
        ["name,use\nrain,a\nsun,b", "name,use\r\nrain,a\r\nsun,b\r\n", 'name,use\nrain,"a, b"\nsun,"say ""hi"""'],
        [
            "name,use\nrain,a",
            "name,use\nrain,a\nsun,b\nsnow,c",
            "name,use\nrain,a, b\nsun,b",
            "name,use\nrain,\nsun,b",
            "use,name\na,rain\nb,sun",
            "name, use\nrain, a\nsun, b",
            "name;use\nrain;a\nsun;b",
            "```csv\nname,use\nrain,a\nsun,b\n```",
            'name,use\nrain,"a\nsun,b',
        ],
    ),
    (
        Title(),
        ["# The Rain\n\ntext", "# On A Day In 'May'\r\ntext", "# Rain Now"],
        [
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
        ["<rain>", "<<>>", "<<  >>", "«rain»", "<<ra\nin>>", "< <rain> >"],
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
        ["'rain'", "“rain”", '"rain', 'rain"', '""', '"a" and "b"', "''rain''"],
    ),
    (Quoted(is_strict=False), ['"rain"', '"a "b" c"', '"a" b "c"'], ["'rain'", '"rain', '"']),
    (
        Postscript(),
        ["a\n\nP.S. b", "a\r\nP.S.: b\r\n", "P.S. b"],
        ["a\n\np.s. b", "a\n\nPS b", "a\nP.S.", "P.S. b\n\na", "a P.S. b", "a\nP.S.b", "a\nP.P.S. b"],
    ),
    (
        Placeholders(Count(2, 2)),
        ["[a] and [b c]", "x [a][b]\r\n", "[name]\n[ date ]"],
        ["[a]", "[a] [b] [c]", "[] [ ] [a]", "(a) (b)", "[a [b]", "[a\n] [b]"],
    ),
    (
        Highlights(Count(2, 2)),
        ["*a* and **b c**", "* point *a*\n* *b*", "*a*\r\n*b.*"],
        ["*a*", "*a* *b* *c*", "* a * and * b *", "*a\n* b*", "_a_ _b_", "** ** *a*"],
    ),
    (
        Keyword("rain", Count(2, 2)),
        ["Rain and RAIN.", "rain-rain", "the train, rain (rain)"],
        ["rain", "rain rains", "rain rain rain", "train rain", "rain r\u0430in", "rain rain_"],
    ),
    (
        ForbiddenWords(("wet", "cloud")),
        ["Rain is good.", "clouds and wetness", "w e t"],
        ["It is wet.", "WET!", "no-cloud", "a (cloud)"],
    ),
    (LetterCount("k", Count(1, 2)), ["kick", "K", "look at k"], ["no", "kick k", "\u043a", ""]),
    (Lowercase(), ["all small. 3 é", "ß", "a\r\nb"], ["One", "all smalL", "É", "123", "a \u01c5"]),
    (Uppercase(), ["ALL BIG. 3 É", "A\r\nB", "P.S. X"], ["ALL BIg", "é", "123", "STRAßE"]),
    (
        CapitalWords(Count(2, 2)),
        ["This IS BIG", "I saw A CAT-DOG, (YES)", "OK3 and NO!"],
        ["This IS big", "VERY VERY BIG", "A I IS", "This Is BIG", "IsNT BIG"],
    ),
    (NoCommas(), ["no comma.", "a; b", "'quoted'"], ["a, b", ",", "a，b", "a、b", "a، b"]),
    (
        Verdict(),
        ["I think so. My answer is yes.", "my answer is maybe.", "MY ANSWER IS NO."],
        ["Yes.", "My answer is yes", "My answer is yes. My answer is no.", "My answer is perhaps."],
    ),
    (
        InLanguage("de"),
        [GERMAN, GERMAN.upper(), GERMAN + "\n\n```python\nfor item in items: print(item)\n```"],
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
    assert {instruction.kind for instruction, _, _ in CASES} == set(KINDS)
