"""Jobs on the names and places of files: each adds its files to a draft and returns what is asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tetrathlon.envs.tools.files.draft import WORDS, Draft, text

_RULES: Mapping[str, tuple[str, Callable[[str], str]]] = {
    "make its name all lower case": ("{0}_{1}.TXT", str.lower),
    "replace the `_` in its name by `-`": ("{0}_{1}.txt", lambda name: name.replace("_", "-")),
    "put `done_` before its name": ("{0}_{1}.txt", lambda name: f"done_{name}"),
    "give it the ending `.text` instead": ("{0}_{1}.txt", lambda name: f"{name.removesuffix('.txt')}.text"),
    "swap the two words of its name (`one_two.txt` becomes `two_one.txt`)": (
        "{0}_{1}.txt",
        lambda name: "{1}_{0}.txt".format(*name.removesuffix(".txt").split("_")),
    ),
}
"""What is asked -> how the names look before, and what becomes of them."""


def rename_by_rule(draft: Draft) -> str:
    """Rename the files of a kind by a rule."""
    folder, asked = draft.folder(), draft.pick(list(_RULES))
    pattern, rule = _RULES[asked]
    words = [word.capitalize() if pattern.endswith("TXT") else word for word in draft.some(WORDS, 16)]
    ending = pattern[-4:]
    for i in range(draft.count(2, 4)):
        name = pattern.format(words[2 * i], words[2 * i + 1])
        path = draft.add(f"{folder}/{name}", draft.prose())
        draft.move(path, f"{folder}/{rule(name)}")
    others = [f"{words[-1]}_{words[-2]}.md", f"old/{pattern.format(words[-3], words[-4])}"]
    for name in others[: 1 + draft.hard]:
        draft.add(f"{folder}/{name}", draft.prose())
    return (
        f"Rename every file with the ending `{ending}` that is directly in `{folder}`, not in a folder below it: "
        f"{asked}. Nothing else of the name changes, and the files stay in `{folder}`."
    )


def delete_old(draft: Draft) -> str:
    """Delete the files of a kind whose names have a date before a day."""
    folder, ending, year = draft.folder(), draft.pick([".bak", ".log", ".tmp"]), draft.between(2020, 2024)
    day = draft.date(year)
    words = draft.some(WORDS, 16)
    older: list[str] = []
    newer = [day] if draft.hard else []
    for wanted, dates in ((draft.count(1, 3), older), (draft.count(2, 3), newer)):
        while len(dates) < wanted:
            date = draft.date(draft.between(year - 1, year + 1))
            if (date < day) == (dates is older) and date != day:
                dates.append(date)
    gone = []
    for i, date in enumerate(draft.shuffled([*older, *newer])):
        path = f"{folder}/{'deep/' if draft.hard and draft.chance(0.3) else ''}{words[i]}-{date}{ending}"
        draft.add(path, draft.prose())
        gone += [path] if date < day else []
    for word in words[-1 - draft.hard :]:
        draft.add(f"{folder}/{word}-{draft.date(year - 1)}.txt", draft.prose())
    draft.delete(gone)
    return (
        f"Delete every file in `{folder}` and the folders below it that has the ending `{ending}` and, in its name, a "
        f"date before {day}. Dates are written year-month-day; a file of that very day stays."
    )


def sort_into_folders(draft: Draft) -> str:
    """Move files into folders by their ending, or by the year in their name."""
    folder, by_year = draft.folder(), draft.chance()
    words = draft.some(WORDS, 16)
    kinds = draft.some(["txt", "md", "log", "csv", "ini"], 3)
    for i in range(draft.count(3, 4)):
        kind, year = draft.pick(kinds), str(draft.between(2021, 2024))
        name = f"{words[i]}-{year}-{draft.between(1, 12):02}.{kind}" if by_year else f"{words[i]}.{kind}"
        path = draft.add(f"{folder}/{name}", draft.prose())
        draft.move(path, f"{folder}/{year if by_year else kind}/{name}")
    if draft.hard:
        name = f"{words[-1]}-2020-01.{kinds[0]}"
        draft.add(f"{folder}/other/{name}", draft.prose())
    asked = f"Move every file that is directly in `{folder}` into a folder in `{folder}`"
    rest = "The names of the files stay; files that are in a folder below already stay where they are."
    if by_year:
        return (
            f"{asked} named like the year in its name (`x-2021-05.txt` goes to `{folder}/2021/x-2021-05.txt`). {rest}"
        )
    return f"{asked} named like its ending without the dot (`x.txt` goes to `{folder}/txt/x.txt`). {rest}"


def close_gaps(draft: Draft) -> str:
    """Number files anew, in their order."""
    folder = draft.folder()
    numbers = sorted(draft.some(range(2, 40), draft.count(2, 4)))
    first = "" if draft.chance() else "01"
    words = draft.some(WORDS, len(numbers) + 2)
    names = [f"{number:02}-{word}.txt" for number, word in zip(numbers, words, strict=False)]
    if first:
        names.insert(0, f"{first}-{words[-1]}.txt")
    for number, name in enumerate(names, 1):
        path = draft.add(f"{folder}/{name}", draft.prose())
        if (target := f"{folder}/{number:02}{name[2:]}") != path:
            draft.move(path, target)
    draft.add(f"{folder}/{words[-2]}.txt", draft.prose())
    return (
        f"The files in `{folder}` whose names begin with two digits and `-` shall be numbered without gaps, from `01` "
        "on, in the order of their present numbers. Rename them so; the rest of each name stays, as do other files."
    )


def mend_link(draft: Draft) -> str:
    """Mend a link to a file that was renamed: in the index, or by giving the file its old name."""
    folder = draft.folder()
    count = draft.count(3, 5)
    pairs = draft.some(WORDS, 2 * count)
    titles = [f"{one.capitalize()} {other}" for one, other in zip(pairs[:count], pairs[count:], strict=True)]
    words = draft.some(WORDS, 16)
    broken = draft.below(len(titles))
    links, moved = [], ""
    for i, title in enumerate(titles):
        name = f"pages/{words[i]}.md"
        links.append(f"- [{title}]({name})")
        if i == broken:
            moved = f"{'notes' if draft.hard and draft.chance() else 'pages'}/{words[-1]}.md"
        draft.add(f"{folder}/{moved if i == broken else name}", f"# {title}\n{draft.prose()}")
    if draft.hard:  # one that is alike, and that nothing leads to
        draft.add(f"{folder}/pages/{words[-2]}.md", f"# {titles[broken]} {words[-3]}\n{draft.prose()}")
    wanted = f"pages/{words[broken]}.md"
    index = draft.add(f"{folder}/index.md", text([f"# {draft.sentence(2, 3)}", *links]))
    asked = (
        f"One link in `{index}` leads to a file that is not there, since the file was renamed: it is the one in "
        f"`{folder}` and the folders below it whose first line is `# ` and exactly the words in the brackets of the "
        f"link. Paths in links are relative to `{folder}`."
    )
    if draft.chance():
        draft.move(f"{folder}/{moved}", f"{folder}/{wanted}")
        return f"{asked} Move the file back to where the link leads; `{index}` stays as it is."
    draft.make(index, draft.goal[index].replace(f"({wanted})", f"({moved})"))
    return f"{asked} Correct the path in `{index}`; the file stays where it is."
