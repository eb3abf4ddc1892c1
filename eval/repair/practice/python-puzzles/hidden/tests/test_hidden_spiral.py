from puzzles.spiral import spiral


def test_hidden_spiral_1():
    assert spiral([[1, 2, 3, 4], [10, 11, 12, 5], [9, 8, 7, 6]]) == list(range(1, 13))
    assert spiral([[1], [2], [3]]) == [1, 2, 3]
    assert spiral([[7]]) == [7]
    assert spiral([[1, 2], [6, 3], [5, 4]]) == [1, 2, 3, 4, 5, 6]
    assert spiral([[1, 2, 3], [6, 5, 4]]) == [1, 2, 3, 4, 5, 6]
