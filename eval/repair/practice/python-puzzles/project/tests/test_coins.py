from puzzles.coins import ways


def test_coins_1():
    assert ways(4, [1, 2]) == 3


def test_coins_2():
    assert ways(5, [1, 2, 5]) == 4
    assert ways(3, [2]) == 0
