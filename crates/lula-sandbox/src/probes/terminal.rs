//! Typing into terminals that belong to somebody else.

use super::act::{call, read};
use super::probe::{Expect, Family, Probe, Try};
use super::scene::Scene;

const fn probe(name: &'static str, attempts: &'static str, body: fn(&Scene) -> Try) -> Probe {
    // Standard input is no terminal: outside, the driver says so; inside, nobody gets to ask it.
    Probe::new(Family::Terminal, name, attempts, body).outside(Expect::Fails(&[libc::ENOTTY]))
}

/// A request whose argument is one readable byte.
fn request(command: u64) -> Try {
    let byte = [b'x'; 8];
    call("ioctl", &[0, command, byte.as_ptr().addr() as u64]).map(|_| String::new())
}

pub(super) const PROBES: &[Probe] = &[
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
    Probe::new(
        Family::Terminal,
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
        Some(Expect::Fails(&[libc::ENOENT])),
        Some(Expect::Fails(&[libc::EACCES])),
    ),
    Probe::new(
        Family::Terminal,
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
        Some(Expect::Fails(&[libc::ENOENT])),
        Some(Expect::Fails(&[libc::EACCES])),
    )
    .privileged(),
];
