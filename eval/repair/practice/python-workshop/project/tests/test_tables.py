import pytest

from workshop.tables import stairs, loot, cheapest, breakable, palindromes


@pytest.mark.parametrize("given, wanted", [
    ((0,), 1),
    ((1,), 1),
    ((2,), 2),
    ((5,), 8),
])
def test_stairs(given, wanted):
    assert stairs(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    (([1, 2, 3],), 4),
    (([5, 1, 1, 5],), 10),
    (([],), 0),
])
def test_loot(given, wanted):
    assert loot(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    (([[1, 3], [2, 1]],), 4),
    (([[1, 2, 3]],), 6),
    (([[1, 9, 1], [1, 9, 1], [1, 1, 1]],), 5),
])
def test_cheapest(given, wanted):
    assert cheapest(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    (('catdog', ['cat', 'dog']), True),
    (('catsdog', ['cat', 'dog']), False),
    (('', ['a']), True),
])
def test_breakable(given, wanted):
    assert breakable(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    (('aaa',), 6),
    (('abc',), 3),
    (('abba',), 6),
])
def test_palindromes(given, wanted):
    assert palindromes(*given) == wanted
