//! Every crate takes the workspace's lints: a crate that forgets them is checked by none.

use std::fs;

use anyhow::{Context, Result};
use toml_edit::{DocumentMut, Item};

use super::Violation;
use crate::repository::Metadata;

pub(crate) fn check(metadata: &Metadata) -> Result<Vec<Violation>> {
    let mut violations = Vec::new();
    for package in &metadata.packages {
        let manifest = fs::read_to_string(&package.manifest_path)
            .with_context(|| format!("cannot read the manifest of {}", package.name))?;
        violations.extend(complaint(&package.name, &manifest)?);
    }
    Ok(violations)
}

fn complaint(name: &str, manifest: &str) -> Result<Option<Violation>> {
    let manifest: DocumentMut = manifest
        .parse()
        .with_context(|| format!("cannot read the manifest of {name}"))?;
    let inherits = manifest
        .get("lints")
        .and_then(|lints| lints.get("workspace"))
        .and_then(Item::as_bool)
        .unwrap_or(false);
    Ok((!inherits).then(|| {
        Violation(format!(
            "{name} does not take the workspace's lints: add `[lints] workspace = true`"
        ))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lints_are_taken_from_the_workspace_or_not_at_all() {
        let said = |manifest| {
            complaint("lula-store", manifest)
                .unwrap()
                .map(|it| it.to_string())
        };
        assert_eq!(said("[lints]\nworkspace = true\n"), None);
        assert_eq!(said("lints.workspace = true\n"), None);
        for without in [
            "",
            "[lints]\nworkspace = false\n",
            "[lints.rust]\nunsafe_code = \"warn\"\n",
        ] {
            assert!(
                said(without).unwrap().contains("lula-store does not take"),
                "{without}"
            );
        }
    }
}
