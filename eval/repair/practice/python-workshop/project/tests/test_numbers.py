import pytest

from workshop.numbers import collatz, root, luhn, perfect, fraction, triangle, gray


@pytest.mark.parametrize("given, wanted", [
    ((1,), 0),
    ((6,), 8),
    ((2,), 1),
])
def test_collatz(given, wanted):
    assert collatz(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    ((9,), 9),
    ((38,), 2),
    ((493193,), 2),
    ((10,), 1),
])
def test_root(given, wanted):
    assert root(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    (('79927398713',), True),
    (('79927398710',), False),
    (('0',), True),
    (('18',), True),
])
def test_luhn(given, wanted):
    assert luhn(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    ((6,), True),
    ((28,), True),
    ((12,), False),
    ((1,), False),
    ((4,), False),
    ((24,), False),
])
def test_perfect(given, wanted):
    assert perfect(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    ((7, 2), (3, 1, 2)),
    ((6, 4), (1, 1, 2)),
    ((4, 2), (2, 0, 1)),
])
def test_fraction(given, wanted):
    assert fraction(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    ((0,), [1]),
    ((2,), [1, 2, 1]),
    ((4,), [1, 4, 6, 4, 1]),
])
def test_triangle(given, wanted):
    assert triangle(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    ((0,), ['']),
    ((1,), ['0', '1']),
    ((2,), ['00', '01', '11', '10']),
])
def test_gray(given, wanted):
    assert gray(*given) == wanted
