//! What is built in haste is not what ships: a package that `release` leaves unoptimised is named again by
//! `dist`, which would take that over with everything else that it inherits.

use std::fs;

use anyhow::{Context, Result};
use toml_edit::{DocumentMut, Item};

use super::Violation;
use crate::repository::Repository;

const MANIFEST: &str = "Cargo.toml";

pub(crate) fn check(repository: &Repository) -> Result<Vec<Violation>> {
    let path = repository.root().join(MANIFEST);
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {MANIFEST}"))?;
    complaints(&text)
}

fn complaints(manifest: &str) -> Result<Vec<Violation>> {
    let manifest: DocumentMut = manifest
        .parse()
        .with_context(|| format!("cannot read {MANIFEST}"))?;
    let profile = &manifest["profile"];
    let shipped = level(&profile["dist"]);
    let packages = profile["release"].get("package").and_then(Item::as_table);
    let names = packages
        .into_iter()
        .flat_map(|table| table.iter().map(|(name, _)| name));
    Ok(names
        .filter(|name| {
            let again = profile["dist"].get("package").and_then(|all| all.get(name));
            again.and_then(level) != shipped
        })
        .map(|name| {
            Violation(format!(
                "{MANIFEST}: what ships would have {name} as `release` builds it: name it in \
                 [profile.dist.package] with the level of [profile.dist]"
            ))
        })
        .collect())
}

fn level(profile: &Item) -> Option<i64> {
    profile.get("opt-level")?.as_integer()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_that_ships_as_it_is_built_in_haste_is_told() {
        let manifest = |ships: &str| {
            format!(
                "[profile.release.package]\nslow.opt-level = 0\nquick.opt-level = 0\n\
                 [profile.dist]\nopt-level = 3\n[profile.dist.package]\nquick.opt-level = 3\n{ships}"
            )
        };
        assert!(
            complaints(&manifest("slow.opt-level = 3\n"))
                .unwrap()
                .is_empty()
        );
        for ships in ["", "slow.opt-level = 1\n"] {
            let told = complaints(&manifest(ships)).unwrap();
            assert!(
                told.len() == 1 && told[0].to_string().contains("have slow as"),
                "{told:?}"
            );
        }
    }
}
