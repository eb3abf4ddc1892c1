//! Any text is a cassette, a script, a table of prices or the name of a model, or an error that
//! says why not.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lula_models::name::ModelName;
use lula_models::script::ModelScript;
use lula_models::spend::{ModelPrice, PriceTable};
use lula_models::transport::CassetteTransport;

fuzz_target!(|text: &str| {
    if let Ok(cassette) = CassetteTransport::parse(text) {
        assert!(cassette.left() <= text.lines().count());
    }
    let _ = ModelScript::parse(text);
    let ceiling = ModelPrice::ceiling(100.0).expect("a price");
    if let Ok(table) = PriceTable::built_in(ceiling).expect("built in").with(text) {
        let _ = table.of("openai/gpt-5");
    }
    if let Ok(name) = text.parse::<ModelName>() {
        assert_eq!(name.to_string().parse::<ModelName>(), Ok(name));
    }
});
