import pytest

from workshop.choices import permutations, combinations, queens, brackets, reachable, groups


@pytest.mark.parametrize("given, wanted", [
    ((['a'],), [['a']]),
])
def test_hidden_permutations(given, wanted):
    assert permutations(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    (([1, 2, 3, 4], 3), [[1, 2, 3], [1, 2, 4], [1, 3, 4], [2, 3, 4]]),
    (([], 0), [[]]),
])
def test_hidden_combinations(given, wanted):
    assert combinations(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    ((3,), 0),
    ((6,), 4),
])
def test_hidden_queens(given, wanted):
    assert queens(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    ((3,), ['((()))', '(()())', '(())()', '()(())', '()()()']),
])
def test_hidden_brackets(given, wanted):
    assert brackets(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    (({'a': ['b', 'c'], 'c': ['d'], 'e': ['a']}, 'a'), ['a', 'b', 'c', 'd']),
    (({'a': ['b'], 'b': ['a', 'b']}, 'a'), ['a', 'b']),
])
def test_hidden_reachable(given, wanted):
    assert reachable(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    ((5, [(0, 1), (1, 0), (3, 4)]), 3),
    ((3, [(0, 1), (0, 2)]), 1),
])
def test_hidden_groups(given, wanted):
    assert groups(*given) == wanted
