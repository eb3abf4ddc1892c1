from puzzles.subsets import subsets


def test_subsets_1():
    assert subsets([1, 2]) == [[], [1], [1, 2], [2]]


def test_subsets_2():
    assert subsets([]) == [[]]
    assert subsets([1, 2, 3]) == [[], [1], [1, 2], [1, 2, 3], [1, 3], [2], [2, 3], [3]]
