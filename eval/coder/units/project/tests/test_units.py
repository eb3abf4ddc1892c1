import unittest
from decimal import Decimal

from units import registry
from units.unit import UnitError, convert


class UnitsTest(unittest.TestCase):
    def test_a_mile_in_metres(self):
        mile, metre = registry.find("mile"), registry.find("metre")
        self.assertEqual(convert(1, mile, metre), Decimal("1609.344"))

    def test_kinds_do_not_mix(self):
        with self.assertRaises(UnitError):
            convert(1, registry.find("mile"), registry.find("hour"))

    def test_every_kind_has_its_base(self):
        for module in registry.MODULES:
            self.assertEqual(module.find(module.BASE).factor, 1)


if __name__ == "__main__":
    unittest.main()
