import pytest

from kitchen.pantry import Pantry
from kitchen.quantity import Quantity
from kitchen.recipe import Recipe


def stocked():
    pantry = Pantry()
    pantry.add("flour", Quantity(1, "kg"))
    pantry.add("milk", Quantity(500, "ml"), expires=9)
    pantry.add("milk", Quantity(1, "l"), expires=5)
    return pantry


def test_stock_adds_up_over_units():
    assert stocked().has("milk") == 1500
    assert stocked().has("rice") == 0


def test_only_what_is_short_is_missing():
    recipe = Recipe("x", 1, {"flour": Quantity(1, "kg"), "milk": Quantity(2, "l"), "egg": Quantity(2)})
    assert stocked().missing(recipe) == {"milk": 500, "egg": 2}


def test_what_expires_first_is_used_first():
    pantry = stocked()
    pantry.use("milk", 1200)
    assert pantry.stock["milk"] == [(9, Quantity(300, "ml"))]


def test_what_never_expires_is_used_last():
    pantry = Pantry()
    pantry.add("rice", Quantity(1, "kg"))
    pantry.add("rice", Quantity(300, "g"), expires=50)
    pantry.use("rice", 400)
    assert pantry.stock["rice"] == [(None, Quantity("9/10", "kg"))]


def test_using_all_leaves_nothing():
    pantry = stocked()
    pantry.use("flour", 1000)
    assert "flour" not in pantry.stock


def test_too_little_takes_nothing():
    pantry = stocked()
    with pytest.raises(ValueError):
        pantry.use("milk", 1501)
    assert pantry.has("milk") == 1500


def test_expired_food_is_named():
    assert stocked().expired(6) == ["milk"]
    assert stocked().expired(5) == []
