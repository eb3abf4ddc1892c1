from puzzles.bags import best, gap, highest


def test_bags_1():
    assert best([(2, 3), (3, 4)], 5) == 7
    assert best([(2, 3)], 5) == 3


def test_bags_2():
    assert gap([3, 1, 4, 1, 5]) == 4
    assert gap([5, 4]) == 0


def test_bags_3():
    assert highest([[1, 7], [3]]) == 7
    assert highest([[-5, -2], [-9]]) == -2
