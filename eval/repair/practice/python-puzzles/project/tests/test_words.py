from puzzles.words import frequent, acronym


def test_words_1():
    assert frequent("the cat and the dog", 1) == ["the"]
    assert frequent("b a b a c", 2) == ["a", "b"]


def test_words_2():
    assert frequent("Red red. Blue, red!", 2) == ["red", "blue"]


def test_words_3():
    assert acronym("portable network graphics") == "PNG"
    assert acronym("First-in first-out") == "FIFO"
