//! The table of keys: name, type, default, who may set it, and its documentation.

use std::marker::PhantomData;
use std::time::Duration;

use crate::kind::{ConfigValue, ConfigValueKind};

/// What a repository's own configuration file may do with a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RepositoryKeyRule {
    /// Nothing: it says where data goes, what runs on the host, or is a matter of taste.
    Never,
    /// Only move it in the stricter direction.
    Tighten(StricterValue),
}

/// Which of two values is the stricter one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StricterValue {
    /// The smaller duration or size.
    Lower,
    /// The later word of the [`ConfigValueKind::Choice`].
    Later,
}

/// Everything there is to know about a key.
#[derive(Debug)]
pub struct ConfigKeySpec {
    /// Dotted name, as in `sandbox.min_tier`.
    pub name: &'static str,
    /// Type of its value.
    pub kind: ConfigValueKind,
    /// Built-in value, in the written form.
    pub default: &'static str,
    /// What a repository may do with it.
    pub repository: RepositoryKeyRule,
    /// What it is for. The first sentence stands in tables.
    pub doc: &'static str,
}

impl ConfigKeySpec {
    /// Its environment variable: `LULA_SANDBOX_MIN_TIER`.
    pub fn variable(&self) -> String {
        format!("LULA_{}", self.name.replace('.', "_").to_uppercase())
    }

    /// Its command-line flag, without the dashes in front: `sandbox-min-tier`.
    pub fn flag(&self) -> String {
        self.name.replace(['.', '_'], "-")
    }

    pub fn default_value(&self) -> ConfigValue {
        // A test parses every default, so the fallback is never reached.
        self.kind
            .parse(self.default)
            .unwrap_or_else(|| ConfigValue::Text(self.default.to_owned()))
    }

    /// The first sentence of the documentation.
    pub fn summary(&self) -> &'static str {
        self.doc
            .split_inclusive(". ")
            .next()
            .unwrap_or(self.doc)
            .trim_end()
    }
}

/// A key together with the type its value has in code.
#[derive(Debug)]
pub struct ConfigKey<T> {
    spec: &'static ConfigKeySpec,
    _type: PhantomData<fn() -> T>,
}

impl<T> ConfigKey<T> {
    const fn new(spec: &'static ConfigKeySpec) -> Self {
        Self {
            spec,
            _type: PhantomData,
        }
    }

    /// The definition of the key.
    pub const fn spec(&self) -> &'static ConfigKeySpec {
        self.spec
    }
}

macro_rules! keys {
    ($($ident:ident: $type:ty = { $($field:ident: $value:expr),* $(,)? })*) => {
        $(
            #[doc = concat!("`", stringify!($ident), "`")]
            pub static $ident: ConfigKey<$type> = {
                static SPEC: ConfigKeySpec = ConfigKeySpec { $($field: $value),* };
                ConfigKey::new(&SPEC)
            };
        )*

        /// Every key, sorted by name.
        pub fn all() -> impl Iterator<Item = &'static ConfigKeySpec> {
            [$($ident.spec()),*].into_iter()
        }
    };
}

keys! {
    AUDIT_MODE: String = {
        name: "audit.mode",
        kind: ConfigValueKind::Choice(&["off", "on"]),
        default: "on",
        repository: RepositoryKeyRule::Tighten(StricterValue::Later),
        doc: "Whether what is done is recorded in the audit log of the state directory. \
              While it is on, nothing runs that cannot be recorded.",
    }
    DOCTOR_MIN_FREE_DISK: u64 = {
        name: "doctor.min_free_disk",
        kind: ConfigValueKind::Size { min: 0 },
        default: "1GiB",
        repository: RepositoryKeyRule::Never,
        doc: "Free space below which `lula doctor` says that the disk is too full. \
              Workspaces and run logs live in the state directory.",
    }
    ENVIRONMENT_MAX_BYTES: u64 = {
        name: "environment.max_bytes",
        kind: ConfigValueKind::Size { min: 0 },
        default: "20GiB",
        repository: RepositoryKeyRule::Never,
        doc: "What all environments may take on disk after `lula env prune`. \
              Those used longest ago go first.",
    }
    ENVIRONMENT_TIMEOUT: Duration = {
        name: "environment.timeout",
        kind: ConfigValueKind::Duration { min: Duration::from_secs(1), max: Duration::from_hours(24) },
        default: "30m",
        repository: RepositoryKeyRule::Never,
        doc: "How long a command of `lula env build` may take.",
    }
    ENVIRONMENT_USE: String = {
        name: "environment.use",
        kind: ConfigValueKind::Text("auto, none, build or the name of an environment"),
        default: "auto",
        repository: RepositoryKeyRule::Never,
        doc: "Which environment commands and tests of a project get: auto, none, build or the name of one. \
              auto: the one that was built from the project's files, unless its developer installed one in the checkout; \
              build: the same, and `lula run` builds it first where it is missing. `--env` and `--no-env` set it for one command.",
    }
    GIT_PROGRAM: String = {
        name: "git.program",
        kind: ConfigValueKind::Path,
        default: "",
        repository: RepositoryKeyRule::Never,
        doc: "The git to use, as an absolute path. \
              Empty: the first git in /usr/local/bin, /usr/bin or /bin, then on PATH.",
    }
    MODELS_CAPABILITIES: Vec<String> = {
        name: "models.capabilities",
        kind: ConfigValueKind::Items,
        default: "",
        repository: RepositoryKeyRule::Never,
        doc: "What models were seen to do, as MODEL=text, grammar, json-schema or tool-calls. \
              `lula models use` writes what its trial showed.",
    }
    MODELS_CEILING: u64 = {
        name: "models.ceiling",
        kind: ConfigValueKind::Dollars { max: 100_000 },
        default: "100.00",
        repository: RepositoryKeyRule::Never,
        doc: "What a model without a known price counts as where a budget in money is held, in dollars for a million tokens. \
              Its cost is shown as unknown.",
    }
    MODELS_EFFORT: Vec<String> = {
        name: "models.effort",
        kind: ConfigValueKind::Items,
        default: "",
        repository: RepositoryKeyRule::Never,
        doc: "How much models think before they answer: default, low, medium or high, and MODEL=EFFORT for one of them. \
              It is sent in the form of the provider; `default` sends nothing. `lula run --effort` goes over it.",
    }
    MODELS_KEYS: Vec<String> = {
        name: "models.keys",
        kind: ConfigValueKind::Items,
        default: "",
        repository: RepositoryKeyRule::Never,
        doc: "Where keys of model providers are kept, as PROVIDER=REFERENCE or URL=REFERENCE. \
              A reference is env:NAME, file:PATH, command:PROGRAM or keyring:SERVICE; never a key.",
    }
    MODELS_LOCAL_URLS: Vec<String> = {
        name: "models.local_urls",
        kind: ConfigValueKind::Urls,
        default: "http://127.0.0.1:8080,http://127.0.0.1:1234,http://127.0.0.1:8000",
        repository: RepositoryKeyRule::Never,
        doc: "Where to look for OpenAI-compatible model servers on this machine. \
              The defaults are the ports of llama.cpp, LM Studio and vLLM.",
    }
    MODELS_OLLAMA_URL: String = {
        name: "models.ollama_url",
        kind: ConfigValueKind::Url,
        default: "http://127.0.0.1:11434",
        repository: RepositoryKeyRule::Never,
        doc: "Where Ollama listens.",
    }
    MODELS_PRICES: String = {
        name: "models.prices",
        kind: ConfigValueKind::Path,
        default: "",
        repository: RepositoryKeyRule::Never,
        doc: "A table of prices and limits of your own, as TOML; its rows go over the built-in ones.",
    }
    MODELS_PROBE_TIMEOUT: Duration = {
        name: "models.probe_timeout",
        kind: ConfigValueKind::Duration { min: Duration::from_millis(10), max: Duration::from_secs(30) },
        default: "500ms",
        repository: RepositoryKeyRule::Never,
        doc: "How long to wait for a model server to answer when looking for one.",
    }
    MODELS_USE: Vec<String> = {
        name: "models.use",
        kind: ConfigValueKind::Items,
        default: "",
        repository: RepositoryKeyRule::Never,
        doc: "The models to work with, the preferred one first, as PROVIDER/MODEL. \
              `lula models list` shows what is there, `lula models use` tries a model and sets this.",
    }
    NETWORK_ALLOW: Vec<String> = {
        name: "network.allow",
        kind: ConfigValueKind::Items,
        default: "",
        repository: RepositoryKeyRule::Never,
        doc: "What sandboxes may reach over the network: names such as pypi.org or db.example.org:5432, and groups such as pypi. \
              Empty: nothing. `--net NAME` sets it for one command. `lula net groups` shows the groups of this machine; \
              a repository can narrow it in .lula-network.toml.",
    }
    NETWORK_PUBLISH: Vec<String> = {
        name: "network.publish",
        kind: ConfigValueKind::Items,
        default: "",
        repository: RepositoryKeyRule::Never,
        doc: "Ports of servers inside sandboxes that are reachable from this machine's loopback: PORT, OUTSIDE:INSIDE, \
              or NAME=PORT, which other sandboxes of the same run reach as NAME.lula.internal. Empty: none. `--publish PORT` \
              sets it for one command.",
    }
    NETWORK_RULES: String = {
        name: "network.rules",
        kind: ConfigValueKind::Path,
        default: "",
        repository: RepositoryKeyRule::Never,
        doc: "Your file of network rules: groups of your own, credentials that sandboxes use without seeing them, and limits. \
              Empty: network.toml beside your configuration file, where there is one.",
    }
    OTEL_CONTENT: String = {
        name: "otel.content",
        kind: ConfigValueKind::Choice(&["no", "yes"]),
        default: "no",
        repository: RepositoryKeyRule::Never,
        doc: "Whether traces hold what a run was asked and what came of it, redacted.",
    }
    OTEL_DIALECT: String = {
        name: "otel.dialect",
        kind: ConfigValueKind::Choice(&["genai", "openinference", "langfuse", "langsmith"]),
        default: "genai",
        repository: RepositoryKeyRule::Never,
        doc: "Attributes that traces have beside OpenTelemetry's conventions for generative AI, for the receiver that wants them.",
    }
    OTEL_ENDPOINT: String = {
        name: "otel.endpoint",
        kind: ConfigValueKind::Text("http://HOST:4318, or https://"),
        default: "",
        repository: RepositoryKeyRule::Never,
        doc: "A collector that takes traces by OTLP over HTTP: every run is exported to it once it is over. \
              Empty: none is.",
    }
    OTEL_HEADERS: Vec<String> = {
        name: "otel.headers",
        kind: ConfigValueKind::Items,
        default: "",
        repository: RepositoryKeyRule::Never,
        doc: "Headers for the collector, as NAME=REFERENCE. \
              A reference is env:NAME, file:PATH, command:PROGRAM or keyring:SERVICE; never a key.",
    }
    OUTPUT_COLOR: String = {
        name: "output.color",
        kind: ConfigValueKind::Choice(&["auto", "always", "never"]),
        default: "auto",
        repository: RepositoryKeyRule::Never,
        doc: "When to print in colour. \
              `auto` means on a terminal, unless NO_COLOR is set or TERM is dumb.",
    }
    OUTPUT_PROGRESS: String = {
        name: "output.progress",
        kind: ConfigValueKind::Choice(&["auto", "always", "never"]),
        default: "auto",
        repository: RepositoryKeyRule::Never,
        doc: "When to draw live progress on standard error. \
              `auto` means on a terminal; elsewhere each step is one plain line.",
    }
    POLICY_RULES: String = {
        name: "policy.rules",
        kind: ConfigValueKind::Path,
        default: "",
        repository: RepositoryKeyRule::Never,
        doc: "Your file of policy rules. \
              Empty: rules.toml beside your configuration file, where there is one. \
              A repository adds its own in .lula-rules.toml, which can only tighten.",
    }
    RUN_FINISH: Vec<String> = {
        name: "run.finish",
        kind: ConfigValueKind::Items,
        default: "",
        repository: RepositoryKeyRule::Never,
        doc: "Commands that finish every change of a run, such as a formatter, in their order. \
              They run in the sandbox after the edits and before the tests; one that fails makes the attempt fail. \
              `lula run --finish CMD` goes over them. A command with a comma goes into a script.",
    }
    RUNNER_ADDRESS: String = {
        name: "runner.address",
        kind: ConfigValueKind::Text("empty, unix:PATH or HOST:PORT"),
        default: "",
        repository: RepositoryKeyRule::Never,
        doc: "The runner that does the work of runs. \
              Empty: each `lula run` starts one of its own on a private socket. \
              A port needs its key in $LULA_RUNNER_KEY.",
    }
    SANDBOX_MIN_TIER: String = {
        name: "sandbox.min_tier",
        kind: ConfigValueKind::Choice(&["process", "landlock", "namespace", "gvisor", "microvm"]),
        default: "landlock",
        repository: RepositoryKeyRule::Tighten(StricterValue::Later),
        doc: "The weakest isolation tier that may run a command. \
              Where nothing at or above it works, Lula refuses to run.",
    }
    SANDBOX_TIMEOUT: Duration = {
        name: "sandbox.timeout",
        kind: ConfigValueKind::Duration { min: Duration::from_millis(100), max: Duration::from_hours(24) },
        default: "10m",
        repository: RepositoryKeyRule::Tighten(StricterValue::Lower),
        doc: "Wall clock of one command; then its whole process tree is killed.",
    }
    SERVER_AUTH: String = {
        name: "server.auth",
        kind: ConfigValueKind::Choice(&["off", "bearer", "jwt", "bearer+jwt"]),
        default: "off",
        repository: RepositoryKeyRule::Never,
        doc: "How `lula serve` finds out who sends a request. \
              `off` takes every request for yours and listens on loopback only; `lula server keys add` makes bearer keys.",
    }
    SERVER_BODY: u64 = {
        name: "server.body",
        kind: ConfigValueKind::Size { min: 1 << 10 },
        default: "256KiB",
        repository: RepositoryKeyRule::Never,
        doc: "Longest body of a request to `lula serve`.",
    }
    SERVER_EXPOSE: String = {
        name: "server.expose",
        kind: ConfigValueKind::Choice(&["no", "yes"]),
        default: "no",
        repository: RepositoryKeyRule::Never,
        doc: "Whether `lula serve` may listen on an address that other machines reach. \
              Not needed with server.tls_cert: without, it speaks plain HTTP, and a proxy has to end TLS before it.",
    }
    SERVER_FOUR_EYES: String = {
        name: "server.four_eyes",
        kind: ConfigValueKind::Choice(&["off", "on"]),
        default: "on",
        repository: RepositoryKeyRule::Never,
        doc: "Whether the person who begins a run may not approve what it asks. \
              Where server.auth is `off` there is one person, and it does not apply.",
    }
    SERVER_HOSTS: Vec<String> = {
        name: "server.hosts",
        kind: ConfigValueKind::Items,
        default: "",
        repository: RepositoryKeyRule::Never,
        doc: "Names by which clients reach `lula serve`, as their Host header says. \
              Names of loopback are taken where it listens on loopback.",
    }
    SERVER_JWT_ALGORITHMS: Vec<String> = {
        name: "server.jwt_algorithms",
        kind: ConfigValueKind::Items,
        default: "RS256,ES256,EdDSA",
        repository: RepositoryKeyRule::Never,
        doc: "Signature algorithms of tokens that are taken, of RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384 and EdDSA.",
    }
    SERVER_JWT_AUDIENCE: String = {
        name: "server.jwt_audience",
        kind: ConfigValueKind::Text("the audience that tokens name"),
        default: "",
        repository: RepositoryKeyRule::Never,
        doc: "The audience that a token must name.",
    }
    SERVER_JWT_ISSUER: String = {
        name: "server.jwt_issuer",
        kind: ConfigValueKind::Text("the issuer that tokens name"),
        default: "",
        repository: RepositoryKeyRule::Never,
        doc: "The issuer that a token must name.",
    }
    SERVER_JWT_KEYS: String = {
        name: "server.jwt_keys",
        kind: ConfigValueKind::Text("a file, or an http:// or https:// URL"),
        default: "",
        repository: RepositoryKeyRule::Never,
        doc: "Where the public keys of the issuer are, as a JSON web key set: a file, or a URL. \
              They are read again every five minutes; http is for loopback only.",
    }
    SERVER_JWT_ROLES: Vec<String> = {
        name: "server.jwt_roles",
        kind: ConfigValueKind::Items,
        default: "",
        repository: RepositoryKeyRule::Never,
        doc: "What values of the claim stand for which role, as VALUE=ROLE with viewer, operator, approver or admin. \
              A value that is not listed gives no role.",
    }
    SERVER_JWT_ROLES_CLAIM: String = {
        name: "server.jwt_roles_claim",
        kind: ConfigValueKind::Text("the name of a claim"),
        default: "roles",
        repository: RepositoryKeyRule::Never,
        doc: "The claim of a token that holds roles or groups.",
    }
    SERVER_KEY: String = {
        name: "server.key",
        kind: ConfigValueKind::Text("a reference such as env:NAME or file:PATH"),
        default: "",
        repository: RepositoryKeyRule::Never,
        doc: "Where the bearer key for the server of server.url is kept: env:NAME, file:PATH, command:PROGRAM or keyring:SERVICE. \
              Never the key itself.",
    }
    SERVER_LISTEN: String = {
        name: "server.listen",
        kind: ConfigValueKind::Text("HOST:PORT"),
        default: "127.0.0.1:7410",
        repository: RepositoryKeyRule::Never,
        doc: "Where `lula serve` listens. \
              Port 0 takes a free one.",
    }
    SERVER_ORIGINS: Vec<String> = {
        name: "server.origins",
        kind: ConfigValueKind::Urls,
        default: "",
        repository: RepositoryKeyRule::Never,
        doc: "Origins whose pages may use the API of `lula serve` from a browser. \
              Empty: none but its own.",
    }
    SERVER_QUEUE: u64 = {
        name: "server.queue",
        kind: ConfigValueKind::Count { min: 0, max: 10_000 },
        default: "100",
        repository: RepositoryKeyRule::Never,
        doc: "Most runs that wait in `lula serve` for a driver; more are refused.",
    }
    SERVER_RATE: u64 = {
        name: "server.rate",
        kind: ConfigValueKind::Count { min: 1, max: 100_000 },
        default: "50",
        repository: RepositoryKeyRule::Never,
        doc: "Most requests of one person in a second, with bursts of twice as many.",
    }
    SERVER_REPOSITORIES: Vec<String> = {
        name: "server.repositories",
        kind: ConfigValueKind::Items,
        default: "",
        repository: RepositoryKeyRule::Never,
        doc: "Repositories that `lula serve` works on, as PATH or NAME=PATH. \
              Empty: the one around its directory. A request names one of them, never a path.",
    }
    SERVER_RUNS: u64 = {
        name: "server.runs",
        kind: ConfigValueKind::Count { min: 1, max: 256 },
        default: "4",
        repository: RepositoryKeyRule::Never,
        doc: "Most runs that `lula serve` drives at one time; others wait.",
    }
    SERVER_STREAMS: u64 = {
        name: "server.streams",
        kind: ConfigValueKind::Count { min: 1, max: 100_000 },
        default: "4096",
        repository: RepositoryKeyRule::Never,
        doc: "Most event streams that `lula serve` keeps open at one time.",
    }
    SERVER_TLS_CERT: String = {
        name: "server.tls_cert",
        kind: ConfigValueKind::Path,
        default: "",
        repository: RepositoryKeyRule::Never,
        doc: "The certificate chain of `lula serve` in PEM, its own first. \
              Empty: it speaks plain HTTP. It is read when the server starts.",
    }
    SERVER_TLS_KEY: String = {
        name: "server.tls_key",
        kind: ConfigValueKind::Path,
        default: "",
        repository: RepositoryKeyRule::Never,
        doc: "The private key of that certificate in PEM, which no other user may read.",
    }
    SERVER_URL: String = {
        name: "server.url",
        kind: ConfigValueKind::Text("https://HOST[:PORT], or http:// on this machine"),
        default: "",
        repository: RepositoryKeyRule::Never,
        doc: "The server whose runs `lula run`, `runs`, `show`, `logs` and their like are about, also as `--server URL`. \
              Empty: the runs of this machine.",
    }
    STATE_DIR: String = {
        name: "state.dir",
        kind: ConfigValueKind::Path,
        default: "",
        repository: RepositoryKeyRule::Never,
        doc: "Where Lula keeps runs, workspaces and its store. \
              Empty: $XDG_STATE_HOME/lula, or ~/.local/state/lula.",
    }
    STORE_ACCEPT_LOSS: String = {
        name: "store.accept_loss",
        kind: ConfigValueKind::Choice(&["no", "yes"]),
        default: "no",
        repository: RepositoryKeyRule::Never,
        doc: "Whether to use a Redis that may lose what it acknowledged. \
              Without it, a Redis whose settings are not durable or cannot be read is refused.",
    }
    STORE_CA: String = {
        name: "store.ca",
        kind: ConfigValueKind::Path,
        default: "",
        repository: RepositoryKeyRule::Never,
        doc: "A file with certificates (PEM) of the authorities that vouch for the store's server. \
              Empty: those that this machine trusts.",
    }
    STORE_CLEARTEXT_PASSWORD: String = {
        name: "store.cleartext_password",
        kind: ConfigValueKind::Choice(&["no", "yes"]),
        default: "no",
        repository: RepositoryKeyRule::Never,
        doc: "Whether the store's password may go to another machine without encryption.",
    }
    STORE_DURABILITY: String = {
        name: "store.durability",
        kind: ConfigValueKind::Choice(&["process-crash", "power-loss"]),
        default: "power-loss",
        repository: RepositoryKeyRule::Never,
        doc: "What runs survive. \
              `power-loss`: the machine going dark; `process-crash`: only the end of a process.",
    }
    STORE_URL: String = {
        name: "store.url",
        kind: ConfigValueKind::Text(
            "empty, a postgres://, redis:// or rediss:// address without a password, or a reference to one: \
             env:NAME, file:PATH, command:PROGRAM or keyring:SERVICE",
        ),
        default: "",
        repository: RepositoryKeyRule::Never,
        doc: "Where runs are kept. \
              Empty: in SQLite, in the file `runs/runs.db` of the state directory. \
              Another machine is spoken to encrypted: rediss:// for Redis, always for Postgres \
              unless the address says sslmode=disable.",
    }
    WORKSPACE_MAX_BYTES: u64 = {
        name: "workspace.max_bytes",
        kind: ConfigValueKind::Size { min: 1 << 20 },
        default: "10GiB",
        repository: RepositoryKeyRule::Never,
        doc: "Most space that workspaces take in the state directory. \
              Committed and discarded ones make room by themselves, the oldest first; those that \
              wait for a decision never do.",
    }
}

/// The key of that name.
pub fn find(name: &str) -> Option<&'static ConfigKeySpec> {
    all().find(|spec| spec.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_sorted_and_defaults_are_valid() {
        assert!(all().map(|spec| spec.name).is_sorted());
        for spec in all() {
            assert!(spec.kind.parse(spec.default).is_some(), "{}", spec.name);
            assert!(spec.doc.ends_with('.'), "{}", spec.name);
        }
    }

    #[test]
    fn variables_and_flags_are_unambiguous() {
        let mut seen = std::collections::BTreeSet::new();
        for spec in all() {
            assert!(seen.insert(spec.variable()), "{}", spec.variable());
            assert!(seen.insert(spec.flag()), "{}", spec.flag());
        }
    }

    #[test]
    fn a_repository_cannot_say_where_data_goes_or_what_runs_on_the_host() {
        for spec in all() {
            if matches!(
                spec.kind,
                ConfigValueKind::Url
                    | ConfigValueKind::Urls
                    | ConfigValueKind::Items
                    | ConfigValueKind::Path
                    | ConfigValueKind::Text(_)
            ) {
                assert_eq!(spec.repository, RepositoryKeyRule::Never, "{}", spec.name);
            }
        }
    }
}
