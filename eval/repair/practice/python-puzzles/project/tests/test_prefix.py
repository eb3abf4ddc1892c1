from puzzles.prefix import Prefixes


def test_prefix_1():
    words = Prefixes()
    words.add("tea")
    words.add("ten")
    assert words.has("tea")
    assert not words.has("te")
    assert not words.has("tex")


def test_prefix_2():
    words = Prefixes()
    for word in ("tea", "ten", "team", "to"):
        words.add(word)
    assert words.starting("te") == ["tea", "team", "ten"]
    assert words.starting("x") == []
