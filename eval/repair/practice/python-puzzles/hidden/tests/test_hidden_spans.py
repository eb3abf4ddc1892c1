from puzzles.spans import merge


def test_hidden_spans_1():
    assert merge([(1, 10), (2, 3), (4, 5), (11, 12)]) == [(1, 10), (11, 12)]
    assert merge([(9, 9), (0, 4), (4, 5), (3, 3)]) == [(0, 5), (9, 9)]
