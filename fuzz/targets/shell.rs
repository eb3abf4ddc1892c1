//! Any text is read; saying it twice is judged no more loosely.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lula_gate::shell::ShellReading;

fuzz_target!(|text: &str| {
    let once = ShellReading::of_shell(text);
    let argv = ["sh", "-c", text].map(str::to_owned);
    let wrapped = ShellReading::of_argv(&argv, &[], None);
    assert!(wrapped.commands.len() > once.commands.len() || !wrapped.doubts.is_empty());
});
