from puzzles.lakes import lakes


def test_lakes_1():
    assert lakes(["~.~", "~..", "..~"]) == 3


def test_lakes_2():
    assert lakes(["~~", "~~"]) == 1
    assert lakes([]) == 0


def test_lakes_3():
    assert lakes([".~.", "..~", "~~~"]) == 2
    assert lakes(["~.~", "~.~", "~~~"]) == 1
