//! Following links step by step: each place on the way has to be there inside, too.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

/// More steps are a circle.
const MOST: usize = 8;

/// Most links of a directory that are looked at.
const MOST_LINKS: usize = 64;

/// Every place a link leads to, the last one also by its real path. Empty where it is no link.
pub(super) fn followed(link: &Path) -> Vec<PathBuf> {
    let mut places = Vec::new();
    let mut at = link.to_owned();
    while places.len() < MOST {
        let Ok(to) = fs::read_link(&at) else { break };
        let from = at.parent().unwrap_or(Path::new("/"));
        at = plain(&from.join(to));
        places.push(at.clone());
    }
    // In the system's directories every place is shown anyway.
    if !places.is_empty()
        && !super::is_system_path(&at)
        && let Ok(real) = at.canonicalize()
        && real != at
    {
        places.push(real);
    }
    places
}

/// Takes `.` and `..` out, as text.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

/// The programs of a directory, each with whether it is a link that leads out of it. Of more links than
/// a person has there, not all are looked at.
pub(super) fn listed(directory: &Path) -> Vec<(String, bool)> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut looked_at = 0;
    let programs = entries.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let mut leads_out = false;
        if looked_at < MOST_LINKS && entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
            looked_at += 1;
            leads_out = fs::read_link(entry.path()).is_ok_and(|to| to.components().count() > 1);
        }
        Some((name, leads_out))
    });
    programs.collect()
}

/// Those of the programs named that are in a directory, in the same way.
pub(super) fn named(directory: &Path, names: &[&str]) -> Vec<(String, bool)> {
    let there = names.iter().filter_map(|name| {
        let leads_out = match fs::read_link(directory.join(name)) {
            Ok(to) => to.components().count() > 1,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(_) => false,
        };
        Some(((*name).to_owned(), leads_out))
    });
    there.collect()
}
