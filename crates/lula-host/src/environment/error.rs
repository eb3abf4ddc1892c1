//! Why an environment is not built.

/// Why a recipe is not carried out.
#[derive(Debug, thiserror::Error)]
pub enum BuildRefusal {
    /// Nothing was found that could be set up.
    #[error("nothing was found here that could be set up")]
    NothingToSetUp,
    /// A program is missing without which there are no steps.
    #[error("{what}")]
    Missing { what: String, remedy: String },
    /// A repository's recipe names what it must not.
    #[error("{file} asks for the network group {group:?}, which is none of this machine's")]
    StrangeGroup { file: String, group: String },
    /// A rule forbids a command.
    #[error("the rule {rule} forbids `{line}`")]
    Forbidden { rule: String, line: String },
    /// A rule wants a person to agree.
    #[error("the rule {rule} asks about `{line}`")]
    Asked { rule: String, line: String },
    /// A recipe is not one.
    #[error("{file} is no recipe: {why}")]
    Recipe { file: String, why: String },
}

impl BuildRefusal {
    pub(crate) fn remedy(&self) -> String {
        match self {
            Self::NothingToSetUp => "write the steps with `lula env edit`".to_owned(),
            Self::Missing { remedy, .. } => remedy.clone(),
            Self::StrangeGroup { .. } => {
                "a recipe in a repository names groups of `lula net groups`; your own may name hosts: \
                 copy it with `lula env edit`"
                    .to_owned()
            }
            Self::Forbidden { .. } => "change the recipe with `lula env edit`, or the rule".to_owned(),
            Self::Asked { .. } => {
                "look at the recipe with `lula env show`, then agree with --yes".to_owned()
            }
            Self::Recipe { .. } => "`lula env show` prints the recipe that was found out".to_owned(),
        }
    }
}
