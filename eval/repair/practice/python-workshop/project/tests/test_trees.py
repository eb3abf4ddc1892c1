import pytest

from workshop.trees import depth, balanced, insert, inorder, path_sum, levels


@pytest.mark.parametrize("given, wanted", [
    ((None,), 0),
    (((1, None, None),), 1),
    (((1, None, (2, None, (3, None, None))),), 3),
])
def test_depth(given, wanted):
    assert depth(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    ((None,), True),
    (((1, (2, None, None), (3, None, None)),), True),
    (((1, None, (2, None, (3, None, None))),), False),
    (((1, (2, (4, (5, None, None), None), None), (3, (6, None, None), (7, None, None))),), False),
])
def test_balanced(given, wanted):
    assert balanced(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    ((None, 4), (4, None, None)),
    (((4, None, None), 2), (4, (2, None, None), None)),
    (((4, None, None), 6), (4, None, (6, None, None))),
    (((4, None, None), 4), (4, None, None)),
    (((4, (2, None, None), None), 1), (4, (2, (1, None, None), None), None)),
])
def test_insert(given, wanted):
    assert insert(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    (((2, (1, None, None), (3, None, None)),), [1, 2, 3]),
    ((None,), []),
])
def test_inorder(given, wanted):
    assert inorder(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    (((1, (2, None, None), None), 3), True),
    (((1, (2, None, None), None), 1), False),
    ((None, 0), False),
])
def test_path_sum(given, wanted):
    assert path_sum(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    (((1, (2, None, None), (3, (4, None, None), None)),), [[1], [2, 3], [4]]),
    ((None,), []),
])
def test_levels(given, wanted):
    assert levels(*given) == wanted
