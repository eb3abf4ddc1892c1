from puzzles.postfix import evaluate


def test_hidden_postfix_1():
    assert evaluate("5 1 2 + 4 * + 3 -") == 14
    assert evaluate("100 10 / 5 -") == 5
    assert evaluate("7 6 *") == 42
