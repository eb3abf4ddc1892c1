"""Units of speed. The base unit is the metre per second."""

from units.unit import Unit

KIND = "speed"
BASE = "metre per second"

# One metre per second is 1 of the base unit.
METRE_PER_SECOND = Unit(
    KIND,
    name="metre per second",
    symbol="mps",
    factor="1",
)

# One kilometre per hour is 0.277777777778 of the base unit.
KILOMETRE_PER_HOUR = Unit(
    KIND,
    name="kilometre per hour",
    symbol="kmh",
    factor="0.277777777778",
)

# One mile per hour is 0.44704 of the base unit.
MILE_PER_HOUR = Unit(
    KIND,
    name="mile per hour",
    symbol="mph",
    factor="0.44704",
)

# One knot is 0.514444444444 of the base unit.
KNOT = Unit(
    KIND,
    name="knot",
    symbol="kn",
    factor="0.514444444444",
)

# One foot per second is 0.3048 of the base unit.
FOOT_PER_SECOND = Unit(
    KIND,
    name="foot per second",
    symbol="fps",
    factor="0.3048",
)

ALL = [
    METRE_PER_SECOND,
    KILOMETRE_PER_HOUR,
    MILE_PER_HOUR,
    KNOT,
    FOOT_PER_SECOND,
]


def find(name):
    """The unit of speed of that name or symbol; nothing where there is none."""
    for unit in ALL:
        if name in unit.names():
            return unit
    return None


def largest_within(amount):
    """The largest unit of speed of which an amount of the base unit has at least one."""
    fitting = [unit for unit in ALL if unit.factor <= amount]
    return max(fitting, key=lambda unit: unit.factor, default=None)
