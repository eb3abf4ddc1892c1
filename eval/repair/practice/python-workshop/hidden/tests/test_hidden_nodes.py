import pytest

from workshop.nodes import without, middle, merged, paired


@pytest.mark.parametrize("given, wanted", [
    (([2, 1, 2], 2), [1]),
    (([1], 3), [1]),
])
def test_hidden_without(given, wanted):
    assert without(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    (([1, 2],), 2),
    (([1, 2, 3, 4, 5],), 3),
])
def test_hidden_middle(given, wanted):
    assert middle(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    (([1, 1], [1]), [1, 1, 1]),
    (([5], [1, 9]), [1, 5, 9]),
])
def test_hidden_merged(given, wanted):
    assert merged(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    (([1],), [1]),
    (([1, 2],), [2, 1]),
    (([1, 2, 3, 4, 5],), [2, 1, 4, 3, 5]),
])
def test_hidden_paired(given, wanted):
    assert paired(*given) == wanted
