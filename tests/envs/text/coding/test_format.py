"""Programs out of completions."""

from __future__ import annotations

import time

import pytest

from tetrathlon.envs.text.coding.format import CodeFormat

FORMAT = CodeFormat()


@pytest.mark.parametrize(
    "completion, answer",
    [
        ("```python\nx = 1\n```", "x = 1"),
        ("Here:\n```python\nx = 1\n```\nIt works.", "x = 1"),
        ("```python\nx = 1\n```\n```python\nx = 2\n```", "x = 2"),
        ("```\nx = 1\n```", "x = 1"),
        ("```python\nx = 1\n```\nIt prints\n```\n1\n```", "x = 1"),  # the marked one counts
        ("```text\nno\n```\n```\nx = 1\n```", "x = 1"),
        ("```Python3\nx = 1\n```", "x = 1"),
        ("``` py title=a.py\nx = 1\n```", "x = 1"),
        ("```{.python}\nx = 1\n```", "x = 1"),
        ("~~~python\nx = 1\n~~~", "x = 1"),
        ("````python\nx = '''\n```\n'''\n````", "x = '''\n```\n'''"),
        ("1. Like so:\n   ```python\n   def f():\n       pass\n   ```", "def f():\n    pass"),
        ("```python\r\nx = 1\r\n```\r\n", "x = 1\r"),
        ("<think>```python\nx = 1\n```</think>```python\nx = 2\n```", "x = 2"),
        ("<think>```python\nx = 1\n```</think>\nI do not know.", None),
        ("<think>```python\nx = 1\n```", None),
        ("```python\nx = 1", None),
        ("```python\nx = 1\n```\n```python\nx = 2", None),  # cut
        ("```bash\nls\n```", None),
        ("```python\n\n```", None),
        ("def f():\n    return 1", "def f():\n    return 1"),
        ("print(1)", "print(1)"),
        ("def f():\n    return 1\n\nThis is it.", None),
        ("zqxj", None),
        ("42", None),
        ("", None),
        (r"\boxed{x = 1}", None),
        ("<answer>x = 1</answer>", None),
        ("Use `x = 1` or ```x = 2```.", None),
        ("```x = 1```", None),
    ],
)
def test_the_last_block_of_python_counts(completion: str, answer: str | None) -> None:
    assert FORMAT.read(completion) == answer


def test_what_is_written_is_read() -> None:
    source = "def f(text):\n    return text + '\\n'\n"
    completion = FORMAT.write(source)
    assert FORMAT.read(completion) == source.rstrip("\n") and FORMAT.keeps(completion)


@pytest.mark.parametrize(
    "completion, kept",
    [
        ("```python\nx = 1\n```", True),
        ("<think>so</think>Here:\n```python\nx = 1\n```", True),
        ("<think>a</think><think>b</think>```python\nx = 1\n```", False),
        ("```\nx = 1\n```", False),
        ("```python\nx = 1\n```\n```python\nx = 2\n```", False),
        ("```python\nx = 1", False),
        ("```python\n \n```", False),
        ("x = 1", False),
    ],
)
def test_one_marked_block_is_in_the_format(completion: str, kept: bool) -> None:
    assert FORMAT.keeps(completion) is kept


@pytest.mark.parametrize(
    "text",
    [
        "```\n" * 250_000,
        "`" * 1_000_000,
        ("`" * 99 + "\n") * 10_000,
        "```python\n" + " " * 990_000,
        "```python\n" + " \n" * 490_000 + "```",
        "~~~" * 333_000,
        "(" * 19_000,
        "-" * 19_000 + "1",
        "a" + ".b" * 9_000,
        "f" + "()" * 9_000,
        "x = " + "[" * 9_000 + "]" * 9_000,
        "if x:\n" * 3_000,
        "lambda: " * 2_000 + "1",
        "9" * 19_000,
        "not " * 4_000 + "x",
        "x if " * 3_000,
        "\0" * 1_000,
        "\ud800",
    ],
    ids=lambda text: repr(text[:12]),
)
def test_hostile_text_neither_raises_nor_takes_long(text: str) -> None:
    begun = time.process_time()
    FORMAT.read(text)
    FORMAT.keeps(text)
    assert time.process_time() - begun < 3
