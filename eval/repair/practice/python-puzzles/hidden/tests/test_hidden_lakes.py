from puzzles.lakes import lakes


def test_hidden_lakes_1():
    assert lakes(["~~~~", "...~", "~~~~", "~..."]) == 1
    assert lakes(["..~", "~.~", "~~~"]) == 1
    assert lakes(["."]) == 0
