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

/// Variables that change what a compiler makes of the same sources. Build tools write their values down with
/// what they built: without them everything is built anew, and something else is tested than what the
/// developer builds. None of them holds a secret. What is left out, and why:
///
/// - `RUSTC_WRAPPER` and its like name a program that asks a server outside, which no sandbox reaches.
/// - `CARGO_TARGET_DIR` and `GOTMPDIR` name directories that are not seen.
/// - `CARGO_REGISTRIES_*`, `GOPROXY`, `GOAUTH`, `npm_config_*` may hold credentials.
/// - `NODE_OPTIONS`, `PYTHONPATH`, `LD_PRELOAD` and `GODEBUG` load or change code when it runs, also what
///   watches the tests.
pub(super) const BUILDS: [&str; 84] = [
    // Cargo: these are part of a unit's fingerprint, or of the profile that is.
    "CARGO_BUILD_INCREMENTAL",
    "CARGO_BUILD_RUSTDOCFLAGS",
    "CARGO_BUILD_RUSTFLAGS",
    "CARGO_BUILD_TARGET",
    "CARGO_ENCODED_RUSTDOCFLAGS",
    "CARGO_ENCODED_RUSTFLAGS",
    "CARGO_INCREMENTAL",
    "CARGO_PROFILE_BENCH_CODEGEN_UNITS",
    "CARGO_PROFILE_BENCH_DEBUG",
    "CARGO_PROFILE_BENCH_DEBUG_ASSERTIONS",
    "CARGO_PROFILE_BENCH_INCREMENTAL",
    "CARGO_PROFILE_BENCH_LTO",
    "CARGO_PROFILE_BENCH_OPT_LEVEL",
    "CARGO_PROFILE_BENCH_OVERFLOW_CHECKS",
    "CARGO_PROFILE_BENCH_PANIC",
    "CARGO_PROFILE_BENCH_RPATH",
    "CARGO_PROFILE_BENCH_SPLIT_DEBUGINFO",
    "CARGO_PROFILE_BENCH_STRIP",
    "CARGO_PROFILE_DEV_CODEGEN_UNITS",
    "CARGO_PROFILE_DEV_DEBUG",
    "CARGO_PROFILE_DEV_DEBUG_ASSERTIONS",
    "CARGO_PROFILE_DEV_INCREMENTAL",
    "CARGO_PROFILE_DEV_LTO",
    "CARGO_PROFILE_DEV_OPT_LEVEL",
    "CARGO_PROFILE_DEV_OVERFLOW_CHECKS",
    "CARGO_PROFILE_DEV_PANIC",
    "CARGO_PROFILE_DEV_RPATH",
    "CARGO_PROFILE_DEV_SPLIT_DEBUGINFO",
    "CARGO_PROFILE_DEV_STRIP",
    "CARGO_PROFILE_RELEASE_CODEGEN_UNITS",
    "CARGO_PROFILE_RELEASE_DEBUG",
    "CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS",
    "CARGO_PROFILE_RELEASE_INCREMENTAL",
    "CARGO_PROFILE_RELEASE_LTO",
    "CARGO_PROFILE_RELEASE_OPT_LEVEL",
    "CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS",
    "CARGO_PROFILE_RELEASE_PANIC",
    "CARGO_PROFILE_RELEASE_RPATH",
    "CARGO_PROFILE_RELEASE_SPLIT_DEBUGINFO",
    "CARGO_PROFILE_RELEASE_STRIP",
    "CARGO_PROFILE_TEST_CODEGEN_UNITS",
    "CARGO_PROFILE_TEST_DEBUG",
    "CARGO_PROFILE_TEST_DEBUG_ASSERTIONS",
    "CARGO_PROFILE_TEST_INCREMENTAL",
    "CARGO_PROFILE_TEST_LTO",
    "CARGO_PROFILE_TEST_OPT_LEVEL",
    "CARGO_PROFILE_TEST_OVERFLOW_CHECKS",
    "CARGO_PROFILE_TEST_PANIC",
    "CARGO_PROFILE_TEST_RPATH",
    "CARGO_PROFILE_TEST_SPLIT_DEBUGINFO",
    "CARGO_PROFILE_TEST_STRIP",
    "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER",
    "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUSTFLAGS",
    "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER",
    "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_RUSTFLAGS",
    "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER",
    "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS",
    "CARGO_TARGET_X86_64_UNKNOWN_LINUX_MUSL_LINKER",
    "CARGO_TARGET_X86_64_UNKNOWN_LINUX_MUSL_RUSTFLAGS",
    "RUSTC_BOOTSTRAP",
    "RUSTDOCFLAGS",
    "RUSTFLAGS",
    // C and C++, for themselves and where build scripts, cgo and native modules ask.
    "AR",
    "CC",
    "CFLAGS",
    "CPPFLAGS",
    "CXX",
    "CXXFLAGS",
    "LD",
    "LDFLAGS",
    // Go: part of the key of its build cache.
    "CGO_CFLAGS",
    "CGO_CPPFLAGS",
    "CGO_CXXFLAGS",
    "CGO_ENABLED",
    "CGO_LDFLAGS",
    "GO111MODULE",
    "GO386",
    "GOAMD64",
    "GOARCH",
    "GOARM",
    "GOARM64",
    "GOEXPERIMENT",
    "GOFLAGS",
    "GOOS",
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
