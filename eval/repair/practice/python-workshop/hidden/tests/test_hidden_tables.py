import pytest

from workshop.tables import stairs, loot, cheapest, breakable, palindromes


@pytest.mark.parametrize("given, wanted", [
    ((3,), 3),
    ((10,), 89),
])
def test_hidden_stairs(given, wanted):
    assert stairs(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    (([2, 7, 9, 3, 1],), 12),
    (([4],), 4),
])
def test_hidden_loot(given, wanted):
    assert loot(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    (([[1, 3, 1], [1, 5, 1], [4, 2, 1]],), 7),
    (([[7]],), 7),
    (([[1], [2]],), 3),
])
def test_hidden_cheapest(given, wanted):
    assert cheapest(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    (('aaaa', ['aa']), True),
    (('aaa', ['aa']), False),
])
def test_hidden_breakable(given, wanted):
    assert breakable(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    (('',), 0),
    (('aba',), 4),
])
def test_hidden_palindromes(given, wanted):
    assert palindromes(*given) == wanted
