//! Parts of the kernel a build does not need.

use super::act::{call, done};
use super::probe::{
    AttackBodyResult, AttackExpectation, AttackFamily, AttackObservation, AttackProbe,
};
use super::scene::AttackScene;
use crate::sys::attempt::attempt;

/// A call that the kernel itself would answer with one of `outside`.
const fn probe(
    name: &'static str,
    attempts: &'static str,
    outside: &'static [i32],
    body: fn(&AttackScene) -> AttackBodyResult,
) -> AttackProbe {
    AttackProbe::new(AttackFamily::Syscalls, name, attempts, body)
        .outside(AttackExpectation::Fails(outside))
}

const fn unknown(
    name: &'static str,
    attempts: &'static str,
    body: fn(&AttackScene) -> AttackBodyResult,
) -> AttackProbe {
    AttackProbe::new(AttackFamily::Syscalls, name, attempts, body)
        .inside(AttackExpectation::Fails(&[libc::ENOSYS]))
}

fn number(number: u32) -> AttackBodyResult {
    attempt(number, [0; 6])
        .map(|_| String::new())
        .map_err(AttackObservation::from)
}

pub(super) const PROBES: &[AttackProbe] = &[
    probe(
        "io_uring",
        "do I/O past every filter (io_uring)",
        &[libc::EFAULT, libc::EINVAL],
        |_| done("io_uring_setup", &[1, 0]),
    )
    .privileged(),
    probe(
        "bpf",
        "load a program into the kernel",
        &[libc::EINVAL, libc::EFAULT, libc::E2BIG],
        |_| done("bpf", &[0, 0, 0]),
    )
    .privileged(),
    probe(
        "perf",
        "watch the machine by perf",
        &[libc::EFAULT, libc::EACCES],
        |_| done("perf_event_open", &[0, 0, 0, 0, 0]),
    )
    .privileged(),
    probe(
        "userfaultfd",
        "stop the kernel in the middle of a copy",
        &[],
        |_| {
            const USER_MODE_ONLY: u64 = 1;
            done("userfaultfd", &[USER_MODE_ONLY])
        },
    )
    .outside(AttackExpectation::Works)
    .privileged(),
    probe(
        "load_module",
        "load a kernel module",
        &[libc::EFAULT, libc::ENOEXEC],
        |_| done("init_module", &[0, 0, 0]),
    )
    .privileged(),
    probe(
        "load_module_file",
        "load a kernel module from a file",
        &[libc::EBADF, libc::EFAULT, libc::EINVAL],
        |_| done("finit_module", &[u64::MAX, 0, 0]),
    )
    .privileged(),
    probe(
        "remove_module",
        "remove a kernel module",
        &[libc::EFAULT],
        |_| done("delete_module", &[0, 0]),
    )
    .privileged(),
    probe("kexec", "start another kernel", &[libc::EINVAL], |_| {
        done("kexec_load", &[0, 999, 0, 0xffff_ffff])
    })
    .privileged(),
    probe("reboot", "reboot the machine", &[libc::EINVAL], |_| {
        done("reboot", &[0, 0, 0, 0])
    })
    .privileged(),
    probe(
        "swap",
        "give the machine a swap file",
        &[libc::EFAULT],
        |_| done("swapon", &[0, 0]),
    )
    .privileged(),
    probe(
        "accounting",
        "have the kernel write a log of processes",
        &[libc::EFAULT],
        |_| done("acct", &[1]),
    )
    .privileged(),
    probe(
        "quota",
        "change disk quotas",
        &[
            libc::EFAULT,
            libc::EINVAL,
            libc::ENODEV,
            libc::ENOSYS,
            libc::ENOENT,
        ],
        |_| done("quotactl", &[0x8000_0700, 1, 0, 0]),
    )
    .privileged(),
    probe(
        "set_clock",
        "set the machine's clock",
        &[libc::EINVAL],
        |_| done("clock_settime", &[999, 0]),
    ),
    probe(
        "adjust_clock",
        "bend the machine's clock",
        &[libc::EFAULT],
        |_| done("adjtimex", &[0]),
    ),
    probe("host_name", "rename the machine", &[libc::EINVAL], |_| {
        done("sethostname", &[0, 4096])
    })
    .privileged(),
    probe("hang_up", "hang up the caller's terminal", &[], |_| {
        done("vhangup", &[])
    })
    .controlled_by(|_| call("getpid", &[]).map(|_| String::new()))
    .outside(AttackExpectation::Works),
    probe(
        "watch_files",
        "watch the whole filesystem (fanotify)",
        &[libc::EINVAL],
        |_| done("fanotify_init", &[0xffff_ffff, 0]),
    )
    .privileged(),
    probe(
        "move_pages",
        "move another process's memory",
        &[],
        |scene| done("move_pages", &[scene.victim(), 0, 0, 0, 0, 0]),
    )
    .outside(AttackExpectation::Works),
    #[cfg(target_arch = "x86_64")]
    probe(
        "segments",
        "change segment descriptors (modify_ldt)",
        &[],
        |_| done("modify_ldt", &[0, 0, 0]),
    )
    .outside(AttackExpectation::Works),
    #[cfg(target_arch = "x86_64")]
    probe(
        "ports",
        "speak to hardware directly (ioperm)",
        &[libc::EINVAL],
        |_| done("ioperm", &[u64::MAX, 1, 1]),
    )
    .privileged(),
    #[cfg(target_arch = "x86_64")]
    unknown(
        "second_numbering",
        "make a call under its x32 number",
        |_| number(0x4000_0000 + 39),
    )
    .controlled_by(|_| call("getpid", &[]).map(|_| String::new())),
    #[cfg(target_arch = "x86_64")]
    unknown(
        "second_numbering_exec",
        "replace a refused call by its x32 twin",
        |_| number(0x4000_0000 + 321),
    )
    .controlled_by(|_| call("getpid", &[]).map(|_| String::new())),
    #[cfg(target_arch = "x86_64")]
    unknown(
        "old_instruction_set",
        "make a 32-bit call (int 0x80)",
        |_| {
            crate::sys::attempt::attempt_32_bit(20)
                .map(|_| String::new())
                .map_err(AttackObservation::from)
        },
    )
    .controlled_by(|_| call("getpid", &[]).map(|_| String::new())),
    unknown("unknown_number", "make a call nobody knows", |_| {
        number(3000)
    })
    .outside(AttackExpectation::Fails(&[libc::ENOSYS])),
    unknown(
        "number_beyond_range",
        "make a call with a number that wraps",
        |_| number(0x8000_0000),
    )
    .outside(AttackExpectation::Fails(&[libc::ENOSYS])),
    unknown(
        "list_mounts",
        "list mounts past the masks (listmount)",
        |_| done("listmount", &[0, 0, 0, 0]),
    )
    .outside(AttackExpectation::Fails(&[libc::EFAULT])),
];
