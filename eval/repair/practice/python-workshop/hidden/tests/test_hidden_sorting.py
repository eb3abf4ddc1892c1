import pytest

from workshop.sorting import insertion, selection, counting, flags, sift


@pytest.mark.parametrize("given, wanted", [
    (([9, 8, 7, 6],), [6, 7, 8, 9]),
    (([1, 2, 3],), [1, 2, 3]),
])
def test_hidden_insertion(given, wanted):
    assert insertion(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    (([1, 1, 0],), [0, 1, 1]),
    (([2, 9, 4],), [2, 4, 9]),
    (([4, 9, 2, 3],), [2, 3, 4, 9]),
])
def test_hidden_selection(given, wanted):
    assert selection(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    (([5, 5, 0],), [0, 5, 5]),
])
def test_hidden_counting(given, wanted):
    assert counting(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    (([0, 1, 2, 0, 1, 2],), [0, 0, 1, 1, 2, 2]),
    (([],), []),
    (([2, 1, 0],), [0, 1, 2]),
])
def test_hidden_flags(given, wanted):
    assert flags(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    (([2, 3], 0), [3, 2]),
    (([], 0), []),
    (([9, 1, 8, 7, 6], 1), [9, 7, 8, 1, 6]),
    (([1, 9, 8, 7, 6, 5, 4, 3], 0), [9, 7, 8, 3, 6, 5, 4, 1]),
])
def test_hidden_sift(given, wanted):
    assert sift(*given) == wanted
