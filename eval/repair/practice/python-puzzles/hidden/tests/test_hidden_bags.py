from puzzles.bags import best, gap, highest


def test_hidden_bags_1():
    assert best([(1, 1), (3, 4), (4, 5)], 7) == 9
    assert best([], 3) == 0
    assert best([(2, 3)], 6) == 3
    assert gap([7, 2, 9, 1, 4]) == 7
    assert highest([[-1]]) == -1
    assert highest([[0, -3], [-4]]) == 0
