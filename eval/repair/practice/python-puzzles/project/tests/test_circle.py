from puzzles.circle import last, rotate, leap


def test_circle_1():
    assert last(["a", "b", "c"], 2) == "c"
    assert last(["a", "b", "c", "d", "e"], 3) == "d"


def test_circle_2():
    names = ["x", "y", "z"]
    assert last(names, 1) == "z"
    assert names == ["x", "y", "z"]


def test_circle_3():
    assert rotate([1, 2, 3, 4], 1) == [4, 1, 2, 3]
    assert rotate([], 3) == []
    assert rotate([1, 2, 3], 7) == [3, 1, 2]


def test_circle_4():
    assert leap(2024) and not leap(2023)
    assert leap(2000) and not leap(1900)
