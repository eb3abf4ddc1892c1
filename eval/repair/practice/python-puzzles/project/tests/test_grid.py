from puzzles.grid import distance


def test_grid_1():
    maze = ["..#", "#..", "..."]
    assert distance(maze, (0, 0), (2, 0)) == 4


def test_grid_2():
    assert distance(["...", "...", "..."], (0, 0), (2, 2)) == 4
    assert distance(["...", "...", "..."], (0, 0), (1, 0)) == 1
    assert distance(["...", "...", "..."], (1, 1), (0, 0)) == 2
    assert distance(["....", "....", "....", "...."], (0, 0), (3, 0)) == 3


def test_grid_3():
    assert distance([".#.", ".##", "..."], (0, 0), (0, 2)) is None
