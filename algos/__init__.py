"""What learns: algorithms over decisions, blind to domains, tokenizers and simulators."""
