"""The language model of characters, and words that are one token."""

from __future__ import annotations

import pytest

from tetrathlon.agents.char_lm import char_lm, character_tokenizer


def test_words_are_one_token_and_come_back_as_they_are() -> None:
    words = ('<tool_call>{"name": "get", "arguments": {"key": "', '"}}</tool_call>', "get")
    tokenizer = character_tokenizer("abc<>{}\"':,_ -tolgne/rumskyi", words)
    text = '<tool_call>{"name": "get", "arguments": {"key": "ab"}}</tool_call>'
    ids = tokenizer.encode(text)
    assert len(ids) == 4 and tokenizer.decode(ids) == text
    assert len(tokenizer.encode("get a")) == 3 and len(tokenizer.encode("ge")) == 2
    assert tokenizer.convert_tokens_to_ids("é") == tokenizer.unk_token_id


def test_an_empty_word_is_refused() -> None:
    with pytest.raises(ValueError, match="words must not be empty"):
        char_lm(words=[""])
