from puzzles.coins import ways


def test_hidden_coins_1():
    assert ways(0, [1]) == 1
    assert ways(10, [1, 2, 5]) == 10
    assert ways(7, [3, 4]) == 1
