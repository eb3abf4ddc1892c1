//! What the attacker is told: names of things that exist outside, so that failing to reach them
//! means something.

use std::collections::BTreeMap;
use std::path::PathBuf;

use lula_protocol::IsolationTier;

/// Names of things outside, passed to bodies as `key=value` arguments.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct AttackScene(BTreeMap<String, String>);

impl AttackScene {
    pub(super) fn from_arguments(arguments: impl Iterator<Item = String>) -> Self {
        let pairs = arguments.filter_map(|argument| {
            argument
                .split_once('=')
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
        });
        Self(pairs.collect())
    }

    pub(super) fn arguments(&self) -> Vec<String> {
        self.0
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect()
    }

    pub(super) fn with(mut self, key: &str, value: impl std::fmt::Display) -> Self {
        self.0.insert(key.to_owned(), value.to_string());
        self
    }

    fn text(&self, key: &str) -> &str {
        self.0.get(key).map_or("", String::as_str)
    }

    fn number(&self, key: &str) -> u64 {
        self.text(key).parse().unwrap_or(0)
    }

    /// A file outside that holds [`AttackScene::token`].
    pub(super) fn secret(&self) -> PathBuf {
        self.text("secret").into()
    }

    /// A file outside that no probe may change; each run has its own.
    pub(super) fn target(&self) -> PathBuf {
        self.text("target").into()
    }

    /// The directory that may be written.
    pub(super) fn workspace(&self) -> PathBuf {
        self.text("workspace").into()
    }

    /// A text that must not be found inside.
    pub(super) fn token(&self) -> String {
        // Spelled backwards in the arguments, or every body would find it in its own.
        self.text("nekot").chars().rev().collect()
    }

    /// A process outside, of the same user.
    pub(super) fn victim(&self) -> u64 {
        self.number("victim")
    }

    /// A TCP port on the host's loopback that accepts.
    pub(super) fn tcp_port(&self) -> u16 {
        u16::try_from(self.number("tcp")).unwrap_or(0)
    }

    /// The same on IPv6, zero where there is none.
    pub(super) fn tcp6_port(&self) -> u16 {
        u16::try_from(self.number("tcp6")).unwrap_or(0)
    }

    /// A UDP port on the host's loopback that answers.
    pub(super) fn udp_port(&self) -> u16 {
        u16::try_from(self.number("udp")).unwrap_or(0)
    }

    /// The host's address on its network; its loopback where it has none.
    pub(super) fn host_address(&self) -> std::net::Ipv4Addr {
        self.text("host")
            .parse()
            .unwrap_or(std::net::Ipv4Addr::LOCALHOST)
    }

    /// A listening Unix socket.
    pub(super) fn socket(&self) -> PathBuf {
        self.text("socket").into()
    }

    /// A listening abstract Unix socket.
    pub(super) fn abstract_socket(&self) -> &str {
        self.text("abstract")
    }

    /// The path of a terminal outside of the sandbox.
    pub(super) fn terminal(&self) -> PathBuf {
        self.text("terminal").into()
    }

    /// A device outside that no command needs.
    pub(super) fn device(&self) -> PathBuf {
        self.text("device").into()
    }

    /// A file that tells about the kernel's insides.
    pub(super) fn kernel_file(&self) -> PathBuf {
        self.text("kernel").into()
    }

    /// A System V shared memory segment of the host.
    pub(super) fn shared_memory(&self) -> u64 {
        self.number("shm")
    }

    /// How many seccomp filters there are outside.
    pub(super) fn filters(&self) -> u64 {
        self.number("filters")
    }

    /// How many Landlock layers a process outside may take.
    pub(super) fn free_landlock_layers(&self) -> u64 {
        self.number("layers")
    }

    /// How long a part goes on, in milliseconds.
    pub(super) fn duration(&self) -> std::time::Duration {
        std::time::Duration::from_millis(self.number("for"))
    }

    /// How many bytes a part writes.
    pub(super) fn amount(&self) -> u64 {
        self.number("amount")
    }

    /// The tier a runner is to use.
    pub(super) fn tier(&self) -> IsolationTier {
        IsolationTier::from_name(self.text("tier")).unwrap_or(IsolationTier::Namespace)
    }

    /// Inode of a namespace of the host.
    pub(super) fn namespace(&self, kind: &str) -> &str {
        self.text(&format!("ns-{kind}"))
    }

    /// Names of variables that may exist inside.
    pub(super) fn variables(&self) -> Vec<String> {
        self.text("variables")
            .split(',')
            .map(str::to_owned)
            .collect()
    }
}
