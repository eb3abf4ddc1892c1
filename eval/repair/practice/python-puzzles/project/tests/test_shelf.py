from puzzles.shelf import place


def test_shelf_1():
    assert place([1, 3, 5], 3) == 1
    assert place([], 4) == 0


def test_shelf_2():
    assert place([1, 3, 5], 6) == 3


def test_shelf_3():
    assert place([2, 2, 2, 9], 2) == 0
    assert place([1, 2, 4, 8, 16], 5) == 3
