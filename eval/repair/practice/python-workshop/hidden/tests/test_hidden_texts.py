import pytest

from workshop.texts import longest_unique, zigzag, versions, column, seconds, justify, isomorphic


@pytest.mark.parametrize("given, wanted", [
    (('pwwkew',), 3),
    (('dvdf',), 3),
    (('tmmzuxt',), 5),
])
def test_hidden_longest_unique(given, wanted):
    assert longest_unique(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    (('PAYPALISHIRING', 4), 'PINALSIGYAHRPI'),
    (('A', 3), 'A'),
    (('XYZ', 1), 'XYZ'),
])
def test_hidden_zigzag(given, wanted):
    assert zigzag(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    (('1', '1.0.1'), -1),
    (('3.0.0', '3'), 0),
    (('10', '9.9'), 1),
])
def test_hidden_versions(given, wanted):
    assert versions(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    (('ZY',), 701),
    (('AAA',), 703),
])
def test_hidden_column(given, wanted):
    assert column(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    (('45s',), 45),
    (('2h30s',), 7230),
])
def test_hidden_seconds(given, wanted):
    assert seconds(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    ((['a', 'b', 'c'], 3), ['a b', 'c']),
    ((['ab', 'cd'], 5), ['ab cd']),
    ((['abc', 'def'], 6), ['abc', 'def']),
])
def test_hidden_justify(given, wanted):
    assert justify(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    (('paper', 'title'), True),
    (('badc', 'baba'), False),
    (('', ''), True),
    (('ab', 'abc'), False),
])
def test_hidden_isomorphic(given, wanted):
    assert isomorphic(*given) == wanted
