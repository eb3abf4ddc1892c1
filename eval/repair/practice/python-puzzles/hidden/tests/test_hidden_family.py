from puzzles.family import line, generations, find
from puzzles.family import Person


def test_hidden_family_1():
    tree = Person("r", [Person("s"), Person("t", [Person("u", [Person("v")]), Person("w")])])
    assert list(line(tree)) == ["r", "s", "t", "u", "v", "w"]
    assert generations(tree) == 4
    assert find(tree, "w").name == "w"
    assert find(tree, "v").name == "v"
    assert find(tree, "q") is None
