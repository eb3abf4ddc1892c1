import pytest

from workshop.texts import longest_unique, zigzag, versions, column, seconds, justify, isomorphic


@pytest.mark.parametrize("given, wanted", [
    (('abcabcbb',), 3),
    (('bbb',), 1),
    (('abba',), 2),
    (('',), 0),
])
def test_longest_unique(given, wanted):
    assert longest_unique(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    (('PAYPALISHIRING', 3), 'PAHNAPLSIIGYIR'),
    (('AB', 1), 'AB'),
    (('ABCD', 2), 'ACBD'),
])
def test_zigzag(given, wanted):
    assert zigzag(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    (('1.2', '1.10'), -1),
    (('1.0', '1'), 0),
    (('2.1', '2.0.5'), 1),
])
def test_versions(given, wanted):
    assert versions(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    (('A',), 1),
    (('Z',), 26),
    (('AB',), 28),
])
def test_column(given, wanted):
    assert column(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    (('1h2m3s',), 3723),
    (('10m',), 600),
    (('',), 0),
])
def test_seconds(given, wanted):
    assert seconds(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    ((['a', 'bb', 'ccc'], 4), ['a bb', 'ccc']),
    (([], 4), []),
    ((['toolong', 'x'], 3), ['toolong', 'x']),
    ((['ab', 'cd'], 4), ['ab', 'cd']),
])
def test_justify(given, wanted):
    assert justify(*given) == wanted


@pytest.mark.parametrize("given, wanted", [
    (('egg', 'add'), True),
    (('foo', 'bar'), False),
    (('ab', 'aa'), False),
    (('a', 'ab'), False),
])
def test_isomorphic(given, wanted):
    assert isomorphic(*given) == wanted
