from puzzles.shelf import place


def test_hidden_shelf_1():
    assert place([1, 2, 3, 4, 5, 6, 7], 7) == 6
    assert place([10, 20, 30, 40], 35) == 3
    assert place([5], 5) == 0
    assert place([5], 9) == 1
