from puzzles.settings import parse, collect, discounted


def test_settings_1():
    assert parse("a = 1\n\nb=2") == {"a": "1", "b": "2"}


def test_settings_2():
    assert parse("# note\nurl = x=y") == {"url": "x=y"}


def test_settings_3():
    assert collect(1) == [1]
    assert collect(2) == [2]
    assert collect(3, [4]) == [4, 3]


def test_settings_4():
    assert discounted(1000, 10) == 900
    assert discounted(50, 0) == 50
