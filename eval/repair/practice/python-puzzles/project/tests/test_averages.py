from puzzles.averages import moving, median


def test_averages_1():
    assert moving([1, 2, 3, 4], 2) == [1.5, 2.5, 3.5]
    assert moving([5], 1) == [5]


def test_averages_2():
    assert median([3, 1, 2]) == 2


def test_averages_3():
    assert median([4, 1, 3, 2]) == 2.5
    assert median([1, 10]) == 5.5
