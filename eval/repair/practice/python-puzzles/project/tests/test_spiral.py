from puzzles.spiral import spiral


def test_spiral_1():
    assert spiral([[1, 2], [4, 3]]) == [1, 2, 3, 4]


def test_spiral_2():
    assert spiral([[1, 2, 3], [8, 9, 4], [7, 6, 5]]) == [1, 2, 3, 4, 5, 6, 7, 8, 9]


def test_spiral_3():
    assert spiral([[1, 2, 3]]) == [1, 2, 3]
    assert spiral([[1], [2]]) == [1, 2]
