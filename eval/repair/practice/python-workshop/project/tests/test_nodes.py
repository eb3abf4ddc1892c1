import pytest

from workshop.nodes import without, middle, merged, paired


@pytest.mark.parametrize("given, wanted", [
    (([1, 2, 2, 3], 2), [1, 3]),
    (([], 1), []),
    (([5, 5], 5), []),
])
def test_without(given, wanted):
    assert without(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    (([1, 2, 3],), 2),
    (([1, 2, 3, 4],), 3),
    (([],), None),
    (([9],), 9),
])
def test_middle(given, wanted):
    assert middle(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    (([1, 4], [2, 3]), [1, 2, 3, 4]),
    (([], [1]), [1]),
    (([1, 2], []), [1, 2]),
])
def test_merged(given, wanted):
    assert merged(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    (([1, 2, 3, 4],), [2, 1, 4, 3]),
    (([1, 2, 3],), [2, 1, 3]),
    (([],), []),
])
def test_paired(given, wanted):
    assert paired(*given) == wanted
