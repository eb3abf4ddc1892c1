//! An environment in one file, for a machine without network: its record, everything it holds, and a digest
//! over all of it at the end.
//!
//! What is taken in may have been made by anybody: every name is opened below a handle through no link, nothing is
//! written over, and it becomes an environment only when the digest at its end was right.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use lula_files::beneath;
use rustix::fs::{AtFlags, Mode, OFlags, Timespec, Timestamps, XattrFlags};

use super::error::EnvironmentError;
use super::record::{ABOVE, BELOW, EnvironmentRecord, HOME};
use super::store::{EnvironmentStore, StoredEnvironment, clear};

const MAGIC: &[u8] = b"lula environment 1\n";
/// The mark of the overlay on a directory that hides what lies below.
const OPAQUE: &str = "user.overlay.opaque";
/// Longest record and longest name.
const RECORD: u64 = 4 << 20;
const NAME: u64 = 64 << 10;
/// Directories within each other, at most.
const DEEPEST: usize = 200;

/// Writes an environment into a file.
pub fn export(one: &StoredEnvironment, file: &Path) -> Result<u64, EnvironmentError> {
    let failed = EnvironmentError::io(file);
    let write = || -> io::Result<u64> {
        let mut out = ParcelWriter {
            hash: blake3::Hasher::new(),
            out: zstd::Encoder::new(BufWriter::new(File::create(file)?), 6)?,
        };
        out.put(MAGIC)?;
        out.block(&serde_json::to_vec(&one.record)?)?;
        for part in [ABOVE, BELOW, HOME] {
            let path = one.directory.join(part);
            if path.is_dir() {
                out.tree(&path, Path::new(part), 0)?;
            }
        }
        out.put(b"E")?;
        let digest = *out.hash.finalize().as_bytes();
        out.out.write_all(&digest)?;
        let written = out.out.finish()?.into_inner().map_err(io::Error::from)?;
        written.sync_all()?;
        Ok(written.metadata()?.len())
    };
    write().map_err(failed)
}

/// Takes an environment in from a file.
pub fn import(
    store: &EnvironmentStore,
    file: &Path,
) -> Result<StoredEnvironment, EnvironmentError> {
    store.open()?;
    let bad = |why: String| EnvironmentError::NotExported {
        path: file.to_owned(),
        why,
    };
    let opened = File::open(file).map_err(EnvironmentError::io(file))?;
    let decoder = zstd::Decoder::new(opened).map_err(|error| bad(error.to_string()))?;
    let mut parcel = ParcelReader {
        hash: blake3::Hasher::new(),
        input: BufReader::new(decoder),
    };
    let record = parcel.record().map_err(|error| bad(error.to_string()))?;
    if record.inputs.digest()? != record.digest {
        return Err(bad("its name is not that of its inputs".to_owned()));
    }
    if let Some(found) = store.of(&record.digest) {
        return Ok(found);
    }
    let directory = store.begin()?;
    let taken = parcel
        .contents(&directory)
        .map_err(|error| bad(error.to_string()))
        .and_then(|()| store.finish(&directory, &record));
    if taken.is_err() {
        clear(&directory);
    }
    taken
}

struct ParcelWriter<W: Write> {
    hash: blake3::Hasher,
    out: W,
}

impl<W: Write> ParcelWriter<W> {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hash.update(bytes);
        self.out.write_all(bytes)
    }

    fn number(&mut self, number: u64) -> io::Result<()> {
        self.put(&number.to_le_bytes())
    }

    fn block(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.number(bytes.len() as u64)?;
        self.put(bytes)
    }

    /// A directory with everything in it, each name after what it is in.
    fn tree(&mut self, path: &Path, name: &Path, depth: usize) -> io::Result<()> {
        if depth > DEEPEST {
            return Err(io::Error::other("directories lie too deep"));
        }
        let data = fs::symlink_metadata(path)?;
        self.put(b"D")?;
        self.block(name.as_os_str().as_bytes())?;
        self.number(u64::from(data.permissions().mode() & 0o777))?;
        self.number(u64::from(is_opaque(path)))?;
        let mut entries: Vec<_> = fs::read_dir(path)?.collect::<io::Result<_>>()?;
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            let (path, name) = (entry.path(), name.join(entry.file_name()));
            let data = entry.metadata()?;
            if data.is_dir() {
                self.tree(&path, &name, depth + 1)?;
            } else if data.is_symlink() {
                self.put(b"L")?;
                self.block(name.as_os_str().as_bytes())?;
                self.block(&fs::read_link(&path)?.into_os_string().into_vec())?;
            } else if data.is_file() {
                self.put(b"F")?;
                self.block(name.as_os_str().as_bytes())?;
                self.number(u64::from(data.permissions().mode() & 0o777))?;
                self.put(&data.mtime().to_le_bytes())?;
                self.number(u64::try_from(data.mtime_nsec()).unwrap_or(0))?;
                self.number(data.len())?;
                self.content(&path, data.len())?;
            }
        }
        Ok(())
    }

    fn content(&mut self, path: &Path, length: u64) -> io::Result<()> {
        let mut file = File::open(path)?.take(length);
        let mut chunk = vec![0; 256 << 10];
        let mut left = length;
        while left > 0 {
            let read = file.read(&mut chunk)?;
            if read == 0 {
                return Err(io::Error::other("a file became shorter while it was read"));
            }
            self.put(&chunk[..read])?;
            left -= read as u64;
        }
        Ok(())
    }
}

struct ParcelReader<R: Read> {
    hash: blake3::Hasher,
    input: R,
}

impl<R: Read> ParcelReader<R> {
    fn take(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        self.input.read_exact(bytes)?;
        self.hash.update(bytes);
        Ok(())
    }

    fn number(&mut self) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.take(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn block(&mut self, most: u64) -> io::Result<Vec<u8>> {
        let length = self.number()?;
        if length > most {
            return Err(io::Error::other("a name or record is too long"));
        }
        let mut bytes = vec![0; usize::try_from(length).unwrap_or_default()];
        self.take(&mut bytes)?;
        Ok(bytes)
    }

    fn record(&mut self) -> io::Result<EnvironmentRecord> {
        let mut magic = [0; MAGIC.len()];
        self.take(&mut magic)?;
        if magic != *MAGIC {
            return Err(io::Error::other("it begins as something else"));
        }
        Ok(serde_json::from_slice(&self.block(RECORD)?)?)
    }

    /// A path of plain names that begins with a part of an environment.
    fn path(&mut self) -> io::Result<PathBuf> {
        let path = PathBuf::from(std::ffi::OsString::from_vec(self.block(NAME)?));
        let plain = |part| matches!(part, std::path::Component::Normal(_));
        let inside = [ABOVE, BELOW, HOME]
            .iter()
            .any(|part| path.starts_with(part));
        if !inside || !path.components().all(plain) || path.as_os_str().as_bytes().contains(&0) {
            return Err(io::Error::other("a name leads outside"));
        }
        Ok(path)
    }

    fn contents(&mut self, directory: &Path) -> io::Result<()> {
        let top = rustix::fs::open(
            directory,
            OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        let mut modes: Vec<(PathBuf, u32)> = Vec::new();
        loop {
            let mut kind = [0];
            self.take(&mut kind)?;
            if kind == *b"E" {
                break;
            }
            let path = self.path()?;
            let above = path.parent().filter(|above| !above.as_os_str().is_empty());
            let parent = beneath(&top, above.unwrap_or(Path::new(".")), OFlags::DIRECTORY)?;
            let name = path.file_name().unwrap_or_default();
            match &kind {
                b"D" => {
                    rustix::fs::mkdirat(&parent, name, Mode::from_raw_mode(0o700))?;
                    modes.push((path.clone(), mode(self.number()?)));
                    if self.number()? == 1 {
                        let made = beneath(&parent, name, OFlags::DIRECTORY)?;
                        rustix::fs::fsetxattr(&made, OPAQUE, b"y", XattrFlags::empty())?;
                    }
                }
                b"L" => {
                    let target = self.block(NAME)?;
                    rustix::fs::symlinkat(target.as_slice(), &parent, name)?;
                }
                b"F" => self.file(&parent, name)?,
                _ => return Err(io::Error::other("it holds something unknown")),
            }
        }
        let found = *self.hash.finalize().as_bytes();
        let mut told = [0; 32];
        self.input.read_exact(&mut told)?;
        if found != told {
            return Err(io::Error::other("it was changed, or cut"));
        }
        // Directories that may not be written to are closed when everything is in them.
        for (path, mode) in modes.into_iter().rev() {
            let made = beneath(&top, &path, OFlags::DIRECTORY)?;
            rustix::fs::fchmod(&made, Mode::from_raw_mode(mode))?;
        }
        Ok(())
    }

    fn file(&mut self, parent: &rustix::fd::OwnedFd, name: &std::ffi::OsStr) -> io::Result<()> {
        let mode = mode(self.number()?);
        let mut seconds = [0; 8];
        self.take(&mut seconds)?;
        let nanoseconds = i64::try_from(self.number()?).unwrap_or(0);
        let mut left = self.number()?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let mut file = File::from(beneath(parent, name, flags)?);
        let mut chunk = vec![0; 256 << 10];
        while left > 0 {
            let part = usize::try_from(left).unwrap_or(usize::MAX).min(chunk.len());
            self.take(&mut chunk[..part])?;
            file.write_all(&chunk[..part])?;
            left -= part as u64;
        }
        rustix::fs::fchmod(&file, Mode::from_raw_mode(mode))?;
        let time = Timespec {
            tv_sec: i64::from_le_bytes(seconds),
            tv_nsec: nanoseconds.clamp(0, 999_999_999),
        };
        let times = Timestamps {
            last_access: time,
            last_modification: time,
        };
        rustix::fs::utimensat(parent, name, &times, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(())
    }
}

/// The bits of permissions that an environment has; never set-user-id.
fn mode(number: u64) -> u32 {
    u32::try_from(number & 0o777).unwrap_or(0o600) | 0o400
}

fn is_opaque(path: &Path) -> bool {
    let mut value = [0_u8; 4];
    let length = rustix::fs::lgetxattr(path, OPAQUE, &mut value[..]);
    length.is_ok_and(|length| &value[..length] == b"y")
}
