//! Version managers, variables and programs by which toolchains are known.

/// A version manager: where it lives in a home, the variable that says so, and which directory of
/// the search path shows that it is used.
pub(super) struct VersionManager {
    pub(super) place: &'static str,
    pub(super) variable: Option<&'static str>,
    pub(super) shown_by: &'static str,
}

const fn manager(
    place: &'static str,
    variable: Option<&'static str>,
    shown_by: &'static str,
) -> VersionManager {
    VersionManager {
        place,
        variable,
        shown_by,
    }
}

pub(super) const MANAGERS: [VersionManager; 9] = [
    manager(".rustup", Some("RUSTUP_HOME"), ".cargo/bin"),
    manager(".pyenv", Some("PYENV_ROOT"), ".pyenv"),
    manager(".nvm/versions", None, ".nvm"),
    manager(".volta", Some("VOLTA_HOME"), ".volta"),
    manager(".asdf", Some("ASDF_DATA_DIR"), ".asdf"),
    manager(".sdkman/candidates", None, ".sdkman"),
    manager(".rbenv", Some("RBENV_ROOT"), ".rbenv"),
    manager(".rvm", Some("rvm_path"), ".rvm"),
    manager(
        ".local/share/mise",
        Some("MISE_DATA_DIR"),
        ".local/share/mise",
    ),
];

/// Variables that name the directory of a toolchain. It is shown, and the variable passed on.
pub(super) const DIRECTORIES: [&str; 26] = [
    "ANDROID_HOME",
    "ANDROID_SDK_ROOT",
    "ASDF_DATA_DIR",
    "BUN_INSTALL",
    "CONDA_PREFIX",
    "DENO_INSTALL",
    "DOTNET_ROOT",
    "FLUTTER_ROOT",
    "GEM_HOME",
    "GOROOT",
    "GRADLE_HOME",
    "GRAALVM_HOME",
    "JAVA_HOME",
    "JDK_HOME",
    "KOTLIN_HOME",
    "M2_HOME",
    "MAVEN_HOME",
    "MISE_DATA_DIR",
    "NVM_BIN",
    "NVM_INC",
    "PNPM_HOME",
    "PYENV_ROOT",
    "RBENV_ROOT",
    "RUSTUP_HOME",
    "SCALA_HOME",
    "VOLTA_HOME",
];

/// Variables that choose one of several installed toolchains by its name.
pub(super) const CHOICES: [&str; 5] = [
    "CONDA_DEFAULT_ENV",
    "GOTOOLCHAIN",
    "PYENV_VERSION",
    "RBENV_VERSION",
    "RUSTUP_TOOLCHAIN",
];

/// Variables that say where a package cache is.
pub(super) const CACHES: [&str; 13] = [
    "CARGO_HOME",
    "GOCACHE",
    "GOMODCACHE",
    "GOPATH",
    "GRADLE_USER_HOME",
    "PIP_CACHE_DIR",
    "UV_CACHE_DIR",
    "XDG_CACHE_HOME",
    "XDG_DATA_HOME",
    "YARN_CACHE_FOLDER",
    "YARN_GLOBAL_FOLDER",
    "npm_config_cache",
    "npm_config_store_dir",
];

/// Programs that are looked for behind the links of the search path.
pub(super) const PROGRAMS: [&str; 14] = [
    "python3", "python", "node", "npm", "pnpm", "yarn", "go", "java", "ruby", "php", "cargo",
    "deno", "bun", "dotnet",
];
