from puzzles.averages import moving, median


def test_hidden_averages_1():
    assert moving([2, 4, 6, 8, 10], 3) == [4, 6, 8]
    assert moving([1, 2], 3) == []
    assert moving([1, 2, 2], 2) == [1.5, 2]
    assert median([9, 7, 5, 3]) == 6
    assert median([8]) == 8
    assert median([9, 2, 4]) == 4
