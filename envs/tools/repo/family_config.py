"""A reader of settings: lines, values, sections, checks."""

from __future__ import annotations

from tetrathlon.envs.tools.repo.cases_config import CASES
from tetrathlon.envs.tools.repo.family import Family, of

_LINES = '''"""Lines of a file of settings."""


class ConfigError(ValueError):
    """A file of settings cannot be read."""


def strip_comment(line):
    """Return a line without blanks around it and without a comment, which begins with K_MARK outside of quotes."""
    quoted = False
    for place, sign in enumerate(line):
        if sign == "'":
            quoted = not quoted
        if sign == K_MARK and not quoted:
            return line[:place].strip()
    return line.strip()


def join_lines(lines):
    """Return lines, each that ends with a backslash as one with the next, without the backslash and the blanks there.

    A backslash at the end of the last line is left out.
    """
    joined, start = [], ""
    for line in lines:
        if line.endswith("\\\\"):
            start += line[:-1].strip() + " "
        else:
            joined.append((start + line.strip()).strip())
            start = ""
    if start:
        joined.append(start.strip())
    return joined


def split_pair(line):
    """Return the key, in small letters, and the text of a line such as "key = text".

    A line without an equals sign or without a key raises ConfigError. The text may have more equals signs.
    """
    key, sign, text = line.partition("=")
    if not sign or not key.strip():
        raise ConfigError("this is no setting: " + line)
    return key.strip().lower(), text.strip()
'''
_VALUES = '''"""Values of settings."""

from PKG.lines import ConfigError

_YES = ("yes", "true", "on")
_NO = ("no", "false", "off")


def to_flag(text):
    """Return whether a text says yes, true or on, and not no, false or off, whatever its case; others: ConfigError."""
    word = text.lower()
    if word in _YES:
        return True
    if word in _NO:
        return False
    raise ConfigError("neither yes nor no: " + text)


def to_size(text):
    """Return the bytes of a text such as "512", "4k" or "2M": a k is 1024, an m 1024 times that, whatever its case."""
    factors = {"k": 1024, "m": 1024 * 1024}
    last = text[-1:].lower()
    if last in factors:
        return int(text[:-1]) * factors[last]
    return int(text)


def to_list(text, sign=","):
    """Return the parts of a text between signs, without blanks around them; empty parts are left out."""
    return [part.strip() for part in text.split(sign) if part.strip()]


def guess(text):
    """Return what a text looks like: a text within quotes without these, an integer, a flag, or else the text itself.

    An integer may have a minus.
    """
    if len(text) >= 2 and text[0] == "'" and text[-1] == "'":
        return text[1:-1]
    if text.removeprefix("-").isdigit():
        return int(text)
    if text.lower() in _YES + _NO:
        return to_flag(text)
    return text
'''
_CONFIG = '''"""Settings in sections."""

from PKG.lines import ConfigError, join_lines, split_pair, strip_comment
from PKG.values import guess


class Config:
    """Section -> key -> value; settings before the first section are in the section K_MAIN."""

    def __init__(self, sections=None):
        self._sections = {name: dict(pairs) for name, pairs in (sections or {}).items()}

    def put(self, section, key, value):
        """Set a value; sections are made as needed, and keys are kept in small letters."""
        self._sections.setdefault(section, {})[key.lower()] = value

    def lookup(self, path, default=None):
        """Return the value at a path such as "section.key", or "key" for one in K_MAIN, else the default."""
        section, sign, key = path.rpartition(".")
        if not sign:
            section = K_MAIN
        return self._sections.get(section, {}).get(key.lower(), default)

    def sections(self):
        """Return the names of all sections in alphabetical order."""
        return sorted(self._sections)

    def pairs(self, section):
        """Return key -> value of a section as a new dict; one that is not there is empty."""
        return dict(self._sections.get(section, {}))

    def merged(self, other):
        """Return a new config with the settings of both; where both have one, that of the other counts."""
        both = Config(self._sections)
        for section in other.sections():
            for key, value in other.pairs(section).items():
                both.put(section, key, value)
        return both

    def count(self):
        """Return how many settings there are in all sections together."""
        return sum(len(pairs) for pairs in self._sections.values())


def parse_config(text):
    """Return the config of a text: lines "[section]", "key = value", comments and empty lines.

    Values are guessed. A key that comes twice in a section raises ConfigError, and so does a section without a name.
    """
    config, section = Config(), K_MAIN
    for raw in join_lines(text.splitlines()):
        line = strip_comment(raw)
        if not line:
            continue
        if line.startswith("[") and line.endswith("]"):
            section = line[1:-1].strip()
            if not section:
                raise ConfigError("a section needs a name")
            continue
        key, value = split_pair(line)
        if key in config.pairs(section):
            raise ConfigError("twice: " + key)
        config.put(section, key, guess(value))
    return config
'''
_CHECKS = '''"""Checks of settings, and how they are written."""

from PKG.config import Config


def missing_keys(config, needed):
    """Return those of the needed paths that have no value, in their order."""
    return [path for path in needed if config.lookup(path) is None]


def out_of_range(config, limits):
    """Return the paths, in alphabetical order, whose values are below the low or above the high limit.

    Args:
        config: The config.
        limits: Path -> low and high, which are both allowed. Values that are not there are left out.
    """
    wrong = []
    for path in sorted(limits):
        low, high = limits[path]
        value = config.lookup(path)
        if value is not None and not low <= value <= high:
            wrong.append(path)
    return wrong


def write_value(value):
    """Return a value as text that is read as the same: yes or no for flags, quotes around texts that look otherwise."""
    if value is True:
        return "yes"
    if value is False:
        return "no"
    if isinstance(value, int):
        return str(value)
    plain = value.isalpha() and value.lower() not in ("yes", "true", "on", "no", "false", "off")
    return value if plain else "'" + value + "'"


def write_config(config):
    """Return the lines of a config: each section with a line "[name]", then its keys in order, as "key = value".

    Sections without settings are left out.
    """
    lines = []
    for section in config.sections():
        pairs = config.pairs(section)
        if not pairs:
            continue
        lines.append("[" + section + "]")
        for key in sorted(pairs):
            lines.append(key + " = " + write_value(pairs[key]))
    return lines


def changed_paths(old, new):
    """Return the paths, in alphabetical order, whose values differ or are in one of the configs only."""
    found = []
    for section in Config(None).merged(old).merged(new).sections():
        left, right = old.pairs(section), new.pairs(section)
        for key in list(left) + [key for key in right if key not in left]:
            if left.get(key) != right.get(key):
                found.append(section + "." + key)
    return sorted(found)
'''
CONFIG = Family(
    "config",
    ("settleconf", "confleaf", "inireader", "knobfile", "setupfile", "optionary"),
    """Reads files of settings such as

    key = value
    [section]
    other = yes  K_MARK comment

Settings before the first section are in the section K_MAIN.""",
    {"lines": _LINES, "values": _VALUES, "config": _CONFIG, "checks": _CHECKS},
    CASES,
    {
        "strip_comment": ("strip_comment", "without_comment", "cut_comment"),
        "join_lines": ("join_lines", "unfold", "logical_lines"),
        "split_pair": ("split_pair", "read_pair", "key_and_text"),
        "to_flag": ("to_flag", "as_bool", "read_flag"),
        "to_size": ("to_size", "as_bytes", "read_size"),
        "to_list": ("to_list", "as_list", "read_list"),
        "guess": ("guess", "interpret", "typed"),
        "Config": ("Config", "Preferences", "Options"),
        "put": ("put", "assign", "define"),
        "lookup": ("lookup", "find_value", "value_at"),
        "pairs": ("pairs", "entries", "content_of"),
        "merged": ("merged", "overlaid", "combined_with"),
        "parse_config": ("parse_config", "load_text", "read_config"),
        "missing_keys": ("missing_keys", "absent", "lacking"),
        "out_of_range": ("out_of_range", "beyond_limits"),
        "write_value": ("write_value", "value_text", "show_value"),
        "write_config": ("write_config", "dump_lines", "config_lines"),
        "changed_paths": ("changed_paths", "diff_paths"),
        "joined": ("joined", "done"),
        "wrong": ("wrong", "bad"),
    },
    {"K_MARK": of("#", ";", "%", "!", "|"), "K_MAIN": of("main", "general", "default", "root", "global")},
    (
        (
            "config",
            "        self._sections = {name: dict(pairs) for name, pairs in (sections or {}).items()}\n",
            "        self._sections = sections or {}\n",
        ),
        (
            "config",
            'path.rpartition(".")',
            'path.partition(".")',
        ),
        (
            "config",
            "            if not section:\n",
            "            if section is None:\n",
        ),
        (
            "lines",
            '        if sign == "\'":\n            quoted = not quoted\n',
            "",
        ),
        (
            "values",
            "int(text[:-1]) * factors[last]",
            "int(text[:-1]) * 1024",
        ),
        (
            "checks",
            "    return sorted(found)",
            "    return found",
        ),
    ),
)
