import pytest

from workshop.choices import permutations, combinations, queens, brackets, reachable, groups


@pytest.mark.parametrize("given, wanted", [
    (([1, 2],), [[1, 2], [2, 1]]),
    (([],), [[]]),
    (([1, 2, 3],), [[1, 2, 3], [1, 3, 2], [2, 1, 3], [2, 3, 1], [3, 1, 2], [3, 2, 1]]),
])
def test_permutations(given, wanted):
    assert permutations(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    (([1, 2, 3], 2), [[1, 2], [1, 3], [2, 3]]),
    (([1], 0), [[]]),
    (([1], 2), []),
])
def test_combinations(given, wanted):
    assert combinations(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    ((1,), 1),
    ((2,), 0),
    ((4,), 2),
    ((5,), 10),
])
def test_queens(given, wanted):
    assert queens(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    ((1,), ['()']),
    ((2,), ['(())', '()()']),
    ((0,), ['']),
])
def test_brackets(given, wanted):
    assert brackets(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    (({'a': ['b'], 'b': ['a', 'c']}, 'a'), ['a', 'b', 'c']),
    (({}, 'x'), ['x']),
])
def test_reachable(given, wanted):
    assert reachable(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    ((3, [(0, 1)]), 2),
    ((2, []), 2),
    ((4, [(0, 1), (2, 3), (1, 2)]), 1),
    ((3, [(0, 1), (0, 2)]), 1),
])
def test_groups(given, wanted):
    assert groups(*given) == wanted
