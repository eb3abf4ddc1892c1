import pytest

from workshop.numbers import collatz, root, luhn, perfect, fraction, triangle, gray


@pytest.mark.parametrize("given, wanted", [
    ((7,), 16),
    ((27,), 111),
])
def test_hidden_collatz(given, wanted):
    assert collatz(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    ((0,), 0),
    ((99,), 9),
    ((199,), 1),
])
def test_hidden_root(given, wanted):
    assert root(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    (('4539578763621486',), True),
    (('8273123273520569',), False),
])
def test_hidden_luhn(given, wanted):
    assert luhn(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    ((496,), True),
    ((16,), False),
    ((36,), False),
    ((0,), False),
    ((9,), False),
])
def test_hidden_perfect(given, wanted):
    assert perfect(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    ((1, 3), (0, 1, 3)),
    ((10, 4), (2, 1, 2)),
])
def test_hidden_fraction(given, wanted):
    assert fraction(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    ((1,), [1, 1]),
    ((5,), [1, 5, 10, 10, 5, 1]),
])
def test_hidden_triangle(given, wanted):
    assert triangle(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    ((3,), ['000', '001', '011', '010', '110', '111', '101', '100']),
])
def test_hidden_gray(given, wanted):
    assert gray(*given) == wanted
