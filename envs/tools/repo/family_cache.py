"""A cache: entries that grow old, what is thrown away, counters, lookups by a function."""

from __future__ import annotations

from tetrathlon.envs.tools.repo.cases_cache import CASES
from tetrathlon.envs.tools.repo.family import Family, whole

_ENTRY = '''"""Entries of a cache."""


class Entry:
    """A value, when it was put in, and when it was used last. Times are integers that the caller gives."""

    def __init__(self, value, now, keep=None):
        self.value = value
        self.made = now
        self.used = now
        self.keep = keep
        self.hits = 0

    def is_old(self, now):
        """Tell whether the entry was made more than keep ago; with keep None it never gets old."""
        if self.keep is None:
            return False
        return now - self.made > self.keep

    def touch(self, now):
        """Note that the entry is used, and return its value."""
        self.used = now
        self.hits += 1
        return self.value

    def renew(self, value, now):
        """Put in another value: the entry is as if it were made now, but its hits stay."""
        self.value = value
        self.made = now
        self.used = now


def rest_of(entry, now):
    """Return how much longer an entry may be kept, at least 0; None for one that never gets old."""
    if entry.keep is None:
        return None
    return max(entry.made + entry.keep - now, 0)
'''
_CHOICE = '''"""Which entry of a cache is thrown away."""


def pick_oldest(entries):
    """Return the key of the entry that was made first, of equals the first key; None where there is none."""
    best = None
    for key in sorted(entries):
        if best is None or entries[key].made < entries[best].made:
            best = key
    return best


def pick_unused(entries):
    """Return the key of the entry whose last use is the longest ago, of equals the first key; None without any."""
    if not entries:
        return None
    return min(sorted(entries), key=lambda key: entries[key].used)


def pick_rare(entries):
    """Return the key of the entry with the fewest hits, of equals the one whose last use is the longest ago."""
    best = None
    for key in sorted(entries):
        entry = entries[key]
        if best is None or (entry.hits, entry.used) < (entries[best].hits, entries[best].used):
            best = key
    return best


PICKS = {"oldest": pick_oldest, "unused": pick_unused, "rare": pick_rare}


def pick_by(name, entries):
    """Return the key that is picked by a rule: oldest, unused or rare; another name raises KeyError."""
    return PICKS[name](entries)
'''
_CACHE = '''"""A cache that holds so many entries."""

from PKG.choice import pick_by
from PKG.entry import Entry, rest_of


class Cache:
    """Values by keys, no more than room of them; the rule says which is thrown away when there is no room.

    Entries older than keep are as if they were not there.
    """

    def __init__(self, room=N_ROOM, rule="unused", keep=None):
        if room < 1:
            raise ValueError("there must be room")
        self.room = room
        self.rule = rule
        self.keep = keep
        self.found = 0
        self.missed = 0
        self._entries = {}

    def has(self, key, now):
        """Tell whether there is a value that is not too old; that is no use of it."""
        return key in self._entries and not self._entries[key].is_old(now)

    def read(self, key, now, default=None):
        """Return the value of a key and count it as found, or count it as missed and return the default."""
        if not self.has(key, now):
            self.missed += 1
            return default
        self.found += 1
        return self._entries[key].touch(now)

    def store(self, key, value, now):
        """Put in a value; return the key that was thrown away for it, or None.

        A key that is there is renewed, and nothing is thrown away. What is too old goes first, by itself.
        """
        self.clean(now)
        if key in self._entries:
            self._entries[key].renew(value, now)
            return None
        gone = None
        if len(self._entries) >= self.room:
            gone = pick_by(self.rule, self._entries)
            del self._entries[gone]
        self._entries[key] = Entry(value, now, self.keep)
        return gone

    def clean(self, now):
        """Throw away what is too old and return how many entries that were."""
        old = [key for key, entry in self._entries.items() if entry.is_old(now)]
        for key in old:
            del self._entries[key]
        return len(old)

    def stored(self):
        """Return the keys that are there, too old or not, in alphabetical order."""
        return sorted(self._entries)

    def time_left(self, key, now):
        """Return how much longer a key will be kept; 0 for one that is not there, None for one that never gets old."""
        if key not in self._entries:
            return 0
        return rest_of(self._entries[key], now)

    def rate(self):
        """Return how many of all reads found something, in whole per cent, rounded down; 0 without any."""
        total = self.found + self.missed
        if total == 0:
            return 0
        return 100 * self.found // total
'''
_USING = '''"""Caches in use."""

from PKG.cache import Cache


class Remembered:
    """A function of one argument whose results are kept in a cache."""

    def __init__(self, function, cache=None):
        self.function = function
        self.cache = cache if cache is not None else Cache()
        self.calls = 0

    def ask(self, argument, now=0):
        """Return the result; the function is called only if the cache does not have it. None is a result too."""
        if self.cache.has(argument, now):
            return self.cache.read(argument, now)
        self.cache.read(argument, now)
        self.calls += 1
        result = self.function(argument)
        self.cache.store(argument, result, now)
        return result


def warm_up(cache, pairs, now):
    """Put pairs of key and value into a cache, one time unit apart from now on; return the keys thrown away."""
    gone = []
    for place, (key, value) in enumerate(pairs):
        lost = cache.store(key, value, now + place)
        if lost is not None:
            gone.append(lost)
    return gone


def replay(cache, keys, cost=1):
    """Read keys one after the other at the times 0, 1, 2 and so on; store key * cost for each that is missed.

    Returns how many were missed.
    """
    before = cache.missed
    for now, key in enumerate(keys):
        if cache.read(key, now) is None:
            cache.store(key, key * cost, now)
    return cache.missed - before


def compare_rules(keys, room, rules=("oldest", "unused", "rare")):
    """Return rule -> how many keys are missed when they are read with a new cache of so much room."""
    return {rule: replay(Cache(room, rule), keys) for rule in rules}
'''
_FULL = "cache = Cache(3, V_r)\nwarm_up(cache, [('a', 1), ('b', 2), ('c', 3)], V_t)\n"
CACHE = Family(
    "cache",
    ("keepsake", "memokit", "cachelet", "larderbox", "recallbox", "stashwise"),
    """A cache with room for N_ROOM entries if nothing else is said.

Times are integers that the caller gives, so that nothing depends on a clock.""",
    {"entry": _ENTRY, "choice": _CHOICE, "cache": _CACHE, "using": _USING},
    CASES,
    {
        "Entry": ("Entry", "Record", "Slot"),
        "is_old": ("is_old", "is_stale", "has_expired"),
        "touch": ("touch", "mark_use", "visit"),
        "renew": ("renew", "refresh", "replace_value"),
        "rest_of": ("rest_of", "remaining", "life_left"),
        "pick_oldest": ("pick_oldest", "first_made"),
        "pick_unused": ("pick_unused", "longest_idle"),
        "pick_rare": ("pick_rare", "least_hit"),
        "pick_by": ("pick_by", "chosen_by", "victim"),
        "Cache": ("Cache", "Shelf", "Stash"),
        "clean": ("clean", "sweep", "purge"),
        "stored": ("stored", "all_keys", "contents"),
        "time_left": ("time_left", "lasts_for"),
        "rate": ("rate", "hit_rate", "success"),
        "Remembered": ("Remembered", "Memo", "Lazy"),
        "ask": ("ask", "result_for", "obtain"),
        "warm_up": ("warm_up", "preload", "fill"),
        "replay": ("replay", "rerun", "play_through"),
        "compare_rules": ("compare_rules", "rule_table"),
    },
    {"N_ROOM": whole(4, 60)},
    (
        (
            "cache",
            "        self._entries = {}\n",
            "        pass\n\n    _entries = {}\n",
        ),
        (
            "cache",
            "Entry(value, now, self.keep)",
            "Entry(value, now)",
        ),
        (
            "cache",
            "        self.clean(now)\n        if key",
            "        if key",
        ),
        (
            "choice",
            '"rare": pick_rare}',
            '"rare": pick_unused}',
        ),
        (
            "using",
            (
                "        if self.cache.has(argument, now):\n"
                "            return self.cache.read(argument, now)\n"
                "        self.cache.read(argument, now)\n"
            ),
            (
                "        known = self.cache.read(argument, now)\n"
                "        if known is not None:\n"
                "            return known\n"
            ),
        ),
        (
            "entry",
            "        self.made = now\n        self.used = now\n\n\ndef",
            "        self.used = now\n\n\ndef",
        ),
    ),
)
