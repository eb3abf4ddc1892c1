import pytest

from workshop.walls import trapped, skyline


@pytest.mark.parametrize("given, wanted", [
    (([3, 0, 2],), 2),
    (([1, 2, 3],), 0),
    (([4, 1, 0, 2, 3],), 6),
    (([],), 0),
    (([0, 2, 0, 3, 1, 0, 1],), 3),
])
def test_trapped(given, wanted):
    assert trapped(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    (([1, 2, 3],), 3),
    (([3, 2, 1],), 1),
    (([2, 2, 5, 1, 6],), 3),
    (([],), 0),
])
def test_skyline(given, wanted):
    assert skyline(*given) == wanted
