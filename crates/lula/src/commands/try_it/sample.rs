//! The bundled sample: a small Python project with a real mistake in it.

/// What it is, in a few words.
pub(super) const ABOUT: &str = "parcel, a small Python project that quotes shipping prices";

macro_rules! sample {
    ($($name:literal),* $(,)?) => {
        pub(super) const FILES: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../../samples/parcel/", $name)))),*];
    };
}

sample! {
    "README.md",
    "parcel/__init__.py",
    "parcel/quote.py",
    "parcel/rates.py",
    "tests/__init__.py",
    "tests/test_quote.py",
    "tests/test_rates.py",
}
