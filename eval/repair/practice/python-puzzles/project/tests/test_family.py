from puzzles.family import line, generations, find
from puzzles.family import Person


def test_family_1():
    tree = Person("a", [Person("b", [Person("c")]), Person("d")])
    assert list(line(tree)) == ["a", "b", "c", "d"]


def test_family_2():
    assert generations(Person("x")) == 1
    assert generations(Person("a", [Person("b", [Person("c")]), Person("d")])) == 3


def test_family_3():
    tree = Person("a", [Person("b", [Person("c")]), Person("d")])
    assert find(tree, "c").name == "c"
    assert find(tree, "d").name == "d"
    assert find(tree, "z") is None
