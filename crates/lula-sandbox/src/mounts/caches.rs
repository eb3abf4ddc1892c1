//! Package caches of the host, at their own paths: what the tools wrote down elsewhere (fingerprints,
//! lock files, links of a `node_modules`) names them there.
//!
//! Each is read-only below a private layer. Where a tool keeps its cache beside configuration and
//! credentials, the directory around them is a private one that shows what is named here and no more.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::toolchains::{HomeBounds, HostToolchains};
use super::{HOME, MountPlan, MountedWorkspace, host, is_below, is_private, text};
use crate::blueprint::{BindMount, PlacedPath};
use crate::error::SandboxError;
use crate::frames::UnavailableProtection;
use crate::policy::PackageCache;
use host::HostPathKind;

/// A longer configuration is not looked at, and so not shown.
const MOST: u64 = 64 * 1024;

/// A package cache as a sandbox is going to have it.
#[derive(Debug, Clone, Default)]
pub(super) struct CacheMount {
    /// What tells the tool where it is.
    variable: Option<(&'static str, String)>,
    /// A directory of the sandbox's own around it.
    private: Option<String>,
    /// Directories of the host below a private layer.
    overlays: Vec<BindMount>,
    /// Read-only as they are.
    shown: Vec<BindMount>,
    /// Its name, where that is not its real path.
    link: Option<(String, String)>,
    held_back: Vec<UnavailableProtection>,
}

/// What of a tool's home is shown.
struct ToolHome {
    variable: &'static str,
    overlays: &'static [&'static str],
    programs: Option<&'static str>,
    configuration: &'static [&'static str],
}

const CARGO: ToolHome = ToolHome {
    variable: "CARGO_HOME",
    overlays: &["registry", "git"],
    programs: Some("bin"),
    configuration: &["config.toml", "config"],
};

const GRADLE: ToolHome = ToolHome {
    variable: "GRADLE_USER_HOME",
    overlays: &["caches", "wrapper", "jdks"],
    programs: None,
    configuration: &[],
};

/// Looks where package caches are.
pub(super) fn look(
    wanted: &BTreeSet<PackageCache>,
    tools: &HostToolchains,
) -> Result<Vec<CacheMount>, SandboxError> {
    let Some(home) = tools.home().filter(|_| !wanted.is_empty()) else {
        return Ok(Vec::new());
    };
    let bounds = HomeBounds::around(Some(home));
    let mut found = Vec::new();
    for cache in wanted {
        found.extend(look_at(*cache, tools, home, &bounds)?);
    }
    Ok(found)
}

/// Looks where one is, or the several that a tool has.
fn look_at(
    cache: PackageCache,
    tools: &HostToolchains,
    home: &Path,
    bounds: &HomeBounds,
) -> Result<Vec<CacheMount>, SandboxError> {
    let in_home = |place: &str| home.join(place);
    let of = |variable: &str, place: &dyn Fn() -> PathBuf| {
        tools.cache(variable).map_or_else(place, Path::to_owned)
    };
    let cached = |place: &str| of("XDG_CACHE_HOME", &|| in_home(".cache")).join(place);
    let plain = |variable: &'static str, place: PathBuf| CacheMount::at(variable, &place, bounds);
    let found = match cache {
        PackageCache::Cargo => {
            vec![CacheMount::of_tool(
                &CARGO,
                &of(CARGO.variable, &|| in_home(".cargo")),
                bounds,
            )?]
        }
        PackageCache::Gradle => {
            let place = of(GRADLE.variable, &|| in_home(".gradle"));
            vec![CacheMount::of_tool(&GRADLE, &place, bounds)?]
        }
        PackageCache::Pip => vec![plain(
            "PIP_CACHE_DIR",
            of("PIP_CACHE_DIR", &|| cached("pip")),
        )?],
        PackageCache::Uv => vec![plain("UV_CACHE_DIR", of("UV_CACHE_DIR", &|| cached("uv")))?],
        PackageCache::Npm => {
            let place = of("npm_config_cache", &|| in_home(".npm"));
            vec![plain("npm_config_cache", place)?]
        }
        PackageCache::Pnpm => {
            let data = of("XDG_DATA_HOME", &|| in_home(".local/share"));
            let place = of("npm_config_store_dir", &|| data.join("pnpm/store"));
            vec![plain("npm_config_store_dir", place)?]
        }
        PackageCache::Yarn => {
            let first = of("YARN_CACHE_FOLDER", &|| cached("yarn"));
            let second = of("YARN_GLOBAL_FOLDER", &|| in_home(".yarn/berry"));
            // The variable would move the cache that a project of a later yarn keeps in its repository.
            let first = CacheMount::inside(".cache/yarn", &first, bounds)?;
            vec![first, plain("YARN_GLOBAL_FOLDER", second)?]
        }
        PackageCache::Go => {
            let modules = of("GOMODCACHE", &|| {
                of("GOPATH", &|| in_home("go")).join("pkg/mod")
            });
            let builds = of("GOCACHE", &|| cached("go-build"));
            vec![plain("GOMODCACHE", modules)?, plain("GOCACHE", builds)?]
        }
        // Java asks the system for its user's home, not a variable.
        PackageCache::Maven => {
            vec![CacheMount::inside(
                ".m2/repository",
                &in_home(".m2/repository"),
                bounds,
            )?]
        }
    };
    Ok(found.into_iter().flatten().collect())
}

impl CacheMount {
    /// One directory, at its own path.
    fn at(
        variable: &'static str,
        place: &Path,
        bounds: &HomeBounds,
    ) -> Result<Option<Self>, SandboxError> {
        let Some((named, real)) = resolved(place, bounds)? else {
            return Ok(None);
        };
        let link = link(&named, &real);
        Ok(Some(Self {
            variable: Some((variable, link.as_ref().map_or(&real, |_| &named).clone())),
            overlays: vec![directory(&real, &real)],
            link,
            ..Self::default()
        }))
    }

    /// One directory, where the tool looks for it in the sandbox's own home.
    fn inside(seen: &str, place: &Path, bounds: &HomeBounds) -> Result<Option<Self>, SandboxError> {
        let found = resolved(place, bounds)?;
        Ok(found.map(|(_, real)| Self {
            overlays: vec![directory(&real, &format!("{HOME}/{seen}"))],
            ..Self::default()
        }))
    }

    /// A tool's home: a private directory around what is shown of it.
    fn of_tool(
        tool: &ToolHome,
        place: &Path,
        bounds: &HomeBounds,
    ) -> Result<Option<Self>, SandboxError> {
        let Ok(real) = place.canonicalize() else {
            return Ok(None);
        };
        if !real.is_dir() || !bounds.is_narrow(place) || !bounds.is_narrow(&real) {
            return Ok(None);
        }
        let (named, home) = (text(place)?, text(&real)?);
        let link = link(&named, &home);
        let mut found = Self {
            variable: Some((
                tool.variable,
                link.as_ref().map_or(&home, |_| &named).clone(),
            )),
            link,
            ..Self::default()
        };
        for name in tool.overlays {
            if let Some((_, source)) = resolved(&real.join(name), bounds)? {
                let bind = directory(&source, &format!("{home}/{name}"));
                found.overlays.push(bind);
            }
        }
        if let Some(name) = tool.programs
            && let Some((_, source)) = resolved(&real.join(name), bounds)?
        {
            found
                .shown
                .push(directory(&source, &format!("{home}/{name}")));
        }
        for name in tool.configuration {
            found.configuration(&real.join(name), format!("{home}/{name}"))?;
        }
        found.private = Some(home);
        Ok(Some(found))
    }

    /// Shows a file of settings, unless it may hold a credential.
    fn configuration(&mut self, file: &Path, target: String) -> Result<(), SandboxError> {
        // Only a file that lies there itself: a link could lead to anything.
        if !matches!(host::look(file)?, HostPathKind::File(_)) {
            return Ok(());
        }
        let mut text = String::new();
        let read =
            fs::File::open(file).and_then(|file| file.take(MOST + 1).read_to_string(&mut text));
        let reason = match read {
            Err(error) => format!("it cannot be read: {error}"),
            Ok(length) if length as u64 > MOST => "it is too long to be looked at".to_owned(),
            Ok(_) if holds_a_secret(&text) => {
                "it holds what may be a token, a password or a URL with one".to_owned()
            }
            Ok(_) => {
                self.shown.push(BindMount {
                    source: target.clone(),
                    target,
                    file: true,
                });
                return Ok(());
            }
        };
        self.held_back.push(UnavailableProtection {
            asked: format!("read {target}"),
            reason,
        });
        Ok(())
    }

    /// Directories of the host that it is made of.
    pub(super) fn sources(&self) -> impl Iterator<Item = &str> {
        self.overlays.iter().map(|bind| &*bind.source)
    }
}

fn directory(source: &str, target: &str) -> BindMount {
    BindMount {
        source: source.to_owned(),
        target: target.to_owned(),
        file: false,
    }
}

/// A directory by its name and its real path, where there is one that may be shown.
fn resolved(place: &Path, bounds: &HomeBounds) -> Result<Option<(String, String)>, SandboxError> {
    if !bounds.allow(place) {
        return Ok(None);
    }
    match place.canonicalize() {
        Ok(real) => Ok(Some((text(place)?, text(&real)?))),
        Err(_) => Ok(None),
    }
}

/// A link is needed where a name is not the real path, and possible where nothing private is.
fn link(named: &str, real: &str) -> Option<(String, String)> {
    (named != real && !is_private(named)).then(|| (named.to_owned(), real.to_owned()))
}

/// Whether settings hold something that looks like a credential. It may say so too often: they are
/// then left out, and the receipt says that.
fn holds_a_secret(text: &str) -> bool {
    let text = text.to_lowercase();
    let named = ["token", "secret", "password", "passwd", "credential"];
    let userinfo = |rest: &str| {
        let authority = rest.split(['/', '"', '\'', ' ', '\n', '?', '#']).next();
        authority.is_some_and(|authority| authority.contains('@'))
    };
    named.iter().any(|word| text.contains(word)) || text.split("://").skip(1).any(userinfo)
}

impl MountPlan {
    /// Puts a package cache into the plan, as far as the workspace is not in its way.
    pub(super) fn add_cache(
        &mut self,
        cache: CacheMount,
        workspace: &MountedWorkspace<'_>,
    ) -> Result<(), SandboxError> {
        let workspace = text(workspace.path)?;
        self.environment
            .extend(cache.variable.map(|(name, value)| (name.to_owned(), value)));
        self.held_back.extend(cache.held_back);
        // What lies in the workspace is seen with it.
        let apart = |path: &str| !is_below(path, &workspace);
        if let Some(private) = cache.private.filter(|private| apart(private)) {
            // What the template shows in there would be behind the private directory.
            let inside = |target: &str| is_below(target, &private);
            self.root.links.retain(|(link, _)| !inside(link));
            let (behind, binds) = std::mem::take(&mut self.root.binds)
                .into_iter()
                .partition(|bind| inside(&bind.target));
            self.root.binds = binds;
            let behind: Vec<BindMount> = behind;
            for bind in behind.into_iter().chain(cache.shown) {
                self.place_at(bind, false)?;
            }
            self.private.push(private);
        }
        for bind in cache.overlays {
            if apart(&bind.target) && !is_below(&workspace, &bind.target) {
                self.caches.push(bind);
            }
        }
        if let Some((named, real)) = cache.link
            && apart(&real)
            && !self.is_shown(&named)
        {
            self.root.links.push((named, real));
        }
        Ok(())
    }

    /// Shows tools and caches of a project's environment: below a private layer, or as they are while
    /// they are made.
    pub(super) fn add_environment(
        &mut self,
        source: &str,
        writable: bool,
    ) -> Result<(), SandboxError> {
        let bind = directory(source, super::environment::PLACE);
        if writable {
            self.place_at(bind, true)?;
        } else {
            self.caches.push(bind);
        }
        Ok(())
    }

    /// Places something of the host somewhere else than at its own path.
    fn place_at(&mut self, bind: BindMount, writable: bool) -> Result<(), SandboxError> {
        let known = |placed: &PlacedPath| placed.bind.target == bind.target;
        let found = match host::look(Path::new(&bind.source))? {
            HostPathKind::Directory(found) if !bind.file => found,
            HostPathKind::File(found) if bind.file => found,
            // It went away since it was looked for.
            _ => return Ok(()),
        };
        if !self.placed.iter().any(known) {
            self.placed.push(PlacedPath {
                bind,
                writable,
                device: found.device,
                inode: found.inode,
                owner: found.owner,
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_with_credentials_are_told_from_those_without() {
        for harmless in [
            "[build]\ntarget-dir = \"/x\"\n",
            "[source.mirror]\nregistry = \"https://mirror.example.org/@scope/index\"\n",
            "# mail me@example.org",
        ] {
            assert!(!holds_a_secret(harmless), "{harmless}");
        }
        for telling in [
            "[registry]\nToken = \"abc\"",
            "[http]\nproxy = \"http://me:pass@proxy:80\"",
            "index = \"sparse+https://me@example.org/i\"",
            "PASSWORD=1",
        ] {
            assert!(holds_a_secret(telling), "{telling}");
        }
    }
}
