//! The programs of the machine that environments can be made with, as data.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::version::VersionNumber;

/// A program with its version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramVersion {
    /// Where it lies, as a command names it.
    pub program: String,
    pub version: VersionNumber,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineTools {
    /// Python interpreters, the one that `python3` means first.
    pub pythons: Vec<ProgramVersion>,
    /// Other programs by name, each with its version where that matters.
    pub programs: BTreeMap<String, Option<VersionNumber>>,
}

impl MachineTools {
    /// Whether a program is there.
    pub fn has(&self, program: &str) -> bool {
        self.programs.contains_key(program)
    }

    /// The version of a program that is there.
    pub fn version(&self, program: &str) -> Option<&VersionNumber> {
        self.programs.get(program)?.as_ref()
    }
}
