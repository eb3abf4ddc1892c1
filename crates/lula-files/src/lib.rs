//! The one way to files that are not trusted, and to files that no other user may read.
//!
//! [`beneath`] opens a path below a directory that is already open, and no link or mount point leads
//! out of it; [`ConfinedDirectory`] does the same for links that stay inside, also where the kernel
//! offers no `openat2`. [`read_regular`] reads a file that may be anything, within a limit.
//! [`read_private`] and its kin keep keys: mode 0600, checked on the file that is open.
//!
//! This crate must never decide what a file means, and never open one by a path that it checked
//! before: what is checked is the open handle. It knows no other crate of Lula.
#![forbid(unsafe_code)]

mod beneath;
mod confined;
mod name_by_name;
mod private;
mod regular;
mod steps;

pub use beneath::{beneath, read_beneath};
pub use confined::{ConfinedDirectory, LinkPolicy};
pub use private::{
    PrivateFileError, create_private, private_or_new, read_private, replace_private,
};
pub use regular::{FinalLink, RegularFileError, read_regular, read_regular_text};
