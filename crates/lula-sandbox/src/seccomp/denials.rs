//! What a refused call means to a person.

use lula_protocol::SandboxDenial;
use lula_protocol::denial::DeniedAttempt;

use super::families::NAMESPACES;
use super::{SeccompCall, SyscallAbi};

/// The record of a refused call, with the smallest grant that would allow it where a policy can
/// give one.
pub fn refused(abi: SyscallAbi, call: &SeccompCall) -> SandboxDenial {
    let name = abi.name_of(call.number);
    let grant = name.and_then(grant).map(str::to_owned);
    let name = name.map_or_else(|| call.number.to_string(), |name| described(name, call));
    SandboxDenial {
        attempt: DeniedAttempt::Syscall { name },
        rule: "seccomp".to_owned(),
        grant,
        count: 1,
    }
}

/// The name, with the argument that decided where one did.
fn described(name: &str, call: &SeccompCall) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "the low word decides")]
    let low = |arg: usize| call.args[arg] as u32;
    match name {
        "ioctl" => format!("ioctl({:#x})", low(1)),
        "socket" | "socketpair" => format!("{name}({}, {})", family(low(0)), low(1) & 0xf),
        "clone" | "unshare" => format!("{name}({:#x})", low(0)),
        "personality" => format!("personality({:#x})", low(0)),
        _ => name.to_owned(),
    }
}

fn family(number: u32) -> String {
    match number {
        1 => "AF_UNIX".to_owned(),
        2 => "AF_INET".to_owned(),
        10 => "AF_INET6".to_owned(),
        16 => "AF_NETLINK".to_owned(),
        17 => "AF_PACKET".to_owned(),
        38 => "AF_ALG".to_owned(),
        40 => "AF_VSOCK".to_owned(),
        other => format!("family {other}"),
    }
}

fn grant(name: &str) -> Option<&'static str> {
    let namespaces = NAMESPACES.contains(&name) || matches!(name, "clone" | "unshare");
    namespaces.then_some("nested_userns = true")
}
