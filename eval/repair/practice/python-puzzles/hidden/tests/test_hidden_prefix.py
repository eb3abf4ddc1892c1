from puzzles.prefix import Prefixes


def test_hidden_prefix_1():
    words = Prefixes()
    for word in ("car", "cart", "dog"):
        words.add(word)
    assert words.has("car") and words.has("cart") and not words.has("ca")
    assert not words.has("d")
    assert words.starting("") == ["car", "cart", "dog"]
    assert words.starting("cart") == ["cart"]
