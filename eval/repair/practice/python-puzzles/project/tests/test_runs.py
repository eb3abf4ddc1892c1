from puzzles.runs import encode, unique, pairs


def test_runs_1():
    assert encode("aab") == [("a", 2), ("b", 1)]
    assert encode("") == []


def test_runs_2():
    assert unique([1, 2, 1, 3, 2]) == [1, 2, 3]


def test_runs_3():
    assert pairs([1, 2, 3, 4], 5) == [(1, 4), (2, 3)]
    assert pairs([1, 3], 6) == []
    assert pairs([1, 2, 4, 9], 6) == [(2, 4)]
