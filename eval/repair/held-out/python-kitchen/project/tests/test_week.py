from kitchen.pantry import Pantry
from kitchen.quantity import Quantity
from kitchen.recipe import Recipe
from kitchen.week import rotate, shopping, suggest


def recipe(name, minutes, **items):
    return Recipe(name, 2, {item: Quantity(amount, "g") for item, amount in items.items()}, minutes)


RICE = recipe("rice", 20, rice=200)
PASTA = recipe("pasta", 15, pasta=200, cheese=50)
BREAD = recipe("bread", 90, flour=500)
SOUP = recipe("soup", 40, leek=100, cream=50, cheese=20)


def pantry():
    stock = Pantry()
    stock.add("flour", Quantity(1, "kg"))
    stock.add("rice", Quantity(1, "kg"))
    return stock


def test_what_is_at_home_is_suggested_first():
    names = [r.name for r in suggest([SOUP, PASTA, BREAD, RICE], pantry())]
    assert names == ["rice", "bread", "pasta"]


def test_slow_recipes_can_be_left_out():
    names = [r.name for r in suggest([SOUP, PASTA, BREAD, RICE], pantry(), minutes=40)]
    assert names == ["rice", "pasta", "soup"]


def test_dislikes_are_left_out():
    names = [r.name for r in suggest([SOUP, PASTA, RICE], pantry(), without=["cheese"])]
    assert names == ["rice"]


def test_no_recipe_comes_again_too_soon():
    assert rotate(["a", "b", "c"], 4) == ["a", "b", "c", "a"]
    assert rotate(["a", "b"], 5) == ["a", "b", None, "a", "b"]


def test_shopping_adds_up():
    together = shopping([PASTA, SOUP])
    assert together["cheese"] == Quantity(70, "g")
    assert list(together) == ["cheese", "cream", "leek", "pasta"]
