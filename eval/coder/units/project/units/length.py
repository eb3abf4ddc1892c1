"""Units of length. The base unit is the metre."""

from units.unit import Unit

KIND = "length"
BASE = "metre"

# One millimetre is 0.001 of the base unit.
MILLIMETRE = Unit(
    KIND,
    name="millimetre",
    symbol="mm",
    factor="0.001",
)

# One centimetre is 0.01 of the base unit.
CENTIMETRE = Unit(
    KIND,
    name="centimetre",
    symbol="cm",
    factor="0.01",
)

# One decimetre is 0.1 of the base unit.
DECIMETRE = Unit(
    KIND,
    name="decimetre",
    symbol="dm",
    factor="0.1",
)

# One metre is 1 of the base unit.
METRE = Unit(
    KIND,
    name="metre",
    symbol="m",
    factor="1",
)

# One kilometre is 1000 of the base unit.
KILOMETRE = Unit(
    KIND,
    name="kilometre",
    symbol="km",
    factor="1000",
)

# One inch is 0.0254 of the base unit.
INCH = Unit(
    KIND,
    name="inch",
    symbol="in",
    factor="0.0254",
)

# One foot is 0.3048 of the base unit.
FOOT = Unit(
    KIND,
    name="foot",
    symbol="ft",
    factor="0.3048",
)

# One yard is 0.9144 of the base unit.
YARD = Unit(
    KIND,
    name="yard",
    symbol="yd",
    factor="0.9144",
)

# One mile is 1609.344 of the base unit.
MILE = Unit(
    KIND,
    name="mile",
    symbol="mi",
    factor="1609.344",
)

# One nautical mile is 1852 of the base unit.
NAUTICAL_MILE = Unit(
    KIND,
    name="nautical mile",
    symbol="nmi",
    factor="1852",
)

# One fathom is 1.8288 of the base unit.
FATHOM = Unit(
    KIND,
    name="fathom",
    symbol="ftm",
    factor="1.8288",
)

# One furlong is 201.168 of the base unit.
FURLONG = Unit(
    KIND,
    name="furlong",
    symbol="fur",
    factor="201.168",
)

ALL = [
    MILLIMETRE,
    CENTIMETRE,
    DECIMETRE,
    METRE,
    KILOMETRE,
    INCH,
    FOOT,
    YARD,
    MILE,
    NAUTICAL_MILE,
    FATHOM,
    FURLONG,
]


def find(name):
    """The unit of length of that name or symbol; nothing where there is none."""
    for unit in ALL:
        if name in unit.names():
            return unit
    return None


def largest_within(amount):
    """The largest unit of length of which an amount of the base unit has at least one."""
    fitting = [unit for unit in ALL if unit.factor <= amount]
    return max(fitting, key=lambda unit: unit.factor, default=None)
