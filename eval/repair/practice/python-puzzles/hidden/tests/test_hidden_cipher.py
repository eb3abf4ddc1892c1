from puzzles.cipher import shift


def test_hidden_cipher_1():
    assert shift("Zebra", 1) == "Afcsb"
    assert shift("a b", -1) == "z a"
    assert shift("", 5) == ""
