import pytest

from tetrathlon.envs.paths import inside


@pytest.fixture
def root(tmp_path):
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws-private").mkdir()
    (tmp_path / "ws-private" / "k.txt").write_text("secret")
    (tmp_path / "ws" / "link").symlink_to(tmp_path / "ws-private")
    (tmp_path / "ws" / "file").symlink_to(tmp_path / "ws-private" / "new.txt")
    (tmp_path / "ws" / "loop").symlink_to("loop")
    (tmp_path / "ws" / "home").symlink_to(tmp_path / "ws")
    return tmp_path / "ws"


# s10
@pytest.mark.parametrize(
    "path",
    ["{root}-private/k.txt", "../ws-private/k.txt", "link/k.txt", "link/new.txt", "link", "/etc/x", "..", "file",
     "a/../../ws-private/k.txt", "home/../x", "loop", "loop/x", "a\0b"],
)  # fmt: skip
def test_what_leads_out_is_refused(root, path):
    with pytest.raises(PermissionError):
        inside(root, path.format(root=root))
    assert sorted(entry.name for entry in root.parent.iterdir()) == ["ws", "ws-private"]


@pytest.mark.parametrize("path", [5, None, b"x", ["x"]])
def test_what_is_no_path_is_named(root, path):
    with pytest.raises(TypeError, match="a path must be text, got .* of the type " + type(path).__name__):
        inside(root, path)


@pytest.mark.parametrize(
    ("path", "found"),
    [("a/../b.txt", "b.txt"), ("sub/new.txt", "sub/new.txt"), (".", "."), ("home/x", "x"), ("{root}/x", "x"),
     ("..x/...", "..x/...")],
)  # fmt: skip
def test_what_stays_in_is_resolved(root, path, found):
    assert inside(root, path.format(root=root)) == root / found
    assert inside(root.parent / "ws" / "home", path.format(root=root)) == root / found
