from puzzles.steps import order


def test_hidden_steps_1():
    assert order({"d": ["b", "c"], "c": ["a"], "b": ["a"], "a": []}) == ["a", "b", "c", "d"]
    assert order({}) == []
    assert order({"a": [], "b": ["c"], "c": ["b"]}) is None
