import pytest

from kitchen.pantry import Pantry
from kitchen.quantity import Quantity, parse
from kitchen.recipe import Recipe, minutes
from kitchen.week import rotate, shopping, suggest


def test_parse_more():
    assert parse("2 Tbsp. oil") == (Quantity(2, "tbsp"), "oil")
    assert parse("1/4 l") == (Quantity("1/4", "l"), "")
    assert parse("2 1/4 kg lean beef") == (Quantity("9/4", "kg"), "lean beef")
    assert parse("4 bass") == (Quantity(4), "bass")
    assert parse("salt to taste") == (Quantity(1), "salt to taste")


def test_plus_more():
    assert Quantity(2, "tsp").plus(Quantity(1, "tbsp")) == Quantity(5, "tsp")
    assert Quantity(2).plus(Quantity(3)) == Quantity(5)
    assert Quantity(1, "l").plus(Quantity(1, "cup")) == Quantity("124/100", "l")
    with pytest.raises(ValueError):
        Quantity(1).plus(Quantity(1, "g"))


def test_show_more():
    assert Quantity("7/3").show() == "2 1/3"
    assert Quantity(5).show() == "5"
    assert Quantity("3/4", "l").show() == "3/4 l"
    assert Quantity(10, "kg").show() == "10 kg"


def test_read_more():
    recipe = Recipe.read("Tea\nNote: water: hot\nServes: 3\ntags:,warm ,\n1 cup water\n1 l water")
    assert recipe.serves == 3
    assert recipe.tags == {"warm"}
    assert recipe.ingredients == {"water": Quantity("31/6", "cup")}
    assert recipe.minutes == 0
    assert Recipe.read("Toast\n2 slices").serves == 1
    commented = Recipe.read("# by me\nToast\n  # thick ones\n2 slices")
    assert (commented.name, commented.ingredients) == ("Toast", {"slices": Quantity(2)})


def test_scale_more():
    recipe = Recipe("x", 3, {"a": Quantity(1, "kg")}, 7, ["t"])
    small = recipe.scaled(1)
    assert small.ingredients == {"a": Quantity("1/3", "kg")}
    assert (small.minutes, small.tags, small.name, small.serves) == (7, {"t"}, "x", 1)
    assert recipe.ingredients == {"a": Quantity(1, "kg")}


def test_minutes_more():
    assert minutes("1h 5m") == 65
    assert minutes("3h") == 180
    assert minutes("10h 10m") == 610


def test_pantry_more():
    pantry = Pantry()
    pantry.add("oil", Quantity(1, "l"))
    pantry.add("oil", Quantity(2, "cup"), expires=3)
    pantry.add("oil", Quantity(1, "tbsp"), expires=1)
    assert [lot[0] for lot in pantry.stock["oil"]] == [1, 3, None]
    assert pantry.has("oil") == 1495
    pantry.use("oil", 15 + 240)
    assert pantry.stock["oil"] == [(3, Quantity(1, "cup")), (None, Quantity(1, "l"))]
    pantry.use("oil", 1240)
    assert pantry.stock == {}
    assert pantry.has("oil") == 0
    with pytest.raises(ValueError):
        pantry.use("oil", 1)


def test_missing_more():
    pantry = Pantry()
    pantry.add("a", Quantity(3))
    recipe = Recipe("x", 1, {"a": Quantity(3), "b": Quantity(1, "kg"), "c": Quantity(0)})
    assert pantry.missing(recipe) == {"b": 1000}
    pantry.add("b", Quantity(400, "g"))
    assert pantry.missing(recipe) == {"b": 600}


def test_expired_more():
    pantry = Pantry()
    pantry.add("z", Quantity(1), expires=2)
    pantry.add("m", Quantity(1), expires=2)
    pantry.add("k", Quantity(1))
    pantry.add("a", Quantity(1), expires=9)
    pantry.add("a", Quantity(1), expires=1)
    assert pantry.expired(3) == ["a", "m", "z"]
    assert pantry.expired(2) == ["a"]
    assert pantry.expired(0) == []


def test_suggest_more():
    def r(name, time, *items):
        return Recipe(name, 1, {item: Quantity(1) for item in items}, time)

    stock = Pantry()
    stock.add("a", Quantity(5))
    recipes = [r("late", 30, "b", "c"), r("home", 50, "a"), r("half", 30, "a", "b"), r("also", 30, "a", "d")]
    assert [x.name for x in suggest(recipes, stock, limit=9)] == ["home", "also", "half", "late"]
    assert [x.name for x in suggest(recipes, stock, limit=1)] == ["home"]
    assert [x.name for x in suggest(recipes, stock, minutes=30)] == ["also", "half", "late"]
    assert [x.name for x in suggest(recipes, stock, minutes=0)] == []
    assert [x.name for x in suggest(recipes, stock, without=["b", "d"])] == ["home"]


def test_rotate_more():
    assert rotate(["a"], 4, gap=2) == ["a", None, None, "a"]
    assert rotate(["a", "b"], 4, gap=1) == ["a", "b", "a", "b"]
    assert rotate(["a", "b"], 3, gap=0) == ["a", "a", "a"][:0] + ["a", "a", "a"]
    assert rotate([], 2) == [None, None]


def test_shopping_more():
    one = Recipe("x", 1, {"b": Quantity(1, "kg"), "a": Quantity(2)})
    two = Recipe("y", 1, {"b": Quantity(250, "g"), "c": Quantity(1)})
    assert shopping([one, two]) == {"a": Quantity(2), "b": Quantity("5/4", "kg"), "c": Quantity(1)}
    assert list(shopping([two, one])) == ["a", "b", "c"]
    assert shopping([]) == {}
    assert one.ingredients["b"] == Quantity(1, "kg")
