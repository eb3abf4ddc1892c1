//! An environment that was built for a project: dependencies and builds in layers of their own.
//!
//! What belongs into the project's directory is seen there by two layers of the workspace's overlay: one over
//! the project's own files, for whole directories that were installed, and one below them, for single files
//! that were generated, so that a file of the project is never hidden. What lies elsewhere (package caches,
//! tools) is one directory at the same place in every sandbox, below a private layer. None of them is ever
//! written, except while the environment is being built.

use std::collections::BTreeMap;
use std::path::PathBuf;

use lula_protocol::Digest;

/// Where the directory of tools and caches is seen.
pub(super) const PLACE: &str = "/home/user/.environment";

/// What a sandbox shows of an environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectEnvironment {
    /// Everything it was made of, as one digest; none while it is made.
    pub digest: Option<Digest>,
    /// Directories that are seen in the workspace, whatever the project has there.
    pub above: Option<PathBuf>,
    /// Files that are seen where the project has none.
    pub below: Option<PathBuf>,
    /// What the two bring into the workspace, from its top.
    pub brings: Vec<String>,
    /// Tools and package caches.
    pub home: Option<PathBuf>,
    /// Whether what is written to tools and caches stays: only while it is made.
    pub being_made: bool,
    /// Directories before all others on the search path, as they are seen inside.
    pub path: Vec<String>,
    /// Variables of every command, over those of the machine's toolchains.
    pub variables: BTreeMap<String, String>,
}
