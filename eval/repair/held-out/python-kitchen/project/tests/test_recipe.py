import pytest

from kitchen.quantity import Quantity
from kitchen.recipe import Recipe, minutes

PANCAKES = """
# my grandmother's
Pancakes
Serves: 4
Time: 1h 20m
Tags: sweet, quick,

250 g flour
500 ml milk
2 eggs
1 tbsp sugar
1 tbsp sugar
"""


def test_a_recipe_is_read():
    recipe = Recipe.read(PANCAKES)
    assert recipe.name == "Pancakes"
    assert recipe.serves == 4
    assert recipe.minutes == 80
    assert recipe.tags == {"sweet", "quick"}
    assert recipe.ingredients["flour"] == Quantity(250, "g")


def test_the_same_ingredient_twice_adds_up():
    assert Recipe.read(PANCAKES).ingredients["sugar"] == Quantity(2, "tbsp")


def test_an_empty_recipe_is_refused():
    with pytest.raises(ValueError):
        Recipe.read("\n# nothing\n")


def test_scaling_changes_amounts_and_people():
    recipe = Recipe.read(PANCAKES).scaled(6)
    assert recipe.serves == 6
    assert recipe.ingredients["eggs"] == Quantity(3)
    assert recipe.ingredients["flour"] == Quantity(375, "g")


def test_times():
    assert minutes("45m") == 45
    assert minutes("2h") == 120
    assert minutes("") == 0
