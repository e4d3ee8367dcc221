from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tetrathlon.envs.tools.files.tree import DEEPEST, LONGEST_NAME, LONGEST_PATH, Quota, Tree, TreeError
from tetrathlon.envs.tools.files.world import LEAST_SHOWN, FileWorld
from tetrathlon.envs.tools.tool import ToolError


def workspace() -> Tree:
    """The tree of a public report: a link beside a root whose name its neighbour begins with."""
    return Tree({"b.txt": "b\n", "d/x.txt": "x\n"}, {"link": "/t/ws-private"}, root="/t/ws")


@pytest.mark.parametrize(
    "path", ["/t/ws-private/k.txt", "../ws-private/k.txt", "link/k.txt", "link", "/etc/passwd", "..", "d/../../x", "/"]
)
def test_reading_outside_is_refused(path: str) -> None:
    with pytest.raises(TreeError, match="leads out of /t/ws"):
        workspace().read(path)


@pytest.mark.parametrize("path", ["link/new.txt", "/etc/x", "../ws-private/new.txt", "link/../../x", "link"])
def test_writing_outside_is_refused_and_makes_nothing(path: str) -> None:
    tree = workspace()
    before = tree.get_state()
    for change in (
        lambda: tree.write(path, "new"),
        lambda: tree.move("b.txt", f"{path}/y" if path == "link" else path),
        lambda: tree.delete(f"{path}/y" if path == "link" else path),
    ):
        with pytest.raises(TreeError, match="leads out of"):
            change()
    assert tree.get_state() == before


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("a/../b.txt", "b.txt"),
        ("/t/ws/b.txt", "b.txt"),
        ("./d/./x.txt", "d/x.txt"),
        ("../ws/b.txt", "b.txt"),
        ("/t/ws/../ws/d/../b.txt", "b.txt"),
        ("sub/new.txt", "sub/new.txt"),
        ("~/..x/...", "~/..x/..."),
        (".", ""),
        ("/t/ws", ""),
    ],
)
def test_paths_that_stay_inside(path: str, found: str) -> None:
    assert workspace().resolve(path) == found


def test_what_is_not_there_is_an_error_of_its_own() -> None:
    with pytest.raises(TreeError, match=r"there is no 'a/\.\./c\.txt'"):
        workspace().read("a/../c.txt")
    with pytest.raises(TreeError, match="'d' is a folder"):
        workspace().read("d")
    with pytest.raises(TreeError, match=r"'b\.txt' is a file, not a folder"):
        workspace().write("b.txt/c", "c")
    with pytest.raises(TreeError, match=r"'b\.txt' is a file, not a folder"):
        workspace().read("b.txt/../b.txt")
    with pytest.raises(TreeError, match="is a folder"):
        workspace().write("d", "d")


@pytest.mark.parametrize(
    "path",
    [
        "",
        "a//b",
        "//etc/passwd",
        "d/",
        "a\0b",
        "a\nb",
        "..\\x",
        "a\u202eb",
        "\ud800",
        "x" * (LONGEST_NAME + 1),
        "é" * (LONGEST_NAME // 2 + 1),
        "a/" * DEEPEST + "b",
        "a/" * LONGEST_PATH,
        "x" * 1_000_000,
        "d/x.txt\0.md",
    ],
    ids=lambda path: ascii(path[:20]),
)
def test_names_that_are_refused(path: str) -> None:
    tree = workspace()
    before = tree.get_state()
    for change in (lambda: tree.write(path, "x"), lambda: tree.read(path), lambda: tree.move("b.txt", path)):
        with pytest.raises(TreeError) as caught:
            change()
        assert len(str(caught.value)) < 1_000
    assert tree.get_state() == before


def test_the_longest_and_deepest_names_are_taken() -> None:
    tree = Tree()
    tree.write("x" * LONGEST_NAME, "")
    tree.write("a/" * (DEEPEST - 1) + "b", "")
    assert tree.resolve("a/../" * 150 + "c") == "c"
    with pytest.raises(TreeError, match="deeper"):
        tree.move("x" * LONGEST_NAME, "a/" * DEEPEST + "b")


def test_links_are_followed_inside() -> None:
    links = {"l": "d", "d/up": "../b.txt", "abs": "/t/ws/d", "new": "d/made.txt", "chain": "l/up"}
    tree = Tree({"b.txt": "b", "d/x.txt": "x"}, links, root="/t/ws")
    assert tree.read("l/x.txt") == tree.read("abs/x.txt") == "x"
    assert tree.read("chain") == tree.read("l/up") == "b"
    assert tree.resolve("l/../b.txt") == "b.txt"
    assert tree.write("new", "made") == "d/made.txt" and tree.write("l/y", "y") == "d/y"
    assert tree.write("d/up", "B") == "b.txt" and tree.links["d/up"] == "../b.txt"
    tree.delete("chain")
    assert tree.read("d/up") == "B", "a link is deleted, not where it leads"
    tree.move("l", "e/l")
    assert tree.links["e/l"] == "d"
    assert tree.below("abs") == ["d/made.txt", "d/up", "d/x.txt", "d/y"]


@pytest.mark.parametrize("links", [{"a": "a"}, {"a": "b", "b": "a"}, {"a": "b/x", "b": "a/y"}, {"a": "./a/a"}])
def test_links_in_a_circle_are_refused(links: dict[str, str]) -> None:
    tree = Tree(links=links)
    for change in (lambda: tree.read("a"), lambda: tree.write("a/n", ""), lambda: tree.below("a")):
        with pytest.raises(TreeError, match=r"circle|deeper"):
            change()
    assert not tree.files


def test_quotas() -> None:
    tree = Tree({"a": "xx"}, quota=Quota(files=3, file_bytes=10, bytes=15))
    with pytest.raises(TreeError, match="a file may have 10 bytes, got 12"):
        tree.write("b", "é" * 6)
    tree.write("b", b"x" * 10)
    with pytest.raises(TreeError, match="all files together may have 15 bytes; this would make them 16"):
        tree.write("c", "x" * 4)
    tree.write("b", "x")
    tree.write("c", "x" * 10)
    with pytest.raises(TreeError, match="there may be 3 files"):
        tree.write("d", "")
    tree.write("a", "y")
    tree.move("a", "d/e")
    tree.delete("d/e")
    tree.write("e", "xxxx")
    assert tree.files == {"b": "x", "c": "x" * 10, "e": "xxxx"}
    with pytest.raises(TreeError, match="no Unicode: a lone surrogate at character 1"):
        tree.write("e", "a\ud800")


def test_a_state_is_a_copy_and_quotas_count_on() -> None:
    tree = Tree({"a": "1234"}, {"l": "a"}, quota=Quota(bytes=10))
    state = tree.get_state()
    tree.write("b", "123456")
    tree.delete("l")
    other = Tree(quota=Quota(bytes=10))
    other.set_state(state)
    assert other.get_state() == state == {"files": {"a": "1234"}, "links": {"l": "a"}}
    other.write("b", "123456")
    with pytest.raises(TreeError, match="together"):
        other.write("c", "1")
    assert state["files"] == {"a": "1234"}


def test_moving() -> None:
    tree = Tree({"a": "1", "d/b": "2"})
    for source, target, error in [
        ("a", "d/b", "something at 'd/b' already"),
        ("a", "a", "something at 'a' already"),
        ("a", "d", "'d' is a folder"),
        ("d", "e", "'d' is a folder"),
        ("a", "a/b", "'a' is a file"),
        ("c", "e", "there is no 'c'"),
    ]:
        with pytest.raises(TreeError, match=error):
            tree.move(source, target)
    assert tree.move("d/b", "e/f/g") == ("d/b", "e/f/g")
    assert tree.files == {"a": "1", "e/f/g": "2"} and not tree.is_folder("d")


@pytest.mark.parametrize("root", ["work", "", "/work/", "/a/../b", "//work"])
def test_a_root_is_an_absolute_path(root: str) -> None:
    with pytest.raises(ValueError, match="root must be an absolute path"):
        Tree(root=root)


def test_paths_of_chance_lead_where_the_disk_says(tmp_path: Path) -> None:
    root = tmp_path / "t" / "ws"
    (root / "d").mkdir(parents=True)
    (tmp_path / "t" / "ws-private").mkdir()
    links = {"link": "../ws-private", "in": "d", "d/up": "..", "abs": str(root), "odd": "../ws/in/up/d"}
    tree = Tree({"b.txt": "b", "d/x.txt": "x"}, links, root=str(root))
    for path, target in links.items():
        (root / path).symlink_to(target)
    (root / "b.txt").touch()
    (root / "d" / "x.txt").touch()
    draws = random.Random(0)
    names = ["..", "..", ".", "ws", "ws-private", "t", "d", "link", "in", "up", "abs", "odd", "b.txt", "x.txt", "new"]
    inside = 0
    for _ in range(3_000):
        path = "/".join(draws.choices(names, k=draws.randint(1, 6)))
        path = f"{tmp_path}/{path}" if draws.random() < 0.2 else path
        real = os.path.realpath(root / path)
        try:
            found = tree.resolve(path)
        except TreeError as error:
            assert "is a file" in str(error) or (os.path.commonpath([real, root]) != str(root)), path
        else:
            inside += 1
            assert real == os.path.normpath(root / found), path
    assert 500 < inside < 2_500


def test_there_and_back_on_the_disk(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {"a.txt": "é\r\n\0", "d/e/b.bin": b"\xff\xfe", "empty": ""}
    tree = Tree(files, {"d/up": "../a.txt", "abs": "/work/d", "soon": "d/none", "root": "."})
    tree.write_to(tmp_path / "new" / "folder")
    assert (tmp_path / "new/folder/d/up").read_bytes() == "é\r\n\0".encode()
    again = Tree.from_folder(tmp_path / "new" / "folder", root="/other")
    assert again.files == files
    assert again.links == {"d/up": "../a.txt", "abs": "d", "soon": "d/none", "root": "."}
    with pytest.raises(FileExistsError, match="must be empty"):
        tree.write_to(tmp_path / "new")


@pytest.mark.parametrize("target", ["/work-private", "..", "../..", "out"])
def test_a_tree_with_a_link_that_leads_out_is_not_written(tmp_path: Path, target: str) -> None:
    tree = Tree({"a": "1"}, {"out": target})
    with pytest.raises(TreeError):
        tree.write_to(tmp_path / "folder")
    assert not (tmp_path / "folder").exists()


def test_a_folder_with_what_leads_out_is_refused(tmp_path: Path) -> None:
    top = tmp_path / "ws"
    (tmp_path / "ws-private").mkdir()
    (tmp_path / "ws-private" / "k.txt").write_text("secret")
    top.mkdir()
    for target in ("../ws-private", "../ws-private/k.txt", str(tmp_path / "ws-private"), "/etc/passwd", ".."):
        (top / "link").symlink_to(target)
        with pytest.raises(TreeError, match="leads out of"):
            Tree.from_folder(top)
        (top / "link").unlink()
    (top / "link").symlink_to("link")
    with pytest.raises(TreeError):
        Tree.from_folder(top)
    (top / "link").unlink()
    (top / "a").write_text("a")
    (top / "link").symlink_to(top / "a")
    (top / "again").symlink_to("../ws/link")
    tree = Tree.from_folder(top)
    assert tree.read("link") == tree.read("again") == "a"


def test_a_folder_is_read_within_bounds(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).write_text("12345")
    assert len(Tree.from_folder(tmp_path, quota=Quota(3, 5, 15)).files) == 3
    for quota, error in [
        (Quota(files=2), "there may be 2 files"),
        (Quota(file_bytes=4), "4 bytes"),
        (Quota(bytes=14), "14"),
    ]:
        with pytest.raises(TreeError, match=error):
            Tree.from_folder(tmp_path, quota=quota)
    (tmp_path / "large").write_bytes(b"")
    os.truncate(tmp_path / "large", 2**33)
    with pytest.raises(TreeError, match="200,000 bytes"):
        Tree.from_folder(tmp_path)
    os.remove(tmp_path / "large")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(TreeError, match="neither a file nor a folder nor a link"):
        Tree.from_folder(tmp_path)
    os.remove(tmp_path / "pipe")
    (tmp_path / "bad\nname").write_text("")
    with pytest.raises(TreeError, match="no name may have"):
        Tree.from_folder(tmp_path)
    os.remove(tmp_path / "bad\nname")
    tmp_path.joinpath(*["f"] * (DEEPEST + 1)).mkdir(parents=True)
    with pytest.raises(TreeError, match="deeper"):
        Tree.from_folder(tmp_path)
    with pytest.raises(FileNotFoundError):
        Tree.from_folder(tmp_path / "none")


def world(**files: str) -> FileWorld:
    return FileWorld(Tree({name.replace("_", "/"): text for name, text in files.items()}), 400)


def test_reading_is_verbatim_and_says_how_to_read_on() -> None:
    editor = world(a="one\r\n two\n", b="", c="".join(f"line {i}\n" for i in range(1, 101)), d="x" * 1_000)
    assert editor.read_file("a") == "one\r\n two\n"
    assert editor.read_file("b") == "(the file is empty)"
    assert editor.read_file("c", 99).endswith("line 99\nline 100\n[lines 99 to 100 of 100]")
    assert editor.read_file("c", 5, 2) == "line 5\nline 6\n[lines 5 to 6 of 100; read on with first_line=7]"
    first = editor.read_file("c")
    last = int(first.rsplit("=", 1)[1][:-1]) - 1
    assert first.startswith("line 1\n") and f"line {last}\n[lines 1 to {last} of 100" in first and len(first) <= 400
    assert "the first 280 of its 1,000 characters" in editor.read_file("d") and len(editor.read_file("d")) <= 400
    for arguments in (("c", 101), ("c", 0), ("c", 1, 0), ("c", 10**300), ("c", 1, 10**300), ("a/x",), ("",), ("..",)):
        with pytest.raises(ToolError):
            editor.read_file(*arguments)
    editor.tree.write("e", b"\xff")
    with pytest.raises(ToolError, match="no text: 1 bytes"):
        editor.read_file("e")


def test_listing_and_searching_are_bounded() -> None:
    editor = world(a_b="one\ntwo one\n", a_c="é", d="one")
    assert editor.list_files() == editor.list_files("/work/") == "a/b (12 bytes)\na/c (2 bytes)\nd (3 bytes)"
    assert editor.list_files("a/") == editor.list_files("./a") == "a/b (12 bytes)\na/c (2 bytes)"
    assert editor.search("one") == "a/b:1: one\na/b:2: two one\nd:1: one"
    assert editor.search("one", "d") == "d:1: one" and editor.search("o.e") == "(no line holds it)"
    assert FileWorld(Tree()).list_files() == "(no files)"
    for text, folder in (("", ""), ("a\nb", ""), ("one", "none"), ("one", "../x")):
        with pytest.raises(ToolError):
            editor.search(text, folder)
    editor.tree.write("d", "one\n" * 50_000)
    for number in range(100):
        editor.tree.write(f"many/{number}", "x")
    assert "more of 50,002 lines]" in editor.search("one") and len(editor.search("one")) <= 400
    assert " more files; name a folder]" in editor.list_files() and len(editor.list_files()) <= 400
    with pytest.raises(ValueError, match="most_shown"):
        FileWorld(Tree(), LEAST_SHOWN - 1)


def test_a_piece_is_replaced_where_it_occurs_once() -> None:
    editor = world(a="one\ntwo\none\naaa\n")
    assert editor.edit_file("a", "two\n", "") == "Edited a at line 2."
    for old, new, error in [
        ("one", "1", "occurs 2 times"),
        ("two", "2", "occurs 0 times"),
        ("aa", "b", "more than once"),
        ("", "x", "must not be empty"),
        ("aaa", "aaa", "are the same"),
        ("aaa", "\ud800", "no Unicode"),
    ]:
        with pytest.raises(ToolError, match=error):
            editor.edit_file("a", old, new)
    assert editor.tree.files == {"a": "one\none\naaa\n"}
    editor.tree.write("b", "a" * 200_000)
    with pytest.raises(ToolError, match="more than once"):
        editor.edit_file("b", "a" * 150_000, "")


def test_a_world_restores_its_state() -> None:
    editor = world(a="1")
    state = editor.get_state()
    editor.write_file("b/c", "2")
    editor.move("a", "d")
    editor.delete("d")
    assert editor.list_files() == "b/c (1 bytes)"
    other = world()
    other.set_state(state)
    assert other.tree.files == {"a": "1"} and state == other.get_state()
