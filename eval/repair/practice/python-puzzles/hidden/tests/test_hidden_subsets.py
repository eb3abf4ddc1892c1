from puzzles.subsets import subsets


def test_hidden_subsets_1():
    assert subsets(["a", "b"]) == [[], ["a"], ["a", "b"], ["b"]]
    assert len(subsets(list("abcd"))) == 16
    assert subsets(["x"]) == [[], ["x"]]
    assert len({tuple(s) for s in subsets(list("abcde"))}) == 32
