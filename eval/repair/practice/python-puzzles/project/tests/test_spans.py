from puzzles.spans import merge


def test_spans_1():
    assert merge([(1, 3), (2, 6), (8, 10)]) == [(1, 6), (8, 10)]
    assert merge([]) == []


def test_spans_2():
    assert merge([(1, 9), (2, 3), (12, 14)]) == [(1, 9), (12, 14)]


def test_spans_3():
    assert merge([(5, 6), (1, 2), (2, 3)]) == [(1, 3), (5, 6)]
