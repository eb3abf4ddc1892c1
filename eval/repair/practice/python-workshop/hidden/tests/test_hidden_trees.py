import pytest

from workshop.trees import depth, balanced, insert, inorder, path_sum, levels


@pytest.mark.parametrize("given, wanted", [
    (((1, (2, None, None), None),), 2),
])
def test_hidden_depth(given, wanted):
    assert depth(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    (((1, (2, (3, None, None), None), None),), False),
    (((1, (2, None, None), None),), True),
    (((1, (2, (4, (5, None, None), None), None), (3, (6, None, None), (7, None, (8, None, None)))),), False),
    (((1, None, (2, None, (3, None, None))),), False),
])
def test_hidden_balanced(given, wanted):
    assert balanced(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    (((4, (2, None, None), None), 3), (4, (2, None, (3, None, None)), None)),
    (((4, None, (6, None, None)), 5), (4, None, (6, (5, None, None), None))),
])
def test_hidden_insert(given, wanted):
    assert insert(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    (((5, (3, (1, None, None), None), None),), [1, 3, 5]),
    (((5, (3, None, None), (9, None, None)),), [3, 5, 9]),
])
def test_hidden_inorder(given, wanted):
    assert inorder(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    (((5, (4, (11, (7, None, None), (2, None, None)), None), (8, None, None)), 22), True),
    (((5, None, (8, None, None)), 13), True),
    (((5, None, (8, None, None)), 5), False),
])
def test_hidden_path_sum(given, wanted):
    assert path_sum(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    (((1, None, (2, None, (3, None, None))),), [[1], [2], [3]]),
    (((1, (2, (4, None, None), None), (3, None, None)),), [[1], [2, 3], [4]]),
])
def test_hidden_levels(given, wanted):
    assert levels(*given) == wanted
