from puzzles.words import frequent, acronym


def test_hidden_words_1():
    assert frequent("One two, Two three. three; three", 3) == ["three", "two", "one"]
    assert frequent("", 3) == []
    assert acronym("as soon as possible") == "ASAP"
