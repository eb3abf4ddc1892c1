from puzzles.settings import parse, collect, discounted


def test_hidden_settings_1():
    assert parse("  # x = y\n name = a = b ") == {"name": "a = b"}
    assert collect("a") == ["a"]
    assert collect("b") == ["b"]
    assert discounted(200, 25) == 150
    assert discounted(999, 100) == 0
