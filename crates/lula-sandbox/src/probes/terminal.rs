//! Typing into terminals that belong to another process.

use super::act::{call, read};
use super::probe::{AttackBodyResult, AttackExpectation, AttackFamily, AttackProbe};
use super::scene::AttackScene;

const fn probe(
    name: &'static str,
    attempts: &'static str,
    body: fn(&AttackScene) -> AttackBodyResult,
) -> AttackProbe {
    // Standard input is no terminal: outside, the driver says so; inside, no process gets to ask it.
    AttackProbe::new(AttackFamily::Terminal, name, attempts, body)
        .outside(AttackExpectation::Fails(&[libc::ENOTTY]))
}

/// A request whose argument is one readable byte.
fn request(command: u64) -> AttackBodyResult {
    let byte = [b'x'; 8];
    call("ioctl", &[0, command, byte.as_ptr().addr() as u64]).map(|_| String::new())
}

pub(super) const PROBES: &[AttackProbe] = &[
    probe(
        "push_input",
        "TIOCSTI: type a character into the caller's terminal",
        |_| request(0x5412),
    ),
    probe(
        "push_input_high_bits",
        "TIOCSTI with bits set that only a careless filter reads",
        |_| request(0xffff_ffff_0000_5412),
    ),
    probe("push_input_one_high_bit", "TIOCSTI with bit 32 set", |_| {
        request(0x1_0000_5412)
    }),
    probe(
        "console_paste",
        "TIOCLINUX: paste the selection into the console",
        |_| request(0x541c),
    ),
    probe(
        "console_paste_high_bits",
        "TIOCLINUX with high bits",
        |_| request(0xdead_beef_0000_541c),
    ),
    probe(
        "console_redirect",
        "TIOCCONS: take over the console's output",
        |_| request(0x541d),
    ),
    probe(
        "line_discipline",
        "TIOCSETD: load another line discipline",
        |_| request(0x5423),
    ),
    AttackProbe::new(
        AttackFamily::Terminal,
        "neighbours_terminal",
        "open a terminal of another session",
        |scene| {
            std::fs::OpenOptions::new()
                .read(true)
                .write(true)
                .open(scene.terminal())?;
            Ok(String::new())
        },
    )
    .by_tier(
        Some(AttackExpectation::Fails(&[libc::ENOENT])),
        Some(AttackExpectation::Fails(&[libc::EACCES])),
    ),
    AttackProbe::new(
        AttackFamily::Terminal,
        "console",
        "read the machine's console",
        |_| read("/dev/console"),
    )
    .controlled_by(|_| {
        // Reading would wait for a key.
        std::fs::File::open("/dev/console")?;
        Ok(String::new())
    })
    .by_tier(
        Some(AttackExpectation::Fails(&[libc::ENOENT])),
        Some(AttackExpectation::Fails(&[libc::EACCES])),
    )
    .privileged(),
];
