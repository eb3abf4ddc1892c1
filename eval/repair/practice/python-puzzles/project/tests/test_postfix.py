from puzzles.postfix import evaluate


def test_postfix_1():
    assert evaluate("3 4 +") == 7
    assert evaluate("8 3 -") == 5


def test_postfix_2():
    assert evaluate("2 3 4 * +") == 14


def test_postfix_3():
    assert evaluate("9 2 /") == 4.5
