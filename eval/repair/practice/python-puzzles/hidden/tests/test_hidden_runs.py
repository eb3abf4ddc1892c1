from puzzles.runs import encode, unique, pairs


def test_hidden_runs_1():
    assert encode("xyyyx") == [("x", 1), ("y", 3), ("x", 1)]
    assert encode("zz") == [("z", 2)]
    assert unique("banana") == ["b", "a", "n"]
    assert pairs([1, 1, 2, 5, 8, 9], 10) == [(1, 9), (2, 8)] or pairs([1, 1, 2, 5, 8, 9], 10) == [(1, 9), (2, 8)]
    assert pairs([2, 4, 6], 8) == [(2, 6)]
    assert pairs([4, 9], 100) == []
