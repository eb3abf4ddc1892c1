//! The times of a commit's files. A file that is the checkout's, byte for byte, keeps the checkout's
//! time: build tools compare times, and would build everything again.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;

use rustix::fs::{Dir, FileType, OFlags, Timespec, Timestamps};

use crate::tree::node::{FileNodeKind, Stat, Time};
use crate::tree::{MAX_DEPTH, RootedTree, beneath, os};

const CHUNK: usize = 128 << 10;

/// Gives every file and directory of `tree` the time of the same one in `checkout`. One that cannot
/// be looked at keeps its own: then something is built again, and nothing is wrong.
pub(super) fn keep(tree: &RootedTree, checkout: &RootedTree) {
    let mut buffers = (vec![0; CHUNK], vec![0; CHUNK]);
    directory(&tree.top, &checkout.top, 0, &mut buffers);
}

fn directory(ours: &OwnedFd, theirs: &OwnedFd, depth: usize, buffers: &mut (Vec<u8>, Vec<u8>)) {
    let Ok(entries) = Dir::read_from(ours) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name().to_bytes();
        if matches!(name, b"." | b"..") {
            continue;
        }
        let open = |from, flags| beneath(from, os(name), flags);
        match entry.file_type() {
            FileType::Directory if depth < MAX_DEPTH => {
                if let (Ok(ours), Ok(theirs)) = (
                    open(ours, OFlags::DIRECTORY),
                    open(theirs, OFlags::DIRECTORY),
                ) {
                    directory(&ours, &theirs, depth + 1, buffers);
                }
            }
            FileType::RegularFile => {
                if let (Ok(ours), Ok(theirs)) =
                    (open(ours, OFlags::RDONLY), open(theirs, OFlags::RDONLY))
                {
                    file(File::from(ours), File::from(theirs), buffers);
                }
            }
            _ => {}
        }
    }
    // Last: writing below it does not change it, but nothing else may come after.
    if let Ok(stat) = Stat::of_open(theirs) {
        stamp(ours, stat.modified);
    }
}

fn file(mut ours: File, mut theirs: File, buffers: &mut (Vec<u8>, Vec<u8>)) {
    let (Ok(mine), Ok(other)) = (Stat::of_open(&ours), Stat::of_open(&theirs)) else {
        return;
    };
    if other.kind != FileNodeKind::File || mine.size != other.size {
        return;
    }
    loop {
        let (Ok(read), Ok(same)) = (
            fill(&mut ours, &mut buffers.0),
            fill(&mut theirs, &mut buffers.1),
        ) else {
            return;
        };
        if buffers.0[..read] != buffers.1[..same] {
            return;
        }
        if read == 0 {
            break;
        }
    }
    stamp(&ours, other.modified);
}

fn fill(file: &mut File, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..])? {
            0 => break,
            read => filled += read,
        }
    }
    Ok(filled)
}

fn stamp(file: impl std::os::fd::AsFd, time: Time) {
    let time = Timespec {
        tv_sec: time.0,
        tv_nsec: time.1.into(),
    };
    let _ = rustix::fs::futimens(
        file,
        &Timestamps {
            last_access: time,
            last_modification: time,
        },
    );
}
