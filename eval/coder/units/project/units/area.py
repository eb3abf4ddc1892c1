"""Units of area. The base unit is the square metre."""

from units.unit import Unit

KIND = "area"
BASE = "square metre"

# One square centimetre is 0.0001 of the base unit.
SQUARE_CENTIMETRE = Unit(
    KIND,
    name="square centimetre",
    symbol="cm2",
    factor="0.0001",
)

# One square metre is 1 of the base unit.
SQUARE_METRE = Unit(
    KIND,
    name="square metre",
    symbol="m2",
    factor="1",
)

# One are is 100 of the base unit.
ARE = Unit(
    KIND,
    name="are",
    symbol="a",
    factor="100",
)

# One hectare is 10000 of the base unit.
HECTARE = Unit(
    KIND,
    name="hectare",
    symbol="ha",
    factor="10000",
)

# One square kilometre is 1000000 of the base unit.
SQUARE_KILOMETRE = Unit(
    KIND,
    name="square kilometre",
    symbol="km2",
    factor="1000000",
)

# One acre is 4046.8564224 of the base unit.
ACRE = Unit(
    KIND,
    name="acre",
    symbol="ac",
    factor="4046.8564224",
)

# One square foot is 0.09290304 of the base unit.
SQUARE_FOOT = Unit(
    KIND,
    name="square foot",
    symbol="ft2",
    factor="0.09290304",
)

# One square mile is 2589988.110336 of the base unit.
SQUARE_MILE = Unit(
    KIND,
    name="square mile",
    symbol="mi2",
    factor="2589988.110336",
)

ALL = [
    SQUARE_CENTIMETRE,
    SQUARE_METRE,
    ARE,
    HECTARE,
    SQUARE_KILOMETRE,
    ACRE,
    SQUARE_FOOT,
    SQUARE_MILE,
]


def find(name):
    """The unit of area of that name or symbol; nothing where there is none."""
    for unit in ALL:
        if name in unit.names():
            return unit
    return None


def largest_within(amount):
    """The largest unit of area of which an amount of the base unit has at least one."""
    fitting = [unit for unit in ALL if unit.factor <= amount]
    return max(fitting, key=lambda unit: unit.factor, default=None)
