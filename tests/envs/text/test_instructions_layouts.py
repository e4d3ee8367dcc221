"""Cases of the kinds on length and layout, and of those by which the whole reply is data."""

from __future__ import annotations

import json

import pytest

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
        [
            "a\n\nToday it rains",
            "a\n\n*Today* b",
            'a\n\n"today, b"',
            "a\n\n# Today\nb",
            "a\n\n- Today b",
            "a\n\n_Today_ b",
            "a\n\nToday\u2014b",
        ],
        [
            "a\n\nToday_x b",
            "a\n\nToday's b",
            "a\n\nToday-ish b",
            "Today\n\na",
            "a\n\nTodays b",
            "a\n\nThis Today",
            "a\n\nToday b\n\nc",
        ],
    ),
    (
        Bullets(Count(2, 2)),
        ["* a\n* b", "Look:\n- a\n* b\n\nend", "* a\r\n*\tb"],
        [
            "* a",
            "* a\n* b\n* c",
            "*a\n*b",
            "* a\n  * b",
            "• a\n• b",
            "* a\n* \n",
            "* a\n---",
            "* a\n* .",
            "* a\n* * *",
            "* a\n- - -",
            "* a\n* &nbsp;",
            "* a\n* \u200b",
        ],
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
            "1. .\n2. .\n3. .",
        ],
    ),
    (
        Sections(("Past", "Present")),
        [
            "## Past\na\n## Present\nb",
            "Hi\n\n## Past\r\n\r\na\n\n## Present \nb",
            "## Past\n### More\na\n## Present\n1999",
            "# A Title\n## Past\na\n## Present\nb",
        ],
        [
            "## Past\n### More\n## Present\nb",
            "## Past\na\n# Other\n## Present\nb",
            "## Past\na\n## Present\nb\n##Third\nc",
            "## Past\na\n## Present\nb\n ## Third\nc",
            "## Past\n&nbsp;\n## Present\nb",
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
        [
            "Day 1\na\nDay 2\nb",
            "## Day 1: Rain\na\n**Day 2**\nb",
            "DAY 1\r\na\r\nDAY 2\r\nb\r\nDay 3\r\nc",
            "Day 1\nDay 1 was nice.\nDay 2\nDay 1 was nicer.",
            "Day 1 Rain\na\nDay 2 - Sun\n2000",
        ],
        [
            "Day 1\na",
            "Day 2\na\nDay 1\nb",
            "Day 1\nDay 2\nb",
            "Day 1\na\nDay 3\nb",
            "Day 1\na\nDay 2 was nice.",
            "Day 1\na\nDay 2\n",
            "Day I\na\nDay II\nb",
        ],
    ),
    (
        TwoReplies(),
        ["one\n******\ntwo", "one\n\n ****** \n\ntwo", "one\r\n******\r\ntwo"],
        [
            "one ****** two",
            "one\n*****\ntwo",
            "one\n******\nOne",
            "a b c d e.\n******\nE: b, c d a!",
            "a b c d e f\n******\na b c d e g",
            "one\n******\n\uff4fne",
            "one\n******\n",
            "a\n******\nb\n******\nc",
        ],
    ),
    (
        Table(("name", "use"), 2),
        [
            TABLE,
            TABLE.replace("\n", "\r\n"),
            "```\ncode\n```\n" + TABLE,
            TABLE + "\n\nThat is all.",
            TABLE.replace("| a |", r"| a \| b |"),
        ],
        [
            TABLE + "\n| snow | c |",
            TABLE.replace("| a |", "|  |"),
            TABLE.replace("| a |", "| a"),
            TABLE.replace("name", "Name"),
            TABLE.replace("| name | use |", "| use | name |"),
            TABLE.replace("| --- | :-: |\n", ""),
            TABLE.replace("| sun", "\n| sun"),
            TABLE.replace("|", "\uff5c"),
            TABLE.replace("Look:\n", "```").replace("```\n", "```\n") + "\n```",
            TABLE.replace("| a |", "| &nbsp; |"),
            TABLE.replace("| a |", "| <br> |"),
            TABLE.replace("| a |", "| - |"),
            TABLE + "\nsnow | c",
        ],
    ),
    (
        Json(),
        ['{"a": 1}', '\ufeff{"a": 1}', ' {"a": [1, {"b": null}]}\r\n', '{"é": "\\u00e9, }{"}'],
        [
            '{"a": 1,}',
            "{'a': 1}",
            '```json\n{"a": 1}\n```',
            '{"a": \u200b1}',
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
        [
            "name,use\nrain,a\nsun,b",
            "name,use\r\nrain,a\r\nsun,b\r\n",
            'name,use\nrain,"a, b"\nsun,"say ""hi"""',
            'name, use\nrain, "a, b"\nsun, b',
            "\ufeffname,use\nrain,a\n\nsun,b",
            "name,use\n\nrain,a\n \nsun,b",
        ],
        [
            "name,use\nrain,a",
            "name,use\nrain,a\nsun,b\nsnow,c",
            "name,use\nrain,a, b\nsun,b",
            "name,use\nrain,\nsun,b",
            "use,name\na,rain\nb,sun",
            "name,use\nrain,&nbsp;\nsun,b",
            "name,use\nrain,\u200b\nsun,b",
            "name,use\n,\nsun,b",
            "name;use\nrain;a\nsun;b",
            "Here:\nname,use\nrain,a\nsun,b",
            "```csv\nname,use\nrain,a\nsun,b\n```",
            'name,use\nrain,"a\nsun,b',
        ],
    ),
]


@pytest.mark.parametrize(("instruction", "right", "wrong"), CASES, ids=lambda value: getattr(value, "kind", None))
def test_right_and_nearly_right_replies(instruction: Instruction, right: list[str], wrong: list[str]) -> None:
    assert len(right) >= 3 and len(wrong) >= 3
    assert [reply for reply in right if not instruction.check(reply)] == []
    assert [reply for reply in wrong if instruction.check(reply)] == []
