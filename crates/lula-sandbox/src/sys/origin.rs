//! What this process was started with, and forgetting it in a copy that has no business with it.

use std::io;
use std::ops::Range;

/// Where the kernel put the arguments and the environment of this process, and how many threads it
/// has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProcessMemoryOrigin {
    threads: u64,
    arguments: Range<usize>,
    environment: Range<usize>,
}

impl ProcessMemoryOrigin {
    /// As the kernel says.
    pub(crate) fn of_this_process() -> io::Result<Self> {
        let stat = crate::page::read("/proc/self/stat")?;
        Self::parse(&stat).ok_or_else(|| io::Error::other("/proc/self/stat says too little"))
    }

    /// Fields 20 and 48 to 51 of `/proc/PID/stat`. The second field may hold anything, so count from
    /// its end. A kernel that does not want to tell an address says 0.
    fn parse(stat: &str) -> Option<Self> {
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let field = |number: usize| fields.get(number - 3)?.parse::<usize>().ok();
        let range = |first: usize| {
            let range = field(first)?..field(first + 1)?;
            (range.start != 0 && range.start <= range.end).then_some(range)
        };
        Some(Self {
            threads: field(20)? as u64,
            arguments: range(48)?,
            environment: range(50)?,
        })
    }

    /// Whether this process has one thread, so that a copy of it may run ordinary code.
    pub(crate) fn is_single_threaded(&self) -> bool {
        self.threads == 1
    }

    /// Overwrites the arguments, with a name in their place, and the environment: variables may hold
    /// keys, and what a process was called with can be read by others.
    ///
    /// Only for a copy of this process that has one thread and asks for neither afterwards.
    pub(crate) fn forget(&self, name: &str) {
        // SAFETY: the kernel put these strings on the stack of this process and never uses them
        // itself; they are writable, and this is the only thread, which holds no reference to any of
        // them. The C library's list of variables, which points there, is emptied.
        unsafe {
            for area in [&self.arguments, &self.environment] {
                let start = std::ptr::with_exposed_provenance_mut::<u8>(area.start);
                std::ptr::write_bytes(start, 0, area.len());
            }
            let start = std::ptr::with_exposed_provenance_mut::<u8>(self.arguments.start);
            // One byte stays zero: it ends the name.
            let length = name.len().min(self.arguments.len().saturating_sub(1));
            std::ptr::copy_nonoverlapping(name.as_ptr(), start, length);
            libc::clearenv();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_tells_where_the_environment_is() {
        let origin = ProcessMemoryOrigin::of_this_process().unwrap();
        assert!(origin.arguments.len() > 1);
        assert!(origin.arguments.end <= origin.environment.start);
        // A test runs beside the thread that waits for it.
        assert!(!origin.is_single_threaded());
    }

    #[test]
    fn an_address_that_is_not_told_is_not_believed() {
        let stat = |addresses: &str| format!("7 (a) b) S {}{addresses}", "1 ".repeat(44));
        assert!(ProcessMemoryOrigin::parse(&stat("10 20 20 30 0")).is_some());
        for hidden in ["0 0 0 0 0", "10 20 0 0 0", "20 10 20 30 0", "10"] {
            assert_eq!(ProcessMemoryOrigin::parse(&stat(hidden)), None, "{hidden}");
        }
    }
}
