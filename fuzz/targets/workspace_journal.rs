//! Records and journals of workspaces: recovery acts on what they say, so nothing but what was
//! written may be read back, and no path in them may lead out.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = lula_workspace::reads_as_journal(bytes);
    let _ = lula_workspace::reads_as_record(bytes);
});
