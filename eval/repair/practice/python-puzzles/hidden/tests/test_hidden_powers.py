from puzzles.powers import power, binomial, digits


def test_hidden_powers_1():
    assert power(5, 0) == 1
    assert power(2, 7) == 128
    assert binomial(7, 3) == 35
    assert binomial(3, 0) == 1
    assert digits(64, 8) == "100"
    assert digits(9, 3) == "100"
    assert digits(0, 10) == "0"
