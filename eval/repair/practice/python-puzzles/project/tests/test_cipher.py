from puzzles.cipher import shift


def test_cipher_1():
    assert shift("abc", 1) == "bcd"


def test_cipher_2():
    assert shift("xyz", 3) == "abc"


def test_cipher_3():
    assert shift("Hi, You!", 2) == "Jk, Aqw!"
