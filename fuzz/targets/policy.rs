//! Any text is a policy or a list of mistakes; a policy reads back from its own TOML.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lula_sandbox::policy::SandboxPolicy;

fuzz_target!(|text: &str| {
    match SandboxPolicy::from_toml(text) {
        Ok(policy) => assert_eq!(SandboxPolicy::from_toml(&policy.to_toml()), Ok(policy)),
        Err(error) => assert!(!error.mistakes.is_empty()),
    }
});
