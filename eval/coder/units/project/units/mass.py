"""Units of mass. The base unit is the kilogram."""

from units.unit import Unit

KIND = "mass"
BASE = "kilogram"

# One milligram is 0.000001 of the base unit.
MILLIGRAM = Unit(
    KIND,
    name="milligram",
    symbol="mg",
    factor="0.000001",
)

# One gram is 0.001 of the base unit.
GRAM = Unit(
    KIND,
    name="gram",
    symbol="g",
    factor="0.001",
)

# One kilogram is 1 of the base unit.
KILOGRAM = Unit(
    KIND,
    name="kilogram",
    symbol="kg",
    factor="1",
)

# One tonne is 1000 of the base unit.
TONNE = Unit(
    KIND,
    name="tonne",
    symbol="t",
    factor="1000",
)

# One ounce is 0.028349523125 of the base unit.
OUNCE = Unit(
    KIND,
    name="ounce",
    symbol="oz",
    factor="0.028349523125",
)

# One pound is 0.45359237 of the base unit.
POUND = Unit(
    KIND,
    name="pound",
    symbol="lb",
    factor="0.45359237",
)

# One stone is 6.35029318 of the base unit.
STONE = Unit(
    KIND,
    name="stone",
    symbol="st",
    factor="6.35029318",
)

# One grain is 0.00006479891 of the base unit.
GRAIN = Unit(
    KIND,
    name="grain",
    symbol="gr",
    factor="0.00006479891",
)

# One carat is 0.0002 of the base unit.
CARAT = Unit(
    KIND,
    name="carat",
    symbol="ct",
    factor="0.0002",
)

# One short ton is 907.18474 of the base unit.
SHORT_TON = Unit(
    KIND,
    name="short ton",
    symbol="ton",
    factor="907.18474",
)

ALL = [
    MILLIGRAM,
    GRAM,
    KILOGRAM,
    TONNE,
    OUNCE,
    POUND,
    STONE,
    GRAIN,
    CARAT,
    SHORT_TON,
]


def find(name):
    """The unit of mass of that name or symbol; nothing where there is none."""
    for unit in ALL:
        if name in unit.names():
            return unit
    return None


def largest_within(amount):
    """The largest unit of mass of which an amount of the base unit has at least one."""
    fitting = [unit for unit in ALL if unit.factor <= amount]
    return max(fitting, key=lambda unit: unit.factor, default=None)
