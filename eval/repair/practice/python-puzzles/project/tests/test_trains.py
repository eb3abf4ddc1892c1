from puzzles.trains import cheapest, platforms


def test_trains_1():
    roads = {"a": {"b": 2, "c": 9}, "b": {"c": 3}}
    assert cheapest(roads, "a", "c") == 5
    assert cheapest(roads, "a", "b") == 2


def test_trains_2():
    assert cheapest({"a": {"b": 1}}, "a", "z") is None


def test_trains_3():
    assert platforms([(1, 5), (2, 3), (4, 6)]) == 2
    assert platforms([(1, 2), (3, 4)]) == 1
