import pytest

from kitchen.quantity import Quantity, parse


def test_a_number_and_a_unit():
    assert parse("250 g flour") == (Quantity(250, "g"), "flour")


def test_mixed_numbers_and_plural_units():
    assert parse("1 1/2 cups milk") == (Quantity("3/2", "cup"), "milk")


def test_no_amount_is_one():
    assert parse("egg") == (Quantity(1), "egg")


def test_no_unit():
    assert parse("3 large eggs") == (Quantity(3), "large eggs")


def test_adding_keeps_the_first_unit():
    assert Quantity(1, "kg").plus(Quantity(500, "g")) == Quantity("3/2", "kg")


def test_weights_and_volumes_do_not_add():
    with pytest.raises(ValueError):
        Quantity(1, "kg").plus(Quantity(1, "l"))


@pytest.mark.parametrize(
    "quantity, text",
    [
        (Quantity("3/2", "cup"), "1 1/2 cup"),
        (Quantity("1/2"), "1/2"),
        (Quantity(2, "g"), "2 g"),
        (Quantity(0, "g"), "0 g"),
    ],
)
def test_amounts_are_shown_as_cooks_write_them(quantity, text):
    assert quantity.show() == text
