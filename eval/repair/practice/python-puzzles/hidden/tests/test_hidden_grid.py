from puzzles.grid import distance


def test_hidden_grid_1():
    assert distance(["....", ".##.", "...."], (0, 0), (2, 3)) == 5
    assert distance([".#", "#."], (0, 0), (1, 1)) is None
    assert distance(["."], (0, 0), (0, 0)) == 0
    assert distance(["....", "....", "....", "...."], (0, 0), (1, 1)) == 2
    assert distance(["....", "....", "....", "...."], (3, 3), (3, 2)) == 1
    assert distance([".....", ".....", ".....", "....."], (0, 0), (3, 0)) == 3
    assert distance(["..#.", "..##", "...."], (0, 0), (0, 3)) is None
