"""Jobs on the lines of text files: each adds its files to a draft and returns what is asked."""

from __future__ import annotations

import re

from tetrathlon.envs.tools.files.draft import SIGNS, WORDS, Draft, text

IN_ORDER = "in the order in which Python's sorted() puts"


def find_file(draft: Draft) -> str:
    """Find the one file with a text; copy or move it."""
    folder, code = draft.folder(), draft.code()
    paths = []
    for i, word in enumerate(draft.some(WORDS, draft.count(3, 6))):
        deep = draft.hard and draft.chance()
        path = f"{folder}/{'old/' if deep else ''}{word}.txt"
        # Those that are alike differ in the last digit, or are in lower case.
        mark = code if i == 0 else f"{code[:-1]}{(int(code[-1]) + i) % 10}" if i % 2 else code.lower()
        lines = [*draft.sentences(draft.count(1, 3)), f"ticket {mark} is {draft.pick(WORDS)}"]
        paths.append(draft.add(path, text(draft.shuffled(lines))))
    target = draft.free(".txt")
    asked = f"Exactly one of the files in `{folder}` and the folders below it holds the text `ticket {code}`."
    if draft.chance():
        draft.make(target, draft.goal[paths[0]])
        return f"{asked} Copy that file to `{target}`; the original stays where it is."
    draft.move(paths[0], target)
    return f"{asked} Move that file to `{target}`."


def extract_lines(draft: Draft) -> str:
    """Write the lines with a text into a new file."""
    chained, target = _chained(draft), draft.free(".txt")
    draft.lines.append(target)
    if chained:
        content = draft.goal[chained].splitlines()
        words = [word for line in content for word in line.split()]
        sought = draft.pick([word for word in words if not all(word in line for line in content)] or words)
        draft.make(target, text(line for line in content if sought in line))
        return (
            f"Write those lines of `{chained}` that hold the text `{sought}` into the new file `{target}`, "
            "unchanged and in the same order."
        )
    folder, sought = draft.folder(), draft.pick(SIGNS[:3])
    several = draft.hard and draft.chance()
    found, paths = [], []
    for word in sorted(draft.some(WORDS, 3 if several else 1)):
        signs = [sought, *(draft.pick(SIGNS) for _ in range(draft.count(4, 6)))]
        lines = [f"{draft.date()} {sign} {draft.sentence(2, 4)}" for sign in draft.shuffled(signs)]
        lines.append(f"{draft.date()} DEBUG {sought.lower()} {draft.sentence(1, 2)}")
        paths.append(draft.add(f"{folder}/{word}.log", text(lines)))
        found += [line for line in lines if sought in line]
    draft.add(f"{folder}/{draft.pick(WORDS)}.txt", f"{sought} {draft.sentence()}\n")
    draft.make(target, text(found))
    source = f"`{paths[0]}`"
    if several:
        source = f"all `.log` files in `{folder}`, file by file {IN_ORDER} their names,"
    return (
        f"Write those lines of {source} that hold the text `{sought}` (in capitals) into the new file `{target}`, "
        "unchanged and in the same order."
    )


def sort_lines(draft: Draft) -> str:
    """Sort the lines of a file in place."""
    path = _chained(draft)
    if not path:
        path = draft.add(draft.free(".txt"), text(draft.sentences(draft.count(4, 8))))
        if draft.chance():
            numbers = draft.some(range(2, 1_000), draft.count(4, 8))
            lines = [f"{draft.pick(WORDS)} {number}" for number in numbers]
            draft.add(path, text(lines))
            largest = draft.chance()
            draft.make(path, text(sorted(lines, key=lambda line: int(line.split()[1]), reverse=largest)))
            draft.lines.append(path)
            return (
                f"Sort the lines of `{path}` by the number at their end, {'largest' if largest else 'smallest'} first."
            )
    backwards = draft.chance()
    draft.make(path, text(sorted(draft.goal[path].splitlines(), reverse=backwards)))
    draft.lines.append(path)
    order = f"{IN_ORDER} them" + (", but the other way round, the last one first" if backwards else "")
    return f"Sort the lines of `{path}`: {order}. Lines that are equal all stay."


def drop_doubles(draft: Draft) -> str:
    """Delete lines that were there before."""
    lines = draft.sentences(draft.count(3, 5))
    mixed = draft.shuffled([*lines, *draft.some(lines, 2), draft.pick(lines)])
    if draft.hard:
        mixed.insert(draft.below(len(mixed)), f"{lines[0]} {draft.pick(WORDS)}")
    path = draft.add(draft.free(".txt"), text(mixed))
    draft.make(path, text(dict.fromkeys(mixed)))
    draft.lines.append(path)
    return f"In `{path}`, delete every line that is equal to a line before it. The others stay in their order."


def renumber_list(draft: Draft) -> str:
    """Number the items of a list anew."""
    items = draft.sentences(draft.count(4, 7))
    wrong = [draft.between(1, 20) for _ in items]
    wrong[-1] = len(items) + 1 + draft.below(9)
    title = f"# {draft.sentence(2, 3)}"
    first = draft.between(10, 50) if draft.hard and draft.chance() else 1
    numbered = [f"{number}. {item}" for number, item in zip(wrong, items, strict=True)]
    right = [f"{number}. {item}" for number, item in enumerate(items, first)]
    notes = [f"note {draft.between(2, 9)}: {draft.sentence(2, 3)}"] if draft.hard else []
    path = draft.add(draft.free(".md"), text([title, *numbered, *notes]))
    draft.make(path, text([title, *right, *notes]))
    return (
        f"The items of the list in `{path}` (lines such as `4. text`) have wrong numbers. Number them {first}, "
        f"{first + 1}, {first + 2} and so on, in the order in which they stand. All else stays."
    )


def replace_word(draft: Draft) -> str:
    """Replace a word in all files but those of a folder."""
    folder, (old, new) = draft.folder(), draft.some(WORDS, 2)
    kept = draft.pick(["keep", "legacy", "signed"])
    others = [word for word in WORDS if word not in (old, new)]
    for i, word in enumerate(draft.some(others, draft.count(3, 5))):
        lines = [" ".join(draft.some(others, 4)) for _ in range(draft.count(2, 4))]
        if i != 1:  # one has no such word
            for _ in range(draft.between(1, 2)):
                at = draft.below(len(lines))
                lines[at] = f"{draft.pick(others)} {old} {lines[at]}"
        if draft.hard:
            lines.append(f"{draft.pick(others)} {old}s {old.capitalize()}")
        path = draft.add(f"{folder}/{f'{kept}/' if i == 2 else ''}{word}.txt", text(lines))
        if i != 2:
            draft.make(path, re.sub(rf"\b{old}\b", new, draft.goal[path]))
    return (
        f"Replace the word `{old}` by `{new}` in all files in `{folder}` and the folders below it, but not in those "
        f"of the folder `{folder}/{kept}`. Only the whole word in lower case counts: `{old}s` and "
        f"`{old.capitalize()}` stay as they are."
    )


def put_on_top(draft: Draft) -> str:
    """Put a line on top of each file of a kind."""
    folder, line = draft.folder(), f"# checked by {draft.pick(WORDS)}, {draft.date()}"
    for i, word in enumerate(draft.some(WORDS, draft.count(3, 5))):
        path = draft.add(f"{folder}/{word}{'.txt' if i == 0 else '.md'}", draft.prose())
        if i:
            draft.make(path, f"{line}\n{draft.goal[path]}")
    if draft.hard:
        draft.add(f"{folder}/old/{draft.pick(WORDS)}.md", draft.prose())
    return (
        f"Put the line `{line}` as a new first line on top of every file with the ending `.md` that is directly in "
        f"`{folder}`, not in a folder below it."
    )


def split_file(draft: Draft) -> str:
    """Write the parts of a file into files of their own."""
    path, folder = draft.free(".txt"), draft.folder()
    lines = []
    for word in draft.some(WORDS, draft.count(2, 3)):
        part = [draft.sentence() for _ in range(draft.between(1, 3))]
        lines += [f"== {word} ==", *part]
        draft.make(f"{folder}/{word}.txt", text(part))
    draft.add(path, text(lines))
    return (
        f"`{path}` has several parts, each below a line such as `== name ==`. Write the lines of each part, without "
        f"that line, into the new file `{folder}/name.txt`, with the part's own name. `{path}` itself stays as it is."
    )


def join_files(draft: Draft) -> str:
    """Write files one after another into one."""
    folder, target = draft.folder(), draft.free(".txt")
    line = draft.pick(["---", "====", "* * *"])
    words = sorted(draft.some(WORDS, draft.count(2, 4)))
    parts = [draft.goal[draft.add(f"{folder}/{word}.txt", draft.prose())] for word in words]
    draft.add(f"{folder}/{draft.pick(WORDS)}.md", draft.prose())
    draft.make(target, f"{line}\n".join(parts))
    draft.lines.append(target)
    return (
        f"Join all files with the ending `.txt` in `{folder}` into the new file `{target}`: one after another "
        f"{IN_ORDER} their names, unchanged, with the line `{line}` between two of them, not before the first and "
        "not after the last."
    )


def count_lines(draft: Draft) -> str:
    """Write a summary with the numbers of lines."""
    folder, target = draft.folder(), draft.free(".txt")
    word = draft.pick(WORDS) if draft.hard and draft.chance() else ""
    counts = {}
    for name in sorted(draft.some(WORDS, draft.count(2, 4))):
        lines = [draft.sentence() for _ in range(draft.count(2, 4))]
        if word:
            lines = [f"{line} {word}" if draft.chance() else line for line in lines]
        draft.add(f"{folder}/{name}.txt", text(lines))
        counts[f"{name}.txt"] = sum(word in line for line in lines)
    draft.make(target, text([*(f"{name}: {n}" for name, n in counts.items()), f"total: {sum(counts.values())}"]))
    what = f"the lines in it that hold the text `{word}`" if word else "its lines"
    return (
        f"Write the new file `{target}`: for each file in `{folder}`, {IN_ORDER} their names, a line `name: N`, where "
        f"name is the name of the file with its ending and without its folder (`{next(iter(counts))}`) and N the "
        f"number of {what}. After them comes a line `total: N` with their sum."
    )


def _chained(draft: Draft) -> str:
    """Return a file of lines that an earlier job made, or nothing."""
    usable = [path for path in draft.lines if len(set(draft.goal.get(path, "").splitlines())) > 1]
    return draft.pick(usable) if usable and draft.chance(0.7) else ""
