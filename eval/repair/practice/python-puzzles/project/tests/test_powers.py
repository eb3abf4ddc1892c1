from puzzles.powers import power, binomial, digits


def test_powers_1():
    assert power(2, 10) == 1024
    assert power(3, 3) == 27


def test_powers_2():
    assert binomial(4, 2) == 6
    assert binomial(5, 5) == 1
    assert binomial(6, 1) == 6


def test_powers_3():
    assert digits(10, 2) == "1010"
    assert digits(255, 16) == "ff"
    assert digits(0, 2) == "0"
