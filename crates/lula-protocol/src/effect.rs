//! Classes of effects: what may be done again when it is not known whether it was done.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What an effect does to the world, which decides what happens after a crash in the middle of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum EffectClass {
    /// Looks and changes nothing. Done again.
    Read,
    /// Asks a model. Done again once; what the lost call may have cost stays charged.
    Model,
    /// Changes a workspace. The workspace is restored to what it was, then done again.
    Tree,
    /// Moves a reference from one known value to another. Checked, and done again if it was not.
    Cas,
    /// Changes something outside. Never done again without evidence or a person's word.
    External,
}

impl EffectClass {
    pub const ALL: [Self; 5] = [
        Self::Read,
        Self::Model,
        Self::Tree,
        Self::Cas,
        Self::External,
    ];

    /// The name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Model => "model",
            Self::Tree => "tree",
            Self::Cas => "cas",
            Self::External => "external",
        }
    }

    /// The class of a wire name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.name() == name)
    }
}

impl fmt::Display for EffectClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_has_one_name_in_code_and_on_the_wire() {
        for class in EffectClass::ALL {
            assert_eq!(serde_json::to_value(class).unwrap(), class.name());
            assert_eq!(EffectClass::from_name(class.name()), Some(class));
        }
    }
}
