from puzzles.brackets import balanced


def test_hidden_brackets_1():
    assert balanced("")
    assert not balanced("([)]")
    assert not balanced("[")
    assert not balanced("a)b(")
