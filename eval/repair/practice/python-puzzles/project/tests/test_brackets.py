from puzzles.brackets import balanced


def test_brackets_1():
    assert balanced("a(b[c]{d})")
    assert not balanced("(]")


def test_brackets_2():
    assert not balanced("((")


def test_brackets_3():
    assert not balanced(")")
