from puzzles.circle import last, rotate, leap


def test_hidden_circle_1():
    assert last(list("abcdefg"), 3) == "d"
    assert last(["q"], 9) == "q"
    assert rotate([], 1) == []
    guests = ["k", "l", "m", "n"]
    last(guests, 2)
    assert guests == ["k", "l", "m", "n"]
    assert rotate([1, 2, 3, 4, 5], 2) == [4, 5, 1, 2, 3]
    assert rotate([1, 2], 7) == [2, 1]
    assert [y for y in range(1896, 1912) if leap(y)] == [1896, 1904, 1908]
    assert leap(2400) and not leap(2100)
