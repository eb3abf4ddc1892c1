//! Any text is a cassette, a script, a table of prices or the name of a model, or an error that
//! says why not.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lula_models::name::ModelName;
use lula_models::script::Script;
use lula_models::spend::{Price, PriceTable};
use lula_models::transport::Cassette;

fuzz_target!(|text: &str| {
    if let Ok(cassette) = Cassette::parse(text) {
        assert!(cassette.left() <= text.lines().count());
    }
    let _ = Script::parse(text);
    let ceiling = Price::ceiling(100.0).expect("a price");
    if let Ok(table) = PriceTable::built_in(ceiling).expect("built in").with(text) {
        let _ = table.of("openai/gpt-5");
    }
    if let Ok(name) = text.parse::<ModelName>() {
        assert_eq!(name.to_string().parse::<ModelName>(), Ok(name));
    }
});
