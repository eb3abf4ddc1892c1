import pytest

from workshop.sorting import insertion, selection, counting, flags, sift


@pytest.mark.parametrize("given, wanted", [
    (([3, 1, 2],), [1, 2, 3]),
    (([],), []),
    (([2, 2, 1],), [1, 2, 2]),
])
def test_insertion(given, wanted):
    assert insertion(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    (([3, 1, 2],), [1, 2, 3]),
    (([5, 4, 3, 2, 1],), [1, 2, 3, 4, 5]),
    (([],), []),
])
def test_selection(given, wanted):
    assert selection(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    (([3, 1, 2, 1],), [1, 1, 2, 3]),
    (([],), []),
    (([0],), [0]),
    (([7, 2],), [2, 7]),
])
def test_counting(given, wanted):
    assert counting(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    (([2, 0, 1],), [0, 1, 2]),
    (([2, 2, 0, 0],), [0, 0, 2, 2]),
    (([1],), [1]),
    (([2, 0, 2, 1, 0],), [0, 0, 1, 2, 2]),
    (([1, 2, 0],), [0, 1, 2]),
])
def test_flags(given, wanted):
    assert flags(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    (([1, 5, 3], 0), [5, 1, 3]),
    (([1, 3, 5], 0), [5, 3, 1]),
    (([9, 5, 3], 0), [9, 5, 3]),
    (([1, 9, 8, 7, 6], 0), [9, 7, 8, 1, 6]),
])
def test_sift(given, wanted):
    assert sift(*given) == wanted
