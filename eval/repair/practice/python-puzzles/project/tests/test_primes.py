from puzzles.primes import sieve, factors


def test_primes_1():
    assert sieve(10) == [2, 3, 5, 7]
    assert sieve(13) == [2, 3, 5, 7, 11, 13]


def test_primes_2():
    assert factors(12) == [2, 2, 3]
    assert factors(49) == [7, 7]


def test_primes_3():
    assert factors(15) == [3, 5]
    assert factors(8) == [2, 2, 2]
