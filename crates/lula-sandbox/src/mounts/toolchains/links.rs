//! Following links step by step: each place on the way has to be there inside, too.

use std::fs;
use std::path::{Component, Path, PathBuf};

/// More steps are a circle.
const MOST: usize = 8;

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
    if !places.is_empty()
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
