import pytest

from workshop.walls import trapped, skyline


@pytest.mark.parametrize("given, wanted", [
    (([2, 0, 2],), 2),
    (([5, 4, 1, 2],), 1),
    (([0, 1, 0, 2, 1, 0, 1, 3, 2, 1, 2, 1],), 6),
    (([3, 3, 0, 3],), 3),
])
def test_hidden_trapped(given, wanted):
    assert trapped(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    (([7, 7, 7],), 1),
    (([1, 3, 2, 4],), 3),
])
def test_hidden_skyline(given, wanted):
    assert skyline(*given) == wanted
