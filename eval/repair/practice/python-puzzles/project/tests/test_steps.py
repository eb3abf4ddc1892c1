from puzzles.steps import order


def test_steps_1():
    assert order({"eat": ["cook"], "cook": ["shop"], "shop": []}) == ["shop", "cook", "eat"]


def test_steps_2():
    assert order({"a": ["b"], "b": ["a"]}) is None


def test_steps_3():
    assert order({"c": [], "a": [], "b": ["a", "c"]}) == ["a", "c", "b"]
