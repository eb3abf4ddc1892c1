//! System calls that stand or fall together.

/// Making, joining and furnishing namespaces.
pub(super) const NAMESPACES: &[&str] = &[
    "setns",
    "mount",
    "umount2",
    "move_mount",
    "open_tree",
    "open_tree_attr",
    "fsopen",
    "fsconfig",
    "fsmount",
    "fspick",
    "mount_setattr",
    "pivot_root",
    "chroot",
];

/// Message queues, semaphores and shared memory outside the file tree.
pub(super) const KERNEL_IPC: &[&str] = &[
    "msgget",
    "msgsnd",
    "msgrcv",
    "msgctl",
    "semget",
    "semop",
    "semctl",
    "semtimedop",
    "shmget",
    "shmat",
    "shmdt",
    "shmctl",
    "mq_open",
    "mq_unlink",
    "mq_timedsend",
    "mq_timedreceive",
    "mq_notify",
    "mq_getsetattr",
];

/// Refused in every sandbox: nothing that builds or tests software needs them.
pub(super) const REFUSED: &[&str] = &[
    // Large parts of the kernel with a history.
    "io_uring_setup",
    "io_uring_enter",
    "io_uring_register",
    "bpf",
    "perf_event_open",
    "userfaultfd",
    "keyctl",
    "add_key",
    "request_key",
    "memfd_secret",
    "fanotify_init",
    "fanotify_mark",
    "lsm_set_self_attr",
    "modify_ldt",
    "iopl",
    "ioperm",
    // Other processes.
    "ptrace",
    "process_vm_readv",
    "process_vm_writev",
    "process_madvise",
    "process_mrelease",
    "pidfd_getfd",
    "kcmp",
    "move_pages",
    "migrate_pages",
    // Files by number instead of by path.
    "open_by_handle_at",
    "name_to_handle_at",
    // The machine itself.
    "kexec_load",
    "kexec_file_load",
    "init_module",
    "finit_module",
    "delete_module",
    "reboot",
    "swapon",
    "swapoff",
    "acct",
    "quotactl",
    "quotactl_fd",
    "syslog",
    "vhangup",
    "settimeofday",
    "clock_settime",
    "clock_adjtime",
    "adjtimex",
    "sethostname",
    "setdomainname",
    "sysfs",
    "ustat",
];

/// Answered as if the kernel were older: their arguments are behind a pointer where no filter can
/// look, and everybody who calls them has a fallback.
pub(super) const MISSING: &[&str] = &["openat2", "statmount", "listmount"];

/// Calls that read, change or start what a path names. Those that only ask whether something is there
/// are not among them: programs ask far more often than they need.
pub(crate) const PATHS: &[&str] = &[
    "chmod",
    "chown",
    "creat",
    "execve",
    "execveat",
    "fchmodat",
    "fchmodat2",
    "fchownat",
    "lchown",
    "link",
    "linkat",
    "mkdir",
    "mkdirat",
    "mknod",
    "mknodat",
    "open",
    "openat",
    "rename",
    "renameat",
    "renameat2",
    "rmdir",
    "symlink",
    "symlinkat",
    "truncate",
    "unlink",
    "unlinkat",
];
