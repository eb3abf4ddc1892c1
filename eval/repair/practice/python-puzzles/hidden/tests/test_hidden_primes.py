from puzzles.primes import sieve, factors


def test_hidden_primes_1():
    assert sieve(2) == [2]
    assert sieve(30) == [2, 3, 5, 7, 11, 13, 17, 19, 23, 29]
    assert factors(97) == [97]
    assert factors(360) == [2, 2, 2, 3, 3, 5]
    assert factors(25) == [5, 5]
