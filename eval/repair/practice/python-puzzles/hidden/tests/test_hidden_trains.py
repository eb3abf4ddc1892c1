from puzzles.trains import cheapest, platforms


def test_hidden_trains_1():
    roads = {"a": {"b": 4, "c": 1}, "c": {"b": 2, "d": 7}, "b": {"d": 1}, "d": {}}
    assert cheapest(roads, "a", "d") == 4
    assert cheapest(roads, "d", "a") is None
    assert cheapest({"p": {"q": 1, "r": 2}}, "p", "r") == 2
    assert platforms([(1, 10), (2, 9), (3, 8), (11, 12)]) == 3
    assert platforms([]) == 0
