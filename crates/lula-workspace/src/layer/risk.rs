//! What deserves a second look before it is committed: files that make a program run, or decide
//! what a program may do, without a person starting it on purpose.
//!
//! A label never decides by itself. Only [`ChangeRisk::GitInternals`] is held back unless allowed, and
//! special things are never committed at all.

use serde::Serialize;

use crate::tree::node::{FileNode, FileNodeKind, SPECIAL_BITS};
use crate::tree::path::{WorkspacePath, unescape};

/// Why a change deserves a second look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeRisk {
    /// A program that git runs by itself.
    GitHook,
    /// Configuration of git, which can name programs.
    GitConfig,
    /// A file that says where a repository's git directory is.
    GitPointer,
    /// Anything else of a repository's own: history, index, references.
    GitInternals,
    /// A git directory in an unusual place, whose configuration git obeys when it is entered.
    EmbeddedRepository,
    /// Configuration that an editor obeys when the project is opened.
    EditorConfig,
    /// Instructions or permissions of coding agents.
    AgentConfig,
    /// What continuous integration runs, with its secrets.
    ContinuousIntegration,
    /// What a shell runs when it starts, or on entering the directory.
    ShellStartup,
    /// A build file that runs code when the project is opened, installed, built or tested.
    BuildCode,
    /// A set-user-id or set-group-id bit.
    SetId,
    /// Capabilities that the file system gives a program.
    Capabilities,
    /// A device, pipe or socket.
    Special,
    /// A link to an absolute path.
    AbsoluteLink,
    /// A link that leads out of the workspace.
    EscapingLink,
}

impl ChangeRisk {
    /// In a few words.
    pub const fn label(self) -> &'static str {
        match self {
            Self::GitHook => "git hook",
            Self::GitConfig => "git configuration",
            Self::GitPointer => "git pointer",
            Self::GitInternals => "inside .git",
            Self::EmbeddedRepository => "embedded git repository",
            Self::EditorConfig => "editor configuration",
            Self::AgentConfig => "agent configuration",
            Self::ContinuousIntegration => "continuous integration",
            Self::ShellStartup => "shell start-up",
            Self::BuildCode => "build code",
            Self::SetId => "set-id bit",
            Self::Capabilities => "file capabilities",
            Self::Special => "device, pipe or socket",
            Self::AbsoluteLink => "absolute link",
            Self::EscapingLink => "link out of the workspace",
        }
    }
}

/// The labels of a change, from its path and what it makes of it.
pub(crate) fn labels(path: &WorkspacePath, new: Option<&FileNode>) -> Vec<ChangeRisk> {
    let mut found = of_path(path);
    if let Some(node) = new {
        of_node(path, node, &mut found);
    }
    found.sort();
    found.dedup();
    found
}

/// The labels of a path by its name alone; none for what is no path inside a workspace.
pub fn risks_of(path: &str) -> Vec<ChangeRisk> {
    WorkspacePath::from_path(path.as_ref()).map_or_else(|_| Vec::new(), |path| labels(&path, None))
}

fn of_node(path: &WorkspacePath, node: &FileNode, found: &mut Vec<ChangeRisk>) {
    if node.kind.is_special() {
        found.push(ChangeRisk::Special);
    }
    // The sticky bit grants nothing.
    if node.kind == FileNodeKind::File && node.mode & SPECIAL_BITS & 0o6000 != 0 {
        found.push(ChangeRisk::SetId);
    }
    if node.capabilities {
        found.push(ChangeRisk::Capabilities);
    }
    if let Some(target) = node.target.as_deref().and_then(unescape) {
        if target.starts_with(b"/") {
            found.push(ChangeRisk::AbsoluteLink);
        } else if escapes(path, &target) {
            found.push(ChangeRisk::EscapingLink);
        }
    }
}

/// Whether a relative target climbs above the top at any point on its way.
fn escapes(path: &WorkspacePath, target: &[u8]) -> bool {
    let mut depth = path.parts().count() - 1;
    for part in target.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." if depth == 0 => return true,
            b".." => depth -= 1,
            _ => depth += 1,
        }
    }
    false
}

const EDITORS: &[&str] = &[
    ".vscode",
    ".idea",
    ".fleet",
    ".zed",
    ".nvim",
    ".vim",
    ".exrc",
    ".nvimrc",
    ".vimrc",
    ".nvim.lua",
    ".dir-locals.el",
    ".dir-locals-2.el",
    ".editorconfig",
    ".sublime-project",
    ".devcontainer",
    ".devcontainer.json",
    ".theia",
    ".project",
    ".classpath",
    ".settings",
];

const AGENTS: &[&str] = &[
    ".claude",
    "claude.md",
    "claude.local.md",
    "agents.md",
    "agent.md",
    "gemini.md",
    ".gemini",
    ".cursor",
    ".cursorrules",
    ".cursorignore",
    ".windsurf",
    ".windsurfrules",
    ".codex",
    ".aider",
    ".aider.conf.yml",
    ".continue",
    ".clinerules",
    ".roo",
    ".roomodes",
    ".goose",
    ".goosehints",
    ".opencode",
    "opencode.json",
    "mcp.json",
    ".mcp.json",
    ".lula",
    ".lula.toml",
    ".amazonq",
    "copilot-instructions.md",
    ".kiro",
    ".junie",
];

const INTEGRATION: &[&str] = &[
    ".gitlab-ci.yml",
    ".travis.yml",
    ".circleci",
    "jenkinsfile",
    "azure-pipelines.yml",
    "bitbucket-pipelines.yml",
    ".drone.yml",
    ".woodpecker",
    ".woodpecker.yml",
    ".buildkite",
    "appveyor.yml",
    ".appveyor.yml",
    ".cirrus.yml",
    ".teamcity",
    ".semaphore",
    "cloudbuild.yaml",
    "codemagic.yaml",
    "netlify.toml",
    "vercel.json",
    "renovate.json",
    ".pre-commit-config.yaml",
];

const SHELLS: &[&str] = &[
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".kshrc",
    ".cshrc",
    ".tcshrc",
    ".login",
    ".inputrc",
    ".envrc",
    ".direnv",
    ".mise.toml",
    "mise.toml",
    ".tool-versions",
    ".autoenv.zsh",
    ".in",
    ".out",
    ".xprofile",
    ".xinitrc",
    ".pam_environment",
    ".ssh",
    "config.fish",
    ".env",
];

const BUILD: &[&str] = &[
    "package.json",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".pnpmfile.cjs",
    "pnpm-workspace.yaml",
    "setup.py",
    "setup.cfg",
    "pyproject.toml",
    "conftest.py",
    "pytest.ini",
    "tox.ini",
    "noxfile.py",
    "sitecustomize.py",
    "usercustomize.py",
    "pip.conf",
    "build.rs",
    "cargo.toml",
    ".cargo",
    "rust-toolchain",
    "rust-toolchain.toml",
    "makefile",
    "gnumakefile",
    "justfile",
    "taskfile.yml",
    "rakefile",
    "gemfile",
    "extconf.rb",
    "cmakelists.txt",
    "meson.build",
    "configure",
    "configure.ac",
    "build.gradle",
    "build.gradle.kts",
    "settings.gradle",
    "settings.gradle.kts",
    "init.gradle",
    "gradlew",
    "gradle-wrapper.properties",
    "gradle-wrapper.jar",
    "pom.xml",
    ".mvn",
    "mvnw",
    "build.xml",
    "build.sbt",
    "mix.exs",
    "composer.json",
    "binding.gyp",
    "dockerfile",
    "containerfile",
    "docker-compose.yml",
    "docker-compose.yaml",
    "compose.yml",
    "compose.yaml",
    "vagrantfile",
    "flake.nix",
    "shell.nix",
    "default.nix",
    "build",
    "build.bazel",
    "workspace",
    "workspace.bazel",
    "module.bazel",
    ".bazelrc",
    "sconstruct",
    "sconscript",
    "wscript",
    "gruntfile.js",
    "gulpfile.js",
    "tiltfile",
    "directory.build.props",
    "directory.build.targets",
    "nuget.config",
    "global.json",
];

/// Endings of build files whose stem is free.
const BUILD_ENDINGS: &[&str] = &[
    ".pth",
    ".csproj",
    ".vcxproj",
    ".gemspec",
    ".podspec",
    ".mk",
    ".cmake",
    ".gradle",
    ".config.js",
    ".config.ts",
    ".config.mjs",
    ".config.cjs",
    ".gyp",
    ".code-workspace",
];

fn of_path(path: &WorkspacePath) -> Vec<ChangeRisk> {
    let parts: Vec<String> = path
        .parts()
        .map(|part| String::from_utf8_lossy(part).to_lowercase())
        .collect();
    let mut found = Vec::new();
    let Some(name) = parts.last() else {
        return found;
    };
    if let Some(at) = parts.iter().position(|part| is_git_directory(part)) {
        found.push(ChangeRisk::GitInternals);
        of_git(&parts[at + 1..], &mut found);
    }
    if matches!(
        name.as_str(),
        ".gitmodules" | ".gitattributes" | ".gitconfig"
    ) {
        found.push(ChangeRisk::GitConfig);
    }
    let any = |list: &[&str]| parts.iter().any(|part| list.contains(&part.as_str()));
    let named = |list: &[&str]| list.contains(&name.as_str());
    if any(EDITORS) || name.ends_with(".code-workspace") {
        found.push(ChangeRisk::EditorConfig);
    }
    if any(AGENTS) || name.starts_with("skill.md") {
        found.push(ChangeRisk::AgentConfig);
    }
    let github = parts
        .iter()
        .position(|part| matches!(part.as_str(), ".github" | ".gitea" | ".forgejo"));
    let acts = |part: Option<&String>| {
        part.is_some_and(|part| matches!(part.as_str(), "workflows" | "actions"))
    };
    if any(INTEGRATION)
        || github.is_some_and(|at| acts(parts.get(at + 1)))
        || matches!(name.as_str(), "action.yml" | "action.yaml")
    {
        found.push(ChangeRisk::ContinuousIntegration);
    }
    if any(SHELLS) {
        found.push(ChangeRisk::ShellStartup);
    }
    if named(BUILD)
        || any(&[".cargo", ".mvn", ".husky"])
        || BUILD_ENDINGS.iter().any(|ending| name.ends_with(ending))
    {
        found.push(ChangeRisk::BuildCode);
    }
    found
}

/// `.git` under any name that some file system takes for it.
fn is_git_directory(part: &str) -> bool {
    let plain: String = part
        .chars()
        // HFS+ ignores these characters in names.
        .filter(|c| !matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}'))
        .collect();
    // NTFS drops trailing dots and spaces, and has short names.
    let plain = plain.trim_end_matches(['.', ' ']);
    matches!(plain, ".git" | "git~1") || plain.starts_with(".git::")
}

fn of_git(inside: &[String], found: &mut Vec<ChangeRisk>) {
    if inside.is_empty() {
        found.push(ChangeRisk::GitPointer);
        return;
    }
    for part in inside {
        match part.as_str() {
            "hooks" => found.push(ChangeRisk::GitHook),
            "config" | "config.worktree" | "attributes" => found.push(ChangeRisk::GitConfig),
            "gitdir" | "commondir" | "alternates" | "http-alternates" => {
                found.push(ChangeRisk::GitPointer);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(path: &str) -> Vec<ChangeRisk> {
        labels(&path.parse().unwrap(), None)
    }

    fn link(path: &str, target: &str) -> Vec<ChangeRisk> {
        let node = FileNode {
            kind: FileNodeKind::Symlink,
            mode: 0o777,
            size: 0,
            digest: None,
            target: Some(target.to_owned()),
            binary: false,
            capabilities: false,
        };
        labels(&path.parse().unwrap(), Some(&node))
    }

    #[test]
    fn what_runs_by_itself_is_labelled() {
        for (path, risk) in [
            (".git/hooks/pre-commit", ChangeRisk::GitHook),
            (".GIT/config", ChangeRisk::GitConfig),
            ("lib/sub/.git", ChangeRisk::GitPointer),
            (".git/modules/sub/hooks/post-checkout", ChangeRisk::GitHook),
            (".git/worktrees/w/gitdir", ChangeRisk::GitPointer),
            (".git/objects/aa/bb", ChangeRisk::GitInternals),
            (".git./hooks/x", ChangeRisk::GitHook),
            (".gitmodules", ChangeRisk::GitConfig),
            (".vscode/tasks.json", ChangeRisk::EditorConfig),
            ("deep/.idea/workspace.xml", ChangeRisk::EditorConfig),
            (".claude/settings.json", ChangeRisk::AgentConfig),
            ("docs/AGENTS.md", ChangeRisk::AgentConfig),
            (".cursor/mcp.json", ChangeRisk::AgentConfig),
            (
                ".github/workflows/ci.yml",
                ChangeRisk::ContinuousIntegration,
            ),
            (".gitlab-ci.yml", ChangeRisk::ContinuousIntegration),
            (".bashrc", ChangeRisk::ShellStartup),
            ("sub/.envrc", ChangeRisk::ShellStartup),
            ("package.json", ChangeRisk::BuildCode),
            ("crates/x/build.rs", ChangeRisk::BuildCode),
            ("tests/conftest.py", ChangeRisk::BuildCode),
            ("Makefile", ChangeRisk::BuildCode),
            ("lib/evil.pth", ChangeRisk::BuildCode),
        ] {
            assert!(at(path).contains(&risk), "{path}: {:?}", at(path));
        }
    }

    #[test]
    fn ordinary_files_are_not() {
        for path in [
            "src/main.rs",
            "README.md",
            "gitty/config",
            "a/hooks/x.py",
            ".github/x.md",
        ] {
            assert_eq!(at(path), [], "{path}");
        }
    }

    #[test]
    fn links_that_leave_are_told_from_links_that_stay() {
        assert_eq!(link("a/b", "../c"), []);
        assert_eq!(link("a/b", "../../c"), [ChangeRisk::EscapingLink]);
        assert_eq!(link("b", "x/../../b"), [ChangeRisk::EscapingLink]);
        assert_eq!(link("b", "/etc/passwd"), [ChangeRisk::AbsoluteLink]);
    }
}
